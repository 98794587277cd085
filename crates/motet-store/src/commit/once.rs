//! Writes that are done once, however often they are asked for.
//!
//! What was done under a key is a document of the store's own, written in the transaction of the
//! writes themselves: there is no moment at which one of the two is there without the other.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::session::Session;
use crate::document::Record;
use crate::engine::Table;
use crate::keys;
use crate::{Clock, Error};

/// The name of a request that may be sent again when its answer was lost, and what it asks for:
/// [`Env::write_once`](crate::Env::write_once) does its writes once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Where what was done is kept.
    document: String,
    /// What tells the request from another one of the same key.
    request: String,
}

/// What was done under a key.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Done {
    request: String,
    versions: Vec<u64>,
}

impl IdempotencyKey {
    /// The key that a caller chose, for a request of this content. Callers do not see each other's
    /// keys.
    #[must_use]
    pub fn new(caller: &str, key: &str, request: impl AsRef<[u8]>) -> Self {
        let name = Sha256::new().chain_update(Sha256::digest(caller)).chain_update(key);
        Self { document: hex(&name.finalize()), request: hex(&Sha256::digest(request)) }
    }
}

impl Session<'_> {
    /// The versions that the writes of this key gave, if they were done.
    pub(super) async fn done_before(
        &mut self,
        key: &IdempotencyKey,
    ) -> Result<Option<Vec<Clock>>, Error> {
        let at = keys::document(self.type_id(DONE_TYPE), &key.document);
        let Some(bytes) = self.overlay.get(Table::Documents, &at).await? else { return Ok(None) };
        let record = Record::from_bytes(&bytes).ok_or_else(|| damaged("it has another format"))?;
        if !self.is_live_until(record.expires_ms) {
            return Ok(None);
        }
        let done: Done =
            serde_json::from_slice(record.json).map_err(|error| damaged(&error.to_string()))?;
        if done.request != key.request {
            return Err(Error::IdempotencyKeyReused);
        }
        Ok(Some(done.versions.into_iter().map(Clock::new).collect()))
    }

    /// Keeps what the writes of this key gave.
    pub(super) fn keep_done(&mut self, key: &IdempotencyKey, versions: &[Clock]) {
        let at = keys::document(self.type_id(DONE_TYPE), &key.document);
        let done = Done {
            request: key.request.clone(),
            versions: versions.iter().map(|version| version.number()).collect(),
        };
        let json = serde_json::to_vec(&done).expect("texts and numbers can be written");
        let kept_ms = u64::try_from(KEPT.as_millis()).expect("a day has few milliseconds");
        let expires_ms = self.now_ms().saturating_add(kept_ms);
        let version = self.before.plus(self.changes);
        let record = Record { version, expires_ms: Some(expires_ms), json: &json };
        self.overlay.put(Table::Index, keys::expiry(expires_ms, &at), Vec::new());
        self.overlay.put(Table::Documents, at, record.to_bytes());
    }
}

fn damaged(why: &str) -> Error {
    Error::Damaged { what: "what was done under an idempotency key".into(), why: why.into() }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The store's own type of what was done under keys.
const DONE_TYPE: &str = "~done";

/// How long it is kept.
const KEPT: Duration = Duration::from_secs(24 * 3_600);

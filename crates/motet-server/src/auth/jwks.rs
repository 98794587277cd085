//! Keys fetched from a JSON Web Key Set.
//!
//! A cached key belongs to the endpoint it came from as well as to its id: a key id alone says
//! nothing about who issued it, and a key of one issuer must never vouch for another.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use jsonwebtoken::jwk::{Jwk, JwkSet};
use tokio::sync::Mutex;
use tracing::warn;

/// How long a fetched key is trusted before the set is read again.
const KEY_TTL: Duration = Duration::from_secs(3600);
/// How long an endpoint is left alone after a fetch that did not bring the wanted key, so that
/// made-up key ids do not turn into requests.
const REFETCH_DELAY: Duration = Duration::from_secs(10);
/// How long one fetch may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes in a key set.
const SET_BYTES_MAX: usize = 1 << 20;

/// Why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The key set has no such key.
    Unknown,
    /// The key set cannot be had.
    Unavailable,
}

pub(super) struct JwksCache {
    client: reqwest::Client,
    sets: Mutex<HashMap<String, Arc<Mutex<Endpoint>>>>,
}

#[derive(Default)]
struct Endpoint {
    keys: HashMap<String, Jwk>,
    fetched_at: Option<Instant>,
    tried_at: Option<Instant>,
}

impl JwksCache {
    pub(super) fn new() -> Self {
        // A client that cannot be built (no TLS roots) fails each fetch instead of the start.
        let client = reqwest::Client::builder()
            .timeout(FETCH_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap_or_default();
        Self { client, sets: Mutex::new(HashMap::new()) }
    }

    /// The key with this id at this endpoint. Concurrent askers share one fetch.
    pub(super) async fn find(&self, endpoint: &str, kid: &str) -> Result<Jwk, NoKey> {
        let entry = self.sets.lock().await.entry(endpoint.to_owned()).or_default().clone();
        let mut entry = entry.lock().await;
        let fresh = entry.fetched_at.is_some_and(|at| at.elapsed() < KEY_TTL);
        if fresh && let Some(key) = entry.keys.get(kid) {
            return Ok(key.clone());
        }
        let tried_lately = entry.tried_at.is_some_and(|at| at.elapsed() < REFETCH_DELAY);
        if !tried_lately {
            entry.tried_at = Some(Instant::now());
            match self.fetch(endpoint).await {
                Ok(keys) => {
                    entry.keys = keys;
                    entry.fetched_at = Some(Instant::now());
                }
                Err(cause) => warn!(endpoint, %cause, "JWKS_UNAVAILABLE: {}",
                    motet_protocol::ErrorCode::JwksUnavailable.info().next_step),
            }
        }
        // A known key outlives its time while the endpoint is away.
        match entry.keys.get(kid) {
            Some(key) => Ok(key.clone()),
            None if entry.fetched_at.is_some() => Err(NoKey::Unknown),
            None => Err(NoKey::Unavailable),
        }
    }

    async fn fetch(&self, endpoint: &str) -> Result<HashMap<String, Jwk>, FetchError> {
        let mut response = self.client.get(endpoint).send().await?.error_for_status()?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > SET_BYTES_MAX {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        let set: JwkSet = serde_json::from_slice(&body)?;
        let named = |key: Jwk| key.common.key_id.clone().map(|kid| (kid, key));
        Ok(set.keys.into_iter().filter_map(named).collect())
    }
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("the request failed: {0}")]
    Request(#[from] reqwest::Error),
    #[error("the answer is no key set: {0}")]
    Format(#[from] serde_json::Error),
    #[error("the answer is larger than {SET_BYTES_MAX} bytes")]
    TooLarge,
}

//! How much of the log is kept: what is set, and the setting of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::compacted::{Compacted, Extent};
use crate::catalog::{self, raise_epoch};
use crate::clock::millis;
use crate::engine::{Decision, Read, Table, Transaction, Writes, decides};
use crate::{Error, lookup};

/// How much of an environment's log is kept. It is a setting of the environment, the same for all
/// processes. The newest change is always kept.
///
/// ```
/// use motet_store::{Clock, Retention, Store};
/// use serde_json::json;
///
/// let env = Store::in_memory().env("default")?;
/// env.set_retention(Retention::everything().bytes(0).latest())?;
/// for total in [10, 20, 30] {
///     env.put("Order", "o-1", json!({"total": total}))?;
/// }
/// env.put("Order", "o-2", json!({"total": 1}))?;
/// env.maintain()?;
///
/// let changes = env.log().read(Clock::ZERO, 100)?;
/// let clocks: Vec<u64> = changes.iter().map(|change| change.clock.number()).collect();
/// assert_eq!(clocks, [3, 4], "the latest change of each order");
/// # Ok::<(), motet_store::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Retention {
    /// Entries older than this are trimmed. Unset at first: age alone trims nothing.
    #[serde(default, with = "duration_ms", skip_serializing_if = "Option::is_none")]
    pub age: Option<Duration>,
    /// The oldest entries are trimmed while all together take more bytes than this, counted as key
    /// and value and 48 bytes each. 1 GiB at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// [Pins](crate::Log::pin) keep what would go otherwise, within so many bytes of the log's end.
    /// 10 GiB at first.
    #[serde(default = "pin_bytes_default")]
    pub pin_bytes: u64,
    /// Whether of what age and size would trim the latest change of each document that is there is
    /// kept. What is kept so counts towards no size. Not so at first.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub latest: bool,
}

impl Default for Retention {
    fn default() -> Self {
        Self { bytes: Some(BYTES_DEFAULT), ..Self::everything() }
    }
}

impl Retention {
    /// Keeps everything. The log grows with every change.
    #[must_use]
    pub const fn everything() -> Self {
        Self { age: None, bytes: None, pin_bytes: PIN_BYTES_DEFAULT, latest: false }
    }

    /// Also trims what is older than this.
    #[must_use]
    pub const fn age(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }

    /// Also trims the oldest beyond this size.
    #[must_use]
    pub const fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Pins keep at most so many bytes.
    #[must_use]
    pub const fn pin_bytes(mut self, bytes: u64) -> Self {
        self.pin_bytes = bytes;
        self
    }

    /// Keeps, of what age and size would trim, the latest change of each document that is there: the
    /// log is compacted instead of trimmed. So whoever begins at [`Clock::ZERO`](crate::Clock::ZERO)
    /// is given what makes all documents of today, and then every change as it comes; [`Log::read`]
    /// says how. What an environment has trimmed before, it makes again from its documents.
    ///
    /// [`Log::read`]: crate::Log::read
    #[must_use]
    pub const fn latest(mut self) -> Self {
        self.latest = true;
        self
    }

    pub(crate) async fn load(from: &dyn Read) -> Result<Self, Error> {
        match lookup::one(from, Table::Catalog, RETENTION_KEY).await? {
            None => Ok(Self::default()),
            Some(bytes) => catalog::parse(format_args!("retention of the log"), &bytes),
        }
    }
}

/// Sets the retention.
pub(crate) struct SetRetention(pub(crate) Retention);

impl SetRetention {
    async fn run(&self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let json = serde_json::to_vec(&self.0).expect("numbers can be written");
        let mut writes = Writes::default();
        writes.put(Table::Catalog, RETENTION_KEY, &json);
        match Compacted::load(transaction).await? {
            None if self.0.latest => {
                let kept = Extent::load(transaction).await?;
                Compacted::begin(kept.before()).put(&mut writes);
                raise_epoch(transaction, &mut writes).await?;
            }
            // It goes in the background, and is whole no longer.
            Some(compacted) if !self.0.latest => compacted.to_rebuild().put(&mut writes),
            _ => {}
        }
        Ok(Decision { writes, changes: 0 })
    }
}

decides!(SetRetention);

mod duration_ms {
    use super::{Deserialize, Duration, millis};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: serde::Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serde::Serialize::serialize(&duration.map(millis), serializer)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

const RETENTION_KEY: &[u8] = b"log/retention";
const BYTES_DEFAULT: u64 = 1 << 30;
const PIN_BYTES_DEFAULT: u64 = 10 << 30;

/// As environments have it that were made before there were pins.
const fn pin_bytes_default() -> u64 {
    PIN_BYTES_DEFAULT
}

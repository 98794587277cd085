//! The change log: every change of an environment in one order.

mod compact;
mod compacted;
mod entry;
mod pins;
mod reader;
mod rebuild;
mod retention;
mod tail;
mod trim;

pub(crate) use compacted::Compacted;
pub use compacted::Position;
pub(crate) use entry::EntryRecord;
pub use entry::Op;
pub use reader::{Change, ChangeHeader, Log};
pub use retention::Retention;
pub(crate) use retention::SetRetention;
pub use tail::Tail;
pub(crate) use trim::Trim;

use crate::engine::{Read, Table};
use crate::{Clock, Error, keys, lookup};

/// What an entry counts towards the log's size.
pub(crate) fn entry_bytes(key: &str, json: Option<&[u8]>) -> u64 {
    let bytes = ENTRY_OVERHEAD_BYTES + key.len() + json.map_or(0, <[u8]>::len);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Bytes of all entries up to and with this one. The newest entry is always kept.
pub(crate) async fn total_bytes(from: &dyn Read, newest: Clock) -> Result<u64, Error> {
    if newest == Clock::ZERO {
        return Ok(0);
    }
    let bytes = lookup::one(from, Table::Log, &keys::log(newest)).await?;
    let bytes = bytes.ok_or_else(|| damaged(newest, "it is missing"))?;
    decode(newest, &bytes).map(|entry| entry.total_bytes)
}

pub(crate) fn decode(clock: Clock, bytes: &[u8]) -> Result<EntryRecord<'_>, Error> {
    minicbor::decode(bytes).map_err(|error| damaged(clock, error))
}

fn damaged(clock: Clock, why: impl core::fmt::Display) -> Error {
    Error::Damaged { what: format!("the log's entry {clock}"), why: why.to_string() }
}

/// What an entry takes beside its key and value: the engine's own bookkeeping, and the numbers.
const ENTRY_OVERHEAD_BYTES: usize = 48;

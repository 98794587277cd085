//! Compacting a stretch of the log: of each document the latest change stays.

use core::ops::ControlFlow;

use motet_protocol::fault::planted;

use super::compacted::Compacted;
use super::decode;
use super::trim::Stretch;
use crate::document::Record;
use crate::engine::{Read, Table, Transaction, Writes};
use crate::keys::{self, TypeId};
use crate::{Clock, Error, lookup};

/// Removes the entries of a stretch, but for those that made a document what it is.
pub(super) async fn stretch(
    transaction: &dyn Transaction,
    stretch: Stretch,
    writes: &mut Writes,
) -> Result<(), Error> {
    let (_, to) = stretch;
    for (clock, is_latest) in latest(transaction, stretch).await? {
        if !is_latest || planted("compact-away-the-latest") {
            writes.remove(Table::Log, &keys::log(clock));
        }
    }
    Compacted { to, missing_from: None }.put(writes);
    Ok(())
}

/// The clocks of a stretch, and whether their changes made a document what it is.
pub(super) async fn latest(from: &dyn Read, stretch: Stretch) -> Result<Vec<(Clock, bool)>, Error> {
    let (clocks, documents) = entries(from, stretch).await?;
    let versions = versions(from, &documents).await?;
    let found = clocks.into_iter().zip(versions);
    Ok(found.map(|(clock, version)| (clock, version == Some(clock))).collect())
}

/// The clocks of a stretch, and the keys in `Documents` of what was changed.
async fn entries(
    from: &dyn Read,
    (first, last): Stretch,
) -> Result<(Vec<Clock>, Vec<Vec<u8>>), Error> {
    let (mut clocks, mut documents, mut failed) = (Vec::new(), Vec::new(), Ok(()));
    let mut show = |key: &[u8], bytes: &[u8]| {
        let clock = key.try_into().map_or(Clock::ZERO, Clock::from_bytes);
        match decode(clock, bytes) {
            Ok(entry) => {
                clocks.push(clock);
                documents.push(keys::document(TypeId(entry.type_id), entry.key));
                ControlFlow::Continue(())
            }
            Err(error) => {
                failed = Err(error);
                ControlFlow::Break(())
            }
        }
    };
    let (start, end) = (keys::log(first), keys::log(last.plus(1)));
    lookup::range(from, Table::Log, &start, Some(&end), &mut show).await?;
    failed.map(|()| (clocks, documents))
}

/// The versions at which documents are. One that cannot be read is an error: the change that made it
/// may be all that is left of it.
async fn versions(from: &dyn Read, documents: &[Vec<u8>]) -> Result<Vec<Option<Clock>>, Error> {
    let keys: Vec<_> = documents.iter().map(Vec::as_slice).collect();
    let (mut versions, mut failed) = (vec![None; keys.len()], Ok(()));
    let mut each = |place: usize, bytes: Option<&[u8]>| {
        let Some(bytes) = bytes else { return };
        let key = keys::split_document(keys[place]).map_or("", |(_, key)| key);
        match Record::parse(bytes, format_args!("the document {key:?}")) {
            Ok(record) => versions[place] = Some(record.version),
            Err(error) => failed = Err(error),
        }
    };
    from.get_many(Table::Documents, &keys, &mut each).await?;
    failed.map(|()| versions)
}

//! The compacted part of a log whose changes are gone: made again from the documents, or given up.

use core::ops::{Bound, ControlFlow};

use motet_protocol::fault::planted;

use super::compacted::Compacted;
use super::{EntryRecord, Op};
use crate::catalog::{Catalog, raise_epoch};
use crate::document::{Record, is_own_name};
use crate::engine::{Direction, Range, Table, Transaction, Writes};
use crate::keys::{self, TypeId};
use crate::shared::Shared;
use crate::{Clock, Error, lookup};

/// Adds the changes that are missing of the next documents.
pub(super) async fn add(
    transaction: &dyn Transaction,
    shared: &Shared,
    compacted: &Compacted,
    writes: &mut Writes,
) -> Result<(), Error> {
    let catalog = shared.catalog.of_transaction(transaction).await?;
    let documents_max = shared.limits.background_batch(DOCUMENTS_MAX);
    let batch = Batch::read(transaction, &catalog, compacted, documents_max).await?;
    let clocks: Vec<_> = batch.changes.iter().map(|change| keys::log(change.clock)).collect();
    let clocks: Vec<_> = clocks.iter().map(<[u8; 8]>::as_slice).collect();
    let mut there = vec![false; clocks.len()];
    let mut each = |place: usize, value: Option<&[u8]>| there[place] = value.is_some();
    transaction.get_many(Table::Log, &clocks, &mut each).await?;
    // One that is still there says more than can be made again.
    for (change, _) in batch.changes.iter().zip(there).filter(|(_, there)| !there) {
        writes.put(Table::Log, &keys::log(change.clock), &change.to_bytes());
    }
    let missing_from = batch.next.filter(|_| !planted("end-rebuild-early"));
    Compacted { to: compacted.to, missing_from }.put(writes);
    Ok(())
}

/// Removes the next entries of a part that is kept no longer, and with the last of them the record
/// that it is there.
pub(super) async fn drop(
    transaction: &dyn Transaction,
    compacted: &Compacted,
    entries_max: usize,
    writes: &mut Writes,
) -> Result<(), Error> {
    let mut count = 0;
    let mut show = |key: &[u8], _: &[u8]| {
        writes.remove(Table::Log, key);
        count += 1;
        if count < entries_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let (first, end) = (keys::log(Clock::ZERO), keys::log(compacted.to.plus(1)));
    lookup::range(transaction, Table::Log, &first, Some(&end), &mut show).await?;
    if count < entries_max {
        writes.remove(Table::Catalog, crate::catalog::COMPACTED_KEY);
        raise_epoch(transaction, writes).await?;
    }
    Ok(())
}

/// Documents whose last change has its place in the compacted part.
struct Batch {
    changes: Vec<Latest>,
    /// The first document after them; `None` if there is none.
    next: Option<Vec<u8>>,
}

/// The last change of a document, as far as the document says.
struct Latest {
    clock: Clock,
    type_id: TypeId,
    key: String,
    json: Vec<u8>,
}

impl Batch {
    async fn read(
        transaction: &dyn Transaction,
        catalog: &Catalog,
        compacted: &Compacted,
        documents_max: usize,
    ) -> Result<Self, Error> {
        let (mut batch, mut failed) = (Self { changes: Vec::new(), next: None }, Ok(()));
        let (mut documents, mut bytes) = (0, 0);
        let mut show = |at: &[u8], record: &[u8]| {
            if documents == documents_max || bytes >= BATCH_BYTES {
                batch.next = Some(at.to_vec());
                return ControlFlow::Break(());
            }
            documents += 1;
            match Latest::of(catalog, compacted.to, at, record) {
                Ok(change) => {
                    bytes += change.as_ref().map_or(0, |change| change.json.len());
                    batch.changes.extend(change);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Err(error);
                    ControlFlow::Break(())
                }
            }
        };
        let start = compacted.missing_from.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let range = Range {
            table: Table::Documents,
            from: start,
            to: Bound::Unbounded,
            direction: Direction::Forward,
        };
        transaction.range(range, &mut show).await?;
        failed.map(|()| batch)
    }
}

impl Latest {
    /// The change that made this document, if it lies up to this clock and is in the log at all.
    fn of(catalog: &Catalog, to: Clock, at: &[u8], bytes: &[u8]) -> Result<Option<Self>, Error> {
        let Some((type_id, key)) = keys::split_document(at) else { return Ok(None) };
        let record = Record::parse(bytes, format_args!("the document {key:?}"))?;
        let is_own = catalog.type_name(type_id).is_some_and(is_own_name);
        if record.version > to || is_own {
            return Ok(None);
        }
        let (clock, json) = (record.version, record.json.to_vec());
        Ok(Some(Self { clock, type_id, key: key.to_owned(), json }))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let entry = EntryRecord {
            op: Op::Put,
            type_id: self.type_id.0,
            key: &self.key,
            previous: 0,
            time: 0,
            origin: 0,
            transaction: self.clock.number(),
            total_bytes: 0,
            json: Some(&self.json),
        };
        minicbor::to_vec(entry).expect("writing into a Vec does not fail")
    }
}

/// How many documents one transaction looks at.
const DOCUMENTS_MAX: usize = 1_000;

/// Bytes of values after which a transaction ends.
const BATCH_BYTES: usize = 4 << 20;

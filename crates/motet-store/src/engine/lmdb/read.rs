//! Reading a table, in a view or in the transaction that writes.

use std::ops::{Bound, ControlFlow};

use heed::RoTxn;

use super::Database;
use crate::engine::memory::is_empty;
use crate::engine::{Direction, OnEntry, OnValue, Range};

/// Looks up keys in order.
pub(super) fn get_many(
    table: &Database,
    txn: &RoTxn<'_>,
    keys: &[&[u8]],
    each: &mut OnValue<'_>,
) -> heed::Result<()> {
    for (place, key) in keys.iter().enumerate() {
        // To LMDB an empty key is an error; here it is one that is always absent.
        let value = if key.is_empty() { None } else { table.get(txn, key)? };
        each(place, value);
    }
    Ok(())
}

/// Visits a range.
pub(super) fn range(
    table: &Database,
    txn: &RoTxn<'_>,
    range: Range<'_>,
    each: &mut OnEntry<'_>,
) -> heed::Result<()> {
    let Some(bounds) = bounds(range.from, range.to) else { return Ok(()) };
    match range.direction {
        Direction::Forward => visit(table.range(txn, &bounds)?, each),
        Direction::Backward => visit(table.rev_range(txn, &bounds)?, each),
    }
}

fn visit<'t>(
    entries: impl Iterator<Item = heed::Result<(&'t [u8], &'t [u8])>>,
    each: &mut OnEntry<'_>,
) -> heed::Result<()> {
    for entry in entries {
        let (key, value) = entry?;
        if each(key, value) == ControlFlow::Break(()) {
            break;
        }
    }
    Ok(())
}

type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// Ends that LMDB can look for: an empty key is none of them, for no entry has it.
fn bounds<'k>(from: Bound<&'k [u8]>, to: Bound<&'k [u8]>) -> Option<Bounds<'k>> {
    if is_empty(from, to) {
        return None;
    }
    let from = match from {
        Bound::Included([]) | Bound::Excluded([]) => Bound::Unbounded,
        from => from,
    };
    match to {
        Bound::Included([]) | Bound::Excluded([]) => None,
        to => Some((from, to)),
    }
}

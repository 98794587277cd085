//! The questions that the layers above the engine ask it.

use core::ops::Bound;

use crate::Error;
use crate::clock::Head;
use crate::engine::{Direction, OnEntry, Range, Read, Table};

/// The value of one key.
pub(crate) async fn one(
    from: &dyn Read,
    table: Table,
    key: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let mut found = None;
    from.get_many(table, &[key], &mut |_, value| found = value.map(<[u8]>::to_vec)).await?;
    Ok(found)
}

/// All entries from a key on and below another, in order.
pub(crate) async fn range(
    from: &dyn Read,
    table: Table,
    start: &[u8],
    end: Option<&[u8]>,
    each: &mut OnEntry<'_>,
) -> Result<(), Error> {
    let to = end.map_or(Bound::Unbounded, Bound::Excluded);
    let range = Range { table, from: Bound::Included(start), to, direction: Direction::Forward };
    from.range(range, each).await
}

/// Where the log ends.
pub(crate) async fn head(from: &dyn Read) -> Result<Head, Error> {
    match one(from, Table::Catalog, Head::KEY).await? {
        None => Ok(Head::default()),
        Some(bytes) => Head::from_bytes(&bytes).ok_or_else(|| Error::Damaged {
            what: "the log's head".into(),
            why: format!("it has {} bytes", bytes.len()),
        }),
    }
}

/// The time by which a view is read, at a wall clock that shows this: never before that of what was
/// written last. What a writer took for expired, no reader shows.
pub(crate) async fn now_ms(from: &dyn Read, wall_ms: u64) -> Result<u64, Error> {
    Ok(head(from).await?.time.unix_ms().max(wall_ms))
}

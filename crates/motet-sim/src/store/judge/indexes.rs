//! Index entries equal a recomputation.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

use motet_store::engine::{Direction, Range, Table};

use super::{Verdict, holds};
use crate::store::engine::Core;
use crate::store::model::entries::entries;
use crate::store::model::{Index, Kind, Model, Stage};

/// Compares all indexes that writers keep.
pub(crate) fn check(core: &Core, model: &Model, now_ms: u64) -> Verdict {
    for (kind, record) in model.kinds.iter().enumerate() {
        for index in &record.indexes {
            check_index(core, model, kind as u8, record, index, now_ms)?;
        }
    }
    Ok(())
}

/// The keys of all entries of an index.
pub(crate) fn stored(core: &Core, number: u32) -> BTreeSet<Vec<u8>> {
    let (from, to) = (number.to_be_bytes(), (number + 1).to_be_bytes());
    let range = Range {
        table: Table::Index,
        from: Bound::Included(&from),
        to: Bound::Excluded(&to),
        direction: Direction::Forward,
    };
    let mut found = BTreeSet::new();
    core.show(range, &mut |key, _| {
        found.insert(key.to_vec());
        ControlFlow::Continue(())
    });
    found
}

fn check_index(
    core: &Core,
    model: &Model,
    kind: u8,
    record: &Kind,
    index: &Index,
    now_ms: u64,
) -> Verdict {
    if index.stage == Stage::Failed {
        return Ok(());
    }
    let stored = stored(core, index.number);
    let (mut all, mut due) = (BTreeSet::new(), BTreeSet::new());
    for (id, doc) in model.docs.of_kind(kind) {
        let own = entries(index.number, index.shape, id.key, &doc.body);
        // While it is being built, entries that a write left as they were may be still to come.
        if index.stage == Stage::Ready {
            due.extend(own.iter().cloned());
        }
        all.extend(own);
    }
    let name =
        || format!("the index {} ({:?}) of type {:?}", index.name, index.shape, record.number);
    holds("index", stored.is_subset(&all), || {
        format!("{} has entries of nothing: {:?}", name(), stored.difference(&all).next())
    })?;
    holds("index", due.is_subset(&stored), || {
        format!("{} lacks the entry {:?}", name(), due.difference(&stored).next())
    })?;
    if index.stage == Stage::Ready && index.shape.is_unique() {
        let mut values = BTreeSet::new();
        let live = model.docs.of_kind(kind).filter(|(_, doc)| doc.is_live(now_ms));
        for value in live.filter_map(|(_, doc)| index.shape.unique(&doc.body)) {
            holds("index", values.insert(value), || format!("{} has {value} twice", name()))?;
        }
    }
    Ok(())
}

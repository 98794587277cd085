//! What holds when nobody writes any more and maintenance has been done.

use std::ops::{Bound, ControlFlow};

use motet_store::OnDelete;
use motet_store::engine::{Direction, Range, Table};

use super::indexes::stored;
use super::retention::is_due;
use super::{Verdict, holds};
use crate::store::action::{Filter, Keys, Read, Search, Sort};
use crate::store::engine::Core;
use crate::store::model::draft::references_to;
use crate::store::model::rules::Reference;
use crate::store::model::{Id, Model, Stage};

/// Judges an environment at rest at this true time.
pub(crate) fn check(core: &Core, model: &Model, now_ms: u64) -> Verdict {
    swept(model, now_ms)?;
    for index in model.kinds.iter().flat_map(|kind| &kind.indexes) {
        holds("index", index.stage != Stage::Building, || {
            format!("the index {} is still being built", index.name)
        })?;
    }
    for number in &model.dropped {
        holds("index", stored(core, *number).is_empty(), || {
            format!("the dropped index {number} still has entries")
        })?;
    }
    if let Some(first) = model.log.front() {
        holds(
            "clock",
            first.clock == model.head || !is_due(model, model.pinned(), first, now_ms),
            || {
                format!(
                    "the log still begins at {} with {:?}, {:?}",
                    first.clock, model.kept, model.pins
                )
            },
        )?;
    }
    holds("clock", model.whole().is_some() == model.kept.latest, || {
        format!("the log has {:?} with {:?}", model.compacted, model.kept)
    })?;
    let clocks = log_clocks(core);
    let expected = model.entries_after(0).map(|entry| entry.clock);
    holds("clock", expected.eq(clocks.iter().copied()), || {
        format!("the log holds {} entries instead of {}", clocks.len(), model.log.len())
    })
}

/// No document stays whose time has come, but those that others may not lose.
fn swept(model: &Model, now_ms: u64) -> Verdict {
    for (id, doc) in model.docs.all() {
        if doc.is_live(now_ms) {
            continue;
        }
        let restricts = |(kind, reference): &(u8, Reference)| {
            reference.on_delete == OnDelete::Restrict
                && model
                    .docs
                    .of_kind(*kind)
                    .any(|(_, doc)| reference.field.leads_to(&doc.body, id.key))
        };
        // What its removal would do to others may break their rules as well.
        let bound = references_to(model, id.kind);
        let held = bound.iter().any(|one| restricts(one) || one.1.on_delete == OnDelete::SetNull);
        let cascades = bound.iter().any(|one| one.1.on_delete == OnDelete::Cascade);
        holds("expiry", held || cascades, || format!("{} was not swept", id.text()))?;
    }
    Ok(())
}

/// What a reader that has just come looks at.
pub(crate) fn reads(kind: u8) -> Vec<Read> {
    let all = Keys { prefix: false, from: None, limit: None };
    let search = Search { filter: Filter::All, sort: Sort::NThenUDescending, limit: Some(2) };
    let gets = Id::of_kind(kind).map(|id| Read::Get(kind, id.key));
    gets.chain([Read::Range(kind, all), Read::Query(kind, search)]).collect()
}

fn log_clocks(core: &Core) -> Vec<u64> {
    let range = Range {
        table: Table::Log,
        from: Bound::Unbounded,
        to: Bound::Unbounded,
        direction: Direction::Forward,
    };
    let mut clocks = Vec::new();
    core.show(range, &mut |key, _| {
        clocks.push(key.try_into().map_or(0, u64::from_be_bytes));
        ControlFlow::Continue(())
    });
    clocks
}

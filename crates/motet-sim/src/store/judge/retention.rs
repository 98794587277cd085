//! The log keeps what its retention says, and always its newest entry: of what it is compacted to, the
//! latest change of each document and no other.

use motet_store::Op;

use super::raw::{self, Raw};
use super::{Verdict, changes, holds};
use crate::store::calls::{Asked, MadeCall};
use crate::store::model::{Compacted, Entry, Model};

/// Judges what a decider did at this wall time to the log that was there before, and does it to the
/// model's.
pub(super) fn apply(model: &mut Model, call: &MadeCall, wall_ms: u64, raw: &Raw) -> Verdict {
    let record = raw.catalog.iter().find(|(name, _)| name == "log/compacted");
    let record = record.map(|(_, value)| value.as_deref());
    if let Some(Some(record)) = record {
        compacted(model, call, wall_ms, read(record)?)?;
    }
    trimmed(model, call, wall_ms, &raw.trimmed)?;
    if record == Some(None) {
        let gone = model.compacted.take();
        let empty = gone.as_ref().is_some_and(|gone| gone.entries.is_empty());
        holds("clock", empty && !model.kept.latest && raises_epoch(raw), || {
            format!("of {gone:?} nothing was to be kept")
        })?;
    } else if record.is_some() && model.compacted.is_none() {
        return Err(("clock", "it was not begun".to_owned()));
    }
    made_again(model, call, raw)
}

fn raises_epoch(raw: &Raw) -> bool {
    raw.catalog.iter().any(|(name, _)| name == "epoch")
}

/// Up to where the log is compacted, and whether no change is missing.
fn read(record: &[u8]) -> Result<(u64, bool), (&'static str, String)> {
    match record.split_first_chunk::<8>() {
        Some((to, [whole @ (0 | 1), ..])) => Ok((u64::from_be_bytes(*to), *whole == 1)),
        _ => Err(("catalog", format!("the log is compacted to {record:?}"))),
    }
}

/// The log is compacted up to here now.
fn compacted(
    model: &mut Model,
    call: &MadeCall,
    wall_ms: u64,
    (to, is_whole): (u64, bool),
) -> Verdict {
    let (pinned, before) = (model.pinned(), model.kept_from() - 1);
    let Some(mut known) = model.compacted.take() else {
        let asked = matches!(&call.asked, Asked::SetRetention(kept) if kept.latest);
        model.compacted = Some(Compacted { to, is_whole, ..Compacted::default() });
        return holds("clock", asked && to == before && is_whole == (to == 0), || {
            format!("a log from {before} is compacted to {to}, whole: {is_whole}")
        });
    };
    let right = match &call.asked {
        Asked::SetRetention(kept) => !kept.latest && to == known.to && !is_whole,
        Asked::Maintain => model.kept.latest && (to == known.to || known.is_whole && is_whole),
        _ => false,
    };
    holds("clock", right && to >= known.to && to < model.head.max(1), || {
        format!("a log up to {} is compacted to {to}, whole: {is_whole}", model.head)
    })?;
    for _ in known.to..to {
        let entry = model.log.pop_front().expect("the newest is after them");
        let due = is_due(model, pinned, &entry, wall_ms);
        holds("clock", due, || {
            format!("{} was compacted at {:?}, pinned after {pinned:?}", entry.clock, model.kept)
        })?;
        known.entries.insert(entry.clock, entry);
    }
    model.compacted = Some(Compacted { to, is_whole, ..known });
    Ok(())
}

/// Takes out of the model's log what was removed.
fn trimmed(model: &mut Model, call: &MadeCall, wall_ms: u64, clocks: &[u64]) -> Verdict {
    let pinned = model.pinned();
    for clock in clocks {
        if let Some(compacted) = &mut model.compacted {
            let found = compacted.entries.remove(clock).is_some();
            let may_be_missing = *clock <= compacted.to && !compacted.is_whole;
            holds("clock", found || may_be_missing, || {
                format!("{clock} was removed from a log that is compacted to {}", compacted.to)
            })?;
            continue;
        }
        let kept_from = model.kept_from();
        if *clock < kept_from {
            continue;
        }
        let due = model.entry(*clock).is_some_and(|entry| is_due(model, pinned, entry, wall_ms));
        let asked = matches!(call.asked, Asked::Maintain);
        holds("clock", asked && *clock == kept_from && *clock < model.head, || {
            format!("{clock} was trimmed from a log from {kept_from} to {}", model.head)
        })?;
        holds("clock", due, || {
            format!("{clock} was trimmed at {:?}, pinned after {pinned:?}", model.kept)
        })?;
        model.log.pop_front();
    }
    Ok(())
}

/// Changes that had gone are there again, as far as their documents say.
fn made_again(model: &mut Model, call: &MadeCall, raw: &Raw) -> Verdict {
    for entry in &raw.again {
        let id = changes::find(model, entry.kind, &entry.key);
        let asked = matches!(call.asked, Asked::Maintain) && model.kept.latest;
        let known = model.compacted.as_mut().filter(|part| entry.clock <= part.to && asked);
        let (Some(id), Some(known)) = (id, known) else {
            return Err(("clock", format!("{entry:?} is there again")));
        };
        let says = (entry.previous, entry.time, entry.origin, entry.transaction);
        let says_no_more = says == (0, 0, 0, entry.clock);
        let missing = known.entries.insert(entry.clock, entry.of(id)).is_none();
        holds("clock", missing && says_no_more, || format!("{entry:?} was not missing"))?;
    }
    Ok(())
}

/// What the log is compacted to has the latest change of each document, and no other.
pub(super) fn check(model: &Model) -> Verdict {
    let Some(compacted) = &model.compacted else { return Ok(()) };
    for entry in compacted.entries.values() {
        let value = entry.json.as_deref().map(raw::json).transpose();
        let value = value.map_err(|why| ("clock", why))?;
        let made = model.docs.get(entry.id).is_some_and(|doc| {
            doc.version == entry.clock && value.as_ref() == Some(&doc.body.to_json())
        });
        holds("clock", made && entry.op == Op::Put, || {
            format!("a log that is compacted to {} has {entry:?}", compacted.to)
        })?;
    }
    let mut versions = model.docs.all().map(|(_, doc)| doc.version);
    let is_missing =
        |version: &u64| *version <= compacted.to && !compacted.entries.contains_key(version);
    let missing = versions.find(is_missing).filter(|_| compacted.is_whole);
    holds("clock", missing.is_none(), || {
        format!("a log that is compacted to {} lacks {missing:?}", compacted.to)
    })
}

/// Whether an entry may go from a log that is pinned after this clock.
pub(crate) fn is_due(model: &Model, pinned: Option<u64>, entry: &Entry, wall_ms: u64) -> bool {
    let old =
        model.kept.age_ms.is_some_and(|age_ms| entry.time >> 16 < wall_ms.saturating_sub(age_ms));
    let newest = model.total_bytes();
    let beyond =
        model.kept.bytes.is_some_and(|bytes| entry.total_bytes <= newest.saturating_sub(bytes));
    let pinnable = entry.total_bytes > newest.saturating_sub(model.kept.pin_bytes);
    let pinned = pinnable && pinned.is_some_and(|after| entry.clock > after);
    (old || beyond) && !pinned
}

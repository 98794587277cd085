//! The log keeps what its retention says, and always its newest entry.

use super::{Verdict, holds};
use crate::store::model::{Entry, Model};

/// Judges what maintenance removed at this wall time, and takes it out of the model's log.
pub(super) fn trimmed(model: &mut Model, wall_ms: u64, clocks: &[u64]) -> Verdict {
    let pinned = model.pinned();
    for clock in clocks {
        let kept_from = model.kept_from();
        if *clock < kept_from {
            continue;
        }
        let due = model.entry(*clock).is_some_and(|entry| is_due(model, pinned, entry, wall_ms));
        holds("clock", *clock == kept_from && *clock < model.head, || {
            format!("{clock} was trimmed from a log from {kept_from} to {}", model.head)
        })?;
        holds("clock", due, || {
            format!("{clock} was trimmed at {:?}, pinned after {pinned:?}", model.kept)
        })?;
        model.log.pop_front();
    }
    Ok(())
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

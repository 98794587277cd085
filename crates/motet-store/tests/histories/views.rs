//! Whether what was read can have been read at a clock.

use super::recorder::{Found, Read, Reads};
use super::replay::{Replay, State};

/// The first clock between the two looks at the log's end, and not before `floor`, at which all
/// reads hold.
pub(crate) fn clock_of(reads: &Reads, floor: u64, replay: &Replay) -> Option<u64> {
    let first = reads.head_before.max(floor);
    (first..=reads.head_after).find(|clock| wrong_at(reads, *clock, replay).is_none())
}

/// The first read that does not hold just after this clock.
pub(crate) fn wrong_at<'r>(reads: &'r Reads, clock: u64, replay: &Replay) -> Option<&'r Read> {
    reads.each.iter().find(|read| !holds(read, reads, clock, replay))
}

fn holds(read: &Read, reads: &Reads, clock: u64, replay: &Replay) -> bool {
    match read {
        Read::Key { of, key, found } => match (replay.at(of, key, clock), found) {
            (None, None) => true,
            (None, Some(_)) => false,
            (Some(state), None) => can_have_ended(state, reads.ms_after),
            (Some(state), Some(found)) => {
                state.expires_ms.is_none_or(|expires_ms| expires_ms > reads.ms_before)
                    && is_same(found, key, state)
            }
        },
        Read::Prefix { of, prefix, limit, found } => {
            let there = replay.all_at(of, clock).filter(|(key, _)| key.starts_with(prefix));
            are_same(found, there.take(limit.unwrap_or(usize::MAX)))
        }
        Read::Field { of, field, value, found } => are_same(
            found,
            replay.all_at(of, clock).filter(|(_, state)| state.value[field] == *value),
        ),
    }
}

/// Whether a document can count as absent at this time.
pub(crate) fn can_have_ended(state: &State, ms: u64) -> bool {
    state.expires_ms.is_some_and(|expires_ms| expires_ms <= ms)
}

/// Only types without expiries are read so.
fn are_same<'s>(found: &[Found], mut there: impl Iterator<Item = (&'s str, &'s State)>) -> bool {
    let all = found
        .iter()
        .all(|found| there.next().is_some_and(|(key, state)| is_same(found, key, state)));
    all && there.next().is_none()
}

fn is_same(found: &Found, key: &str, state: &State) -> bool {
    found.key == key
        && found.version.is_none_or(|version| version == state.version)
        && found.value == state.value
}

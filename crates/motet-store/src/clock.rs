//! The change log's numbers and their times.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// The place of a change in its environment's log: 1 for the first change, and one more for each.
///
/// A document's version is the clock of its last change, so versions never restart: a document that
/// is removed and created again continues above everything that was.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Clock(u64);

impl Clock {
    /// Before the first change.
    pub const ZERO: Self = Self(0);

    /// The clock with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The clock `changes` later. It stays at 2^64 - 1, which no log reaches: at a million changes a
    /// second that is in 584,000 years. But anybody may ask for what comes after it.
    #[must_use]
    pub const fn plus(self, changes: u64) -> Self {
        Self(self.0.saturating_add(changes))
    }

    /// As a key: clocks sort as their bytes do.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// The clock with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_be_bytes(bytes))
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bits of a [`Hlc`] that count within a millisecond.
const COUNTER_BITS: u32 = 16;

/// A hybrid logical clock: wall time in milliseconds, and a counter that keeps it growing when the
/// wall clock stands still or is set back (Kulkarni et al., "Logical Physical Clocks", 2014).
///
/// It orders changes of several stores; within one environment the [`Clock`] does.
///
/// ```
/// use motet_store::Hlc;
///
/// let first = Hlc::ZERO.next(1_700_000_000_000);
/// let second = first.next(1_600_000_000_000); // the wall clock was set back
/// assert!(second > first);
/// assert_eq!(second.unix_ms(), 1_700_000_000_000);
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Hlc(u64);

impl Hlc {
    /// Before every time.
    pub const ZERO: Self = Self(0);

    /// The next time after this one, at a wall clock that shows `unix_ms`.
    #[must_use]
    pub const fn next(self, unix_ms: u64) -> Self {
        let wall = unix_ms << COUNTER_BITS;
        if wall > self.0 { Self(wall) } else { Self(self.0 + 1) }
    }

    /// The wall time in it, milliseconds since 1970.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        self.0 >> COUNTER_BITS
    }

    /// As one number: times sort as their numbers do.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The time with this number.
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// Where a log ends: the last clock that was given and the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The clock of the last change, [`Clock::ZERO`] while there is none.
    pub clock: Clock,
    /// The time of the last transaction that wrote anything, be it a change in the log or not: what
    /// had expired by then has expired for every later one, whatever its process's wall clock shows.
    pub time: Hlc,
}

impl Head {
    /// Where an engine keeps it, in the catalogue.
    pub const KEY: &'static [u8] = b"head";

    /// The bytes that an engine keeps under [`Head::KEY`].
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.clock.to_bytes());
        bytes[8..].copy_from_slice(&self.time.number().to_be_bytes());
        bytes
    }

    /// The head with these bytes, if it is one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (clock, time) = bytes.split_first_chunk::<8>()?;
        let time: [u8; 8] = time.try_into().ok()?;
        Some(Self {
            clock: Clock::from_bytes(*clock),
            time: Hlc::from_number(u64::from_be_bytes(time)),
        })
    }
}

/// A duration in whole milliseconds, as many as a number of 64 bits holds.
pub(crate) const fn millis(duration: Duration) -> u64 {
    let millis = duration.as_millis();
    if millis > u64::MAX as u128 { u64::MAX } else { millis as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_sort_as_their_bytes_do() {
        let clocks = [0, 1, 255, 256, 65_536, u64::MAX].map(Clock::new);
        for pair in clocks.windows(2) {
            assert!(pair[0].to_bytes() < pair[1].to_bytes());
            assert_eq!(Clock::from_bytes(pair[1].to_bytes()), pair[1]);
        }
    }

    #[test]
    fn a_hybrid_clock_grows_whatever_the_wall_clock_does() {
        let mut last = Hlc::ZERO;
        for unix_ms in [10, 10, 9, 0, 11, 11] {
            let next = last.next(unix_ms);
            assert!(next > last, "{next:?} after {last:?} at {unix_ms}");
            last = next;
        }
        assert_eq!(last.unix_ms(), 11);
    }

    #[test]
    fn more_changes_than_the_counter_holds_borrow_from_the_next_millisecond() {
        let full = Hlc::from_number((5 << COUNTER_BITS) | 0xffff);
        assert_eq!(full.next(5).unix_ms(), 6);
    }

    #[test]
    fn a_head_that_was_cut_short_is_none() {
        let head = Head { clock: Clock::new(7), time: Hlc::from_number(9) };
        assert_eq!(Head::from_bytes(&head.to_bytes()), Some(head));
        assert_eq!(Head::from_bytes(&head.to_bytes()[..15]), None);
        assert_eq!(Head::from_bytes(&[0; 17]), None);
    }
}

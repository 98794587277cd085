//! Monotonic time as the cores see it, and the watcher's own waking time.
//!
//! A core reads no clock: each driver hands it an [`Instant`] with every call. Wall-clock time is
//! data (a publication's timestamp) and never decides anything.

use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point on one driver's monotonic clock, in microseconds since that driver's own origin.
///
/// Two contexts never compare their instants; only differences of one clock mean anything.
///
/// ```
/// use core::time::Duration;
/// use motet_protocol::Instant;
///
/// let start = Instant::from_micros(1_000);
/// let later = start + Duration::from_millis(2);
/// assert_eq!(later - start, Duration::from_millis(2));
/// assert_eq!(start - later, Duration::ZERO, "differences saturate");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);

    /// Builds an instant from microseconds since the driver's origin.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the driver's origin.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// How late a core may be called before it counts itself as stalled.
///
/// Above the 1 s floor of hidden-page timers, so ordinary throttling is not a stall.
pub const STALL_THRESHOLD: Duration = Duration::from_secs(1);

/// The watcher's own waking time: its monotonic clock minus the stalls it can prove.
///
/// A frozen, suspended or throttled watcher must not conclude that everybody else died while it
/// slept. It knows it was stalled when the clock has moved past the time at which it asked to be
/// called by more than [`STALL_THRESHOLD`]; that surplus is taken out of every duration measured
/// with [`AwakeClock::now`].
///
/// ```
/// use core::time::Duration;
/// use motet_protocol::{AwakeClock, Instant};
///
/// let mut clock = AwakeClock::new(Instant::ZERO);
/// let asked_for = Some(Instant::from_micros(100_000));
/// // Called 10 s late: a stall, and waking time stands where the timer was due.
/// let stall = clock.advance(Instant::from_micros(10_100_000), asked_for);
/// assert_eq!(stall, Some(Duration::from_secs(10)));
/// assert_eq!(clock.now(), Instant::from_micros(100_000));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AwakeClock {
    last: Instant,
    stalled: Duration,
}

impl AwakeClock {
    /// Starts counting at `now`.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self { last: now, stalled: Duration::ZERO }
    }

    /// Moves the clock to `now`; `due` is the time at which the core had asked to be called.
    ///
    /// Returns the length of the stall when there was one. A clock that steps back is held.
    pub fn advance(&mut self, now: Instant, due: Option<Instant>) -> Option<Duration> {
        if now <= self.last {
            return None;
        }
        let expected = due.map_or(now, |due| due.max(self.last));
        self.last = now;
        let late = now - expected;
        if late <= STALL_THRESHOLD {
            return None;
        }
        self.stalled += late;
        Some(late)
    }

    /// Waking time: comparable only with other values of this clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant(
            self.last.0.saturating_sub(u64::try_from(self.stalled.as_micros()).unwrap_or(u64::MAX)),
        )
    }

    /// The monotonic instant at which waking time will reach `awake`, if no stall intervenes.
    #[must_use]
    pub fn monotonic(&self, awake: Instant) -> Instant {
        awake + self.stalled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_below_the_threshold_is_not_a_stall() {
        let mut clock = AwakeClock::new(Instant::ZERO);
        assert_eq!(clock.advance(Instant::from_micros(900_000), Some(Instant::ZERO)), None);
        assert_eq!(clock.now(), Instant::from_micros(900_000));
    }

    #[test]
    fn a_clock_that_steps_back_is_held() {
        let mut clock = AwakeClock::new(Instant::from_micros(50));
        assert_eq!(clock.advance(Instant::from_micros(10), None), None);
        assert_eq!(clock.now(), Instant::from_micros(50));
    }

    #[test]
    fn deadlines_in_waking_time_move_with_a_stall() {
        let mut clock = AwakeClock::new(Instant::ZERO);
        let deadline = clock.now() + Duration::from_secs(4);
        clock.advance(Instant::from_micros(60_000_000), Some(Instant::ZERO));
        assert!(clock.now() < deadline);
        assert_eq!(clock.monotonic(deadline), Instant::from_micros(64_000_000));
    }
}

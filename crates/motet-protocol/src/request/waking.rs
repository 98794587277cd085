//! The caller's waking time, and the chance it gives to replies that waited while it was late.

use core::time::Duration;

use crate::time::{AwakeClock, Instant};

/// How long the table goes unobserved while something is pending. Bounds the part of a freeze
/// that can be mistaken for waiting.
const WATCH: Duration = Duration::from_secs(1);

/// Lateness from which on replies may be waiting behind the timer that was late.
const LATE: Duration = Duration::from_millis(20);

/// How long a late timer waits for them. One round of the event loop is enough; this is several.
const GRACE: Duration = Duration::from_millis(50);

/// Decides which time has passed for pending requests, and when timers may fire (rules E5, E22).
#[derive(Clone, Copy, Debug)]
pub(super) struct Waking {
    clock: AwakeClock,
    /// Until when timers hold back for replies that queued up while the caller was late.
    drain_until: Option<Instant>,
}

impl Waking {
    pub(super) const fn new(now: Instant) -> Self {
        Self { clock: AwakeClock::new(now), drain_until: None }
    }

    /// Waking time.
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Moves on to `now`; `earliest` is the earliest timer in waking time, if any.
    pub(super) fn advance(&mut self, now: Instant, earliest: Option<Instant>) {
        let due = self.next(earliest);
        self.clock.advance(now, due);
        // A drain is not prolonged by being late again: with timers that run once a minute
        // nothing would ever fire.
        if due.is_some_and(|due| now - due > LATE) && self.drain_until.is_none() {
            self.drain_until = Some(self.clock.now() + GRACE);
        }
    }

    /// Whether queued replies are still being waited for.
    pub(super) const fn draining(&self) -> bool {
        self.drain_until.is_some()
    }

    /// Whether timers may fire now; ends a drain whose time is over.
    pub(super) fn may_fire(&mut self) -> bool {
        if self.drain_until.is_some_and(|until| self.clock.now() < until) {
            return false;
        }
        self.drain_until = None;
        true
    }

    /// Nothing is pending any more, so there is nothing to drain.
    pub(super) const fn settle(&mut self) {
        self.drain_until = None;
    }

    /// When to be called, on the driver's clock.
    pub(super) fn next(&self, earliest: Option<Instant>) -> Option<Instant> {
        let due = earliest?.min(self.clock.now() + WATCH);
        Some(self.clock.monotonic(self.drain_until.unwrap_or(due)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: Instant = Instant::from_micros(500_000);

    #[test]
    fn a_timer_that_is_on_time_fires_at_once() {
        let mut waking = Waking::new(Instant::ZERO);
        waking.advance(TIMER, Some(TIMER));
        assert!(waking.may_fire() && !waking.draining());
    }

    #[test]
    fn a_late_timer_holds_back_once_and_then_fires_however_late_it_is_again() {
        let mut waking = Waking::new(Instant::ZERO);
        waking.advance(TIMER + Duration::from_secs(60), Some(TIMER));
        assert!(!waking.may_fire());
        waking.advance(TIMER + Duration::from_secs(120), Some(TIMER));
        assert!(waking.may_fire());
    }

    #[test]
    fn a_freeze_between_two_timers_is_noticed_by_the_watch() {
        let mut waking = Waking::new(Instant::ZERO);
        let timer = Some(Instant::ZERO + Duration::from_secs(30));
        waking.advance(Instant::ZERO + Duration::from_secs(20), timer);
        assert_eq!(waking.now(), Instant::ZERO + WATCH);
    }

    #[test]
    fn without_a_timer_nobody_asks_to_be_called() {
        assert_eq!(Waking::new(Instant::ZERO).next(None), None);
    }
}

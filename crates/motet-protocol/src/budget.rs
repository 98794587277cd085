//! Limits on how often something may be repeated, so that failure does not feed on itself.

use core::time::Duration;
use std::collections::VecDeque;

use crate::rng::Rng;
use crate::time::Instant;

/// A token bucket for retries (rule E6): bursts up to `capacity`, then one per `refill`.
///
/// Holds one instant, whatever its capacity.
///
/// ```
/// use core::time::Duration;
/// use motet_protocol::{Instant, RetryBudget};
///
/// let mut budget = RetryBudget::new(2, Duration::from_secs(1));
/// let now = Instant::ZERO;
/// assert!(budget.take(now) && budget.take(now));
/// assert!(!budget.take(now), "the burst is spent");
/// assert!(budget.take(now + Duration::from_secs(1)));
/// ```
#[derive(Clone, Debug)]
pub struct RetryBudget {
    refill: Duration,
    burst: Duration,
    /// When the bucket will be full again; further ahead means emptier.
    full_at: Instant,
}

impl RetryBudget {
    /// A full bucket.
    #[must_use]
    pub fn new(capacity: u32, refill: Duration) -> Self {
        Self { refill, burst: refill.saturating_mul(capacity), full_at: Instant::ZERO }
    }

    /// Takes a token if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + self.refill;
        let granted = full_at - now <= self.burst;
        if granted {
            self.full_at = full_at;
        }
        granted
    }
}

/// Before a restart: a SharedWorker that is started anew while the browser is still ending the
/// old one of that name is connected to the old one, and nobody answers.
const RESTART_WAIT: Duration = Duration::from_millis(50);

/// At most `limit` restarts in any `window` (rules B26 and B35): each after 50 ms, and those that
/// follow a first one after a jittered delay more, for they tell of a fault that all share.
///
/// ```
/// use core::time::Duration;
/// use motet_protocol::{Instant, RestartBudget, Rng};
///
/// let mut rng = Rng::from_seed([1; 32]);
/// let mut budget = RestartBudget::new(5, Duration::from_secs(60), Duration::from_millis(500));
/// let minute = Instant::ZERO + Duration::from_secs(60);
/// for _ in 0..5 {
///     assert!(budget.next(Instant::ZERO, &mut rng) < minute);
/// }
/// assert!(budget.next(Instant::ZERO, &mut rng) >= minute);
/// ```
#[derive(Clone, Debug)]
pub struct RestartBudget {
    window: Duration,
    jitter: Duration,
    limit: usize,
    /// The last `limit` planned restarts, oldest first.
    planned: VecDeque<Instant>,
}

impl RestartBudget {
    /// A budget from which nothing was taken. A limit of 0 counts as 1.
    #[must_use]
    pub fn new(limit: u32, window: Duration, jitter: Duration) -> Self {
        Self { window, jitter, limit: limit.max(1) as usize, planned: VecDeque::new() }
    }

    /// Plans one more restart and says when to do it. The plan counts even if it is not carried
    /// out, so call it once per restart.
    pub fn next(&mut self, now: Instant, rng: &mut Rng) -> Instant {
        let mut earliest = self.planned.back().map_or(now, |last| now.max(*last));
        if self.planned.len() == self.limit
            && let Some(oldest) = self.planned.pop_front()
        {
            earliest = earliest.max(oldest + self.window);
        }
        let first = self.planned.back().is_none_or(|last| now >= *last + self.window);
        let jitter = if first { Duration::ZERO } else { rng.jitter(self.jitter) };
        let at = earliest + RESTART_WAIT + jitter;
        self.planned.push_back(at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_refills_one_token_at_a_time_and_never_above_its_capacity() {
        let mut budget = RetryBudget::new(3, Duration::from_secs(1));
        let later = Instant::ZERO + Duration::from_secs(3_600);
        assert_eq!((0..10).filter(|_| budget.take(later)).count(), 3);
        let refilled = later + Duration::from_secs(2);
        assert_eq!((0..10).filter(|_| budget.take(refilled)).count(), 2);
    }

    #[test]
    fn a_first_restart_follows_soon_and_the_next_ones_are_spread() {
        let mut rng = Rng::from_seed([6; 32]);
        let window = Duration::from_secs(60);
        let mut budget = RestartBudget::new(5, window, Duration::from_millis(300));
        for now in [Instant::ZERO, Instant::ZERO + Duration::from_secs(100)] {
            let first = budget.next(now, &mut rng);
            assert_eq!(first, now + RESTART_WAIT);
            assert_ne!(budget.next(now, &mut rng), first);
        }
    }

    #[test]
    fn no_window_holds_more_restarts_than_the_limit() {
        let mut rng = Rng::from_seed([6; 32]);
        let window = Duration::from_secs(60);
        let mut budget = RestartBudget::new(5, window, Duration::from_millis(300));
        let restarts: Vec<_> = (0..40).map(|_| budget.next(Instant::ZERO, &mut rng)).collect();
        assert!(restarts.is_sorted());
        for six in restarts.windows(6) {
            assert!(six[5] - six[0] >= window, "{six:?}");
        }
    }
}

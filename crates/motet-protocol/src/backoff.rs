//! How long to wait before the next attempt: exponential ceilings with full jitter.

use core::time::Duration;

use crate::rng::Rng;

/// Bounds of the delays between attempts (rule E24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffPolicy {
    /// Ceiling of the first delay.
    pub base: Duration,
    /// Ceiling that no later one exceeds.
    pub cap: Duration,
}

impl BackoffPolicy {
    /// Calls in general: 200 ms, at most 5 s.
    pub const DEFAULT: Self = Self::millis(200, 5_000);
    /// Tasks handed to a worker: 300 ms, at most 2 s.
    pub const WORKER_TASK: Self = Self::millis(300, 2_000);
    /// Control of a service worker: 200 ms, at most 1 s.
    pub const SERVICE_WORKER: Self = Self::millis(200, 1_000);
    /// Handing a change to the offline queue: 500 ms, at most 5 s.
    pub const OFFLINE_ENQUEUE: Self = Self::millis(500, 5_000);
    /// Server connections: 100 ms, at most 30 s (rule B15).
    pub const CONNECTION: Self = Self::millis(100, 30_000);

    /// A policy from milliseconds.
    #[must_use]
    pub const fn millis(base_ms: u64, cap_ms: u64) -> Self {
        Self { base: Duration::from_millis(base_ms), cap: Duration::from_millis(cap_ms) }
    }

    /// The longest delay before retry number `retry`, counted from 0.
    ///
    /// ```
    /// use core::time::Duration;
    /// use motet_protocol::BackoffPolicy;
    ///
    /// assert_eq!(BackoffPolicy::DEFAULT.ceiling(0), Duration::from_millis(200));
    /// assert_eq!(BackoffPolicy::DEFAULT.ceiling(2), Duration::from_millis(800));
    /// assert_eq!(BackoffPolicy::DEFAULT.ceiling(90), Duration::from_secs(5));
    /// ```
    #[must_use]
    pub fn ceiling(&self, retry: u32) -> Duration {
        let factor = 1_u32.checked_shl(retry).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.cap)
    }
}

/// The delays of one retried thing.
///
/// ```
/// use core::time::Duration;
/// use motet_protocol::{Backoff, BackoffPolicy, Rng};
///
/// let mut rng = Rng::from_seed([1; 32]);
/// let mut backoff = Backoff::new(BackoffPolicy::CONNECTION);
/// assert!(backoff.next(&mut rng, None) <= Duration::from_millis(100));
/// // A refuser that names a time is not disturbed before it.
/// assert!(backoff.next(&mut rng, Some(Duration::from_secs(2))) >= Duration::from_secs(2));
/// backoff.reset();
/// assert_eq!(backoff.retries(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: BackoffPolicy,
    retries: u32,
}

impl Backoff {
    /// Starts at the policy's base.
    #[must_use]
    pub const fn new(policy: BackoffPolicy) -> Self {
        Self { policy, retries: 0 }
    }

    /// Delay before the next attempt. With `retry_after` the jitter is added to it, so that those
    /// who were refused together do not come back together.
    pub fn next(&mut self, rng: &mut Rng, retry_after: Option<Duration>) -> Duration {
        let jitter = rng.jitter(self.policy.ceiling(self.retries));
        self.retries = self.retries.saturating_add(1);
        retry_after.unwrap_or(Duration::ZERO).saturating_add(jitter)
    }

    /// Starts again at the base: after a success, or when the cause of the failures is known to
    /// be gone (network back, page shown).
    pub const fn reset(&mut self) {
        self.retries = 0;
    }

    /// Delays handed out since the start or the last reset.
    #[must_use]
    pub const fn retries(&self) -> u32 {
        self.retries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_spread_over_the_whole_range_below_their_ceiling() {
        let mut rng = Rng::from_seed([3; 32]);
        let delays: Vec<_> = (0..200)
            .map(|_| Backoff::new(BackoffPolicy::DEFAULT).next(&mut rng, None).as_millis())
            .collect();
        assert!(delays.iter().all(|ms| *ms <= 200));
        assert!(delays.iter().any(|ms| *ms < 20) && delays.iter().any(|ms| *ms > 180));
    }

    #[test]
    fn no_delay_exceeds_the_cap_however_many_retries_there_were() {
        let mut rng = Rng::from_seed([4; 32]);
        let mut backoff = Backoff::new(BackoffPolicy::CONNECTION);
        for _ in 0..1_000 {
            assert!(backoff.next(&mut rng, None) <= Duration::from_secs(30));
        }
    }

    #[test]
    fn a_reset_brings_back_the_first_ceiling() {
        let mut rng = Rng::from_seed([5; 32]);
        let mut backoff = Backoff::new(BackoffPolicy::CONNECTION);
        for _ in 0..20 {
            backoff.next(&mut rng, None);
        }
        backoff.reset();
        assert!(backoff.next(&mut rng, None) <= Duration::from_millis(100));
    }
}

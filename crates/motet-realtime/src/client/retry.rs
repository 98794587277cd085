//! Delays that grow while a thing keeps failing.

use core::time::Duration;

use motet_protocol::{Backoff, BackoffPolicy, Instant, Rng};

/// How long a thing must have worked before its next failure counts as a first one. Without it a
/// server that accepts and at once drops its clients would be called at the shortest delay for ever.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// Backoff of a connection or a subscription.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    backoff: Backoff,
    standing_since: Option<Instant>,
}

impl Retry {
    pub(super) const fn new(policy: BackoffPolicy) -> Self {
        Self { backoff: Backoff::new(policy), standing_since: None }
    }

    /// It works now.
    pub(super) const fn succeeded(&mut self, now: Instant) {
        self.standing_since = Some(now);
    }

    /// When to try again after a failure.
    pub(super) fn after_failure(&mut self, now: Instant, rng: &mut Rng) -> Instant {
        if self.standing_since.take().is_some_and(|since| now - since >= STABLE_AFTER) {
            self.backoff.reset();
        }
        now + self.backoff.next(rng, None)
    }

    /// The cause of the failures is known to be gone.
    pub(super) const fn reset(&mut self) {
        self.backoff.reset();
    }
}

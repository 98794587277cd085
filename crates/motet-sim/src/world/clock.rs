//! A context's own monotonic clock: other origin, other rate, and jumps.

use motet_protocol::{Instant, Rng};

/// Longest distance of a clock's rate from the true one, in parts per million.
const SKEW_PPM_MAX: u64 = 2_000;

/// Maps the world's time to what a context reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: u64,
    rate_ppm: u64,
    jumped: u64,
}

impl Clock {
    /// A clock that starts at the world's `now`.
    pub(crate) fn new(now: u64, rng: &mut Rng) -> Self {
        let rate_ppm = 1_000_000 - SKEW_PPM_MAX + rng.below(2 * SKEW_PPM_MAX + 1);
        Self { origin: now, rate_ppm, jumped: 1 + rng.below(5_000_000) }
    }

    /// What the clock shows at the world's `now`.
    pub(crate) fn read(&self, now: u64) -> Instant {
        let passed = now.saturating_sub(self.origin);
        let shown = u128::from(passed) * u128::from(self.rate_ppm) / 1_000_000;
        Instant::from_micros(u64::try_from(shown).unwrap_or(u64::MAX).saturating_add(self.jumped))
    }

    /// The world's time at which the clock shows at least `local`.
    pub(crate) fn when(&self, local: Instant) -> u64 {
        let passed = u128::from(local.as_micros().saturating_sub(self.jumped));
        let world = (passed * 1_000_000).div_ceil(u128::from(self.rate_ppm));
        self.origin.saturating_add(u64::try_from(world).unwrap_or(u64::MAX))
    }

    /// The clock jumps ahead, as after a machine's sleep.
    pub(crate) fn jump(&mut self, micros: u64) {
        self.jumped = self.jumped.saturating_add(micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_never_early_on_a_skewed_clock() {
        let mut rng = Rng::from_seed([9; 32]);
        for _ in 0..200 {
            let mut clock = Clock::new(rng.below(1 << 40), &mut rng);
            clock.jump(rng.below(1 << 30));
            let due = clock.read(0) + core::time::Duration::from_micros(rng.below(1 << 35));
            assert!(clock.read(clock.when(due)) >= due);
        }
    }
}

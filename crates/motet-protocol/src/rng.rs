//! The cores' only source of randomness: ChaCha8, seeded once by the driver.

use core::time::Duration;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};

/// A seeded generator. The same seed gives the same ids and the same jitter, so that a simulated
/// run replays exactly; drivers seed it from the platform's cryptographic source.
#[derive(Debug)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// A generator for this seed.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ChaCha8Rng::from_seed(seed))
    }

    /// 64 random bits.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound` (0 when `bound` is 0). The bias is below 2^-32 for the small bounds
    /// the cores use.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.u64() % bound }
    }

    /// A duration between zero and `ceiling`: full jitter.
    pub fn jitter(&mut self, ceiling: Duration) -> Duration {
        let micros = u64::try_from(ceiling.as_micros()).unwrap_or(u64::MAX - 1);
        Duration::from_micros(self.below(micros.saturating_add(1)))
    }

    /// Seed for a generator of a part of this core, independent of how often the part draws.
    pub fn fork(&mut self) -> Self {
        let mut seed = [0; 32];
        self.0.fill_bytes(&mut seed);
        Self::from_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of ChaCha8 with this key and a stream of zero: recorded seeds of the simulator name the
    /// same runs as long as they are.
    #[test]
    fn a_seed_gives_the_same_numbers_with_every_build() {
        let mut rng = Rng::from_seed([7; 32]);
        let drawn = [rng.u64(), rng.u64(), rng.fork().u64(), rng.u64()];
        let known = [
            4_115_934_089_738_703_076,
            15_345_232_379_140_719_590,
            11_358_471_265_730_213_869,
            11_973_046_522_584_717_121,
        ];
        assert_eq!(drawn, known);
    }
}

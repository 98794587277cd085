//! Numbers that look random and come again with their seed.

/// A generator after Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below this one.
    pub(crate) const fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    /// True once in so many times.
    pub(crate) const fn once_in(&mut self, times: u64) -> bool {
        self.roll(times) == 0
    }
}

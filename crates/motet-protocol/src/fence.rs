//! Fencing numbers: who may act, decided by identity and never by time.

use core::num::NonZeroU64;

use minicbor::{Decode, Encode};

/// The authority of one coordinator: later coordinators compare greater.
///
/// An incarnation starts when no live node remembers an earlier one; within it each coordinator
/// has the next epoch. Fields compare in declaration order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Fence {
    /// Random number of the cluster's present life.
    #[n(0)]
    pub incarnation: u64,
    /// Number of the coordinator within that life, from 1.
    #[n(1)]
    pub epoch: u64,
}

/// Number of a decision among those of its coordinator; a later one compares greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Generation(u64);

/// No number in a fence exceeds this. Counting from a random incarnation never comes near it in
/// practice, so a frame that names a higher one is forged, and obeying it would leave no number for
/// the next coordinator.
pub const FENCE_NUMBER_MAX: u64 = u64::MAX >> 1;

impl Generation {
    /// Before the first decision.
    pub const NONE: Self = Self(0);
    /// The first decision.
    pub const FIRST: Self = Self(1);

    /// The generation with this number.
    #[must_use]
    pub const fn new(number: NonZeroU64) -> Self {
        Self(number.get())
    }

    /// The number of this decision.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next decision.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The authority of one owner over one topic: coordinator first, then generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct RouteFence {
    /// The coordinator that decided the route.
    #[n(0)]
    pub fence: Fence,
    /// Which of its decisions.
    #[n(1)]
    pub generation: Generation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incarnation_outranks_epoch_and_epoch_outranks_generation() {
        let fence = |incarnation, epoch| Fence { incarnation, epoch };
        assert!(fence(2, 1) > fence(1, 9));
        let early = RouteFence { fence: fence(1, 1), generation: Generation(9) };
        let late = RouteFence { fence: fence(1, 2), generation: Generation::FIRST };
        assert!(late > early);
    }
}

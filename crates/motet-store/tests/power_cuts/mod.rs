//! What a power cut leaves: recorded, rebuilt, opened and checked.

pub(crate) mod dice;
pub(crate) mod disk;
pub(crate) mod inspect;
pub(crate) mod known;
pub(crate) mod recording;
pub(crate) mod scenario;
pub(crate) mod trace;

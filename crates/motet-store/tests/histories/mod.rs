//! Histories: what processes did to a store at the same time, written down by them, and a checker
//! that finds whether a store can have behaved so. It knows the log, and nothing of the store's
//! own checks.

pub(crate) mod checker;
#[path = "../power_cuts/dice.rs"]
pub(crate) mod dice;
pub(crate) mod faults;
pub(crate) mod finale;
pub(crate) mod recorder;
pub(crate) mod replay;
pub(crate) mod sessions;
pub(crate) mod transactions;
pub(crate) mod verdict;
pub(crate) mod views;
pub(crate) mod workload;
pub(crate) mod writes;

//! What the checker found.

use std::fmt;

use super::replay::Replay;

#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) replay: Replay,
    pub(crate) faults: Faults,
    pub(crate) changes: usize,
    pub(crate) committed: u64,
    pub(crate) refused: u64,
    /// Attempts whose outcome their session did not learn: there, and not there.
    pub(crate) unknown: (u64, u64),
    pub(crate) transactions: u64,
    pub(crate) views: u64,
    pub(crate) expired: u64,
    pub(crate) generations: usize,
    pub(crate) seen_by_tails: usize,
}

/// What cannot be.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    /// Takes note of a fault, unless there are many already.
    pub(crate) fn add(&mut self, what: impl FnOnce() -> String) {
        if self.0.len() < FAULTS_MAX {
            self.0.push(what());
        }
    }

    pub(crate) fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.add(what);
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} changes: {} attempts acknowledged ({} transactions), {} refused, {} unknown of \
             which {} are there; {} views, {} expiries, {} descriptions, {} changes seen by tails",
            self.changes,
            self.committed,
            self.transactions,
            self.refused,
            self.unknown.0 + self.unknown.1,
            self.unknown.0,
            self.views,
            self.expired,
            self.generations,
            self.seen_by_tails,
        )
    }
}

const FAULTS_MAX: usize = 20;

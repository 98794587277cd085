//! How many connections the server takes, in all and per second.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts connections in and out. A limit of 0 sets no limit.
#[derive(Debug)]
pub struct Gate {
    limit: usize,
    per_second_max: u32,
    inside: AtomicUsize,
    second: Mutex<(Instant, u32)>,
}

/// A connection that was let in; its place is free again when this is dropped.
#[derive(Debug)]
pub struct Admission(Arc<Gate>);

impl Gate {
    /// A gate with these limits.
    #[must_use]
    pub fn new(limit: usize, per_second_max: u32) -> Self {
        Self {
            limit,
            per_second_max,
            inside: AtomicUsize::new(0),
            second: Mutex::new((Instant::now(), 0)),
        }
    }

    /// Lets a connection in, unless a limit is reached.
    #[must_use]
    pub fn admit(self: &Arc<Self>) -> Option<Admission> {
        if !self.spend() {
            return None;
        }
        let before = self.inside.fetch_add(1, Ordering::AcqRel);
        let admission = Admission(self.clone());
        (self.limit == 0 || before < self.limit).then_some(admission)
    }

    fn spend(&self) -> bool {
        if self.per_second_max == 0 {
            return true;
        }
        let mut second = self.second.lock().expect("nothing panics while it holds the lock");
        if second.0.elapsed() >= Duration::from_secs(1) {
            *second = (Instant::now(), 0);
        }
        second.1 += 1;
        second.1 <= self.per_second_max
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_its_connection_has_gone() {
        let gate = Arc::new(Gate::new(1, 0));
        let first = gate.admit();
        assert!(first.is_some() && gate.admit().is_none());
        drop(first);
        assert!(gate.admit().is_some());
    }

    #[test]
    fn more_than_the_rate_are_turned_away() {
        let gate = Arc::new(Gate::new(0, 2));
        let admitted = (0..5).filter(|_| gate.admit().is_some()).count();
        assert_eq!(admitted, 2);
    }
}

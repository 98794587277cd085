//! The signal plane: wakes those who wait for changes. It may lose a signal, which costs time and
//! nothing else: whoever waits looks for itself at the latest after [`BACKSTOP`].

#[cfg(unix)]
mod meeting;
#[cfg(unix)]
pub(crate) mod poke;

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Is woken when something may have been committed.
pub trait Wake: Send + Sync {
    /// Something may have been committed.
    fn wake(&self);

    /// Returns when whoever it wakes has been told of all there was to tell.
    fn flush(&self) {}
}

/// Counts commits, so that one between looking and waiting is not slept through.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Signal {
    /// Something was committed.
    pub(crate) fn notify(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// What to give [`wait`](Self::wait) after having looked and found nothing.
    pub(crate) fn count(&self) -> u64 {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is committed after `seen`, or until the deadline.
    pub(crate) fn wait(&self, seen: u64, deadline: Instant) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count == seen {
            let left = deadline.saturating_duration_since(Instant::now()).min(BACKSTOP);
            if left.is_zero() {
                return;
            }
            let (next, outcome) =
                self.changed.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner);
            if outcome.timed_out() {
                return;
            }
            count = next;
        }
    }
}

impl Signal {
    /// Waits until `until`, or until nobody but the caller holds the signal.
    pub(crate) fn wait_for_end(self: &Arc<Self>, until: Instant) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while Arc::strong_count(self) > 1 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            count =
                self.changed.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// How long a lost signal can go unnoticed.
pub(crate) const BACKSTOP: Duration = Duration::from_secs(30);

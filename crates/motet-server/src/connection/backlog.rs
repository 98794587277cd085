//! What waits for all connections together, counted byte by byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Counts the bytes that wait to be written to any connection. What waits for several connections
/// is in memory once and is counted once.
#[derive(Debug, Default)]
pub struct Backlog(AtomicUsize);

impl Backlog {
    /// Bytes that wait now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Makes a chunk that is counted until its last user has dropped it.
    #[must_use]
    pub fn chunk(self: &Arc<Self>, bytes: Vec<u8>) -> Bytes {
        self.0.fetch_add(bytes.len(), Ordering::Relaxed);
        Bytes::from_owner(Counted { bytes, backlog: self.clone() })
    }
}

struct Counted {
    bytes: Vec<u8>,
    backlog: Arc<Backlog>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.backlog.0.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_connections_wait_for_is_counted_once_and_until_the_last_has_it() {
        let backlog = Arc::new(Backlog::default());
        let mut first = backlog.chunk(vec![0; 100]);
        let second = first.clone();
        let part = first.split_to(10);
        drop((first, second));
        assert_eq!(backlog.bytes(), 100);
        drop(part);
        assert_eq!(backlog.bytes(), 0);
    }
}

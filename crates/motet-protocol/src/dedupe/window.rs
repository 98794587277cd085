//! Dedupe by message id (rules E31 and B14).

use core::time::Duration;
use std::collections::VecDeque;

use litemap::LiteMap;

use crate::time::Instant;

/// The ids seen lately: at most so many, for at most so long.
///
/// Recognises the echo of a bridge or a second path. It does not make work safe to repeat: a retry
/// has a new message id; use an idempotency key for that.
///
/// ```
/// use core::time::Duration;
/// use motet_protocol::{Instant, MessageWindow};
///
/// let mut seen = MessageWindow::default();
/// assert!(seen.insert(Instant::ZERO, "m-1"));
/// assert!(!seen.insert(Instant::ZERO, "m-1"), "a repeat");
/// assert!(seen.insert(Instant::ZERO + Duration::from_secs(61), "m-1"), "forgotten by then");
/// assert_eq!(seen.repeats(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct MessageWindow<I> {
    capacity: usize,
    lifetime: Duration,
    ids: LiteMap<I, ()>,
    /// The same ids, oldest first.
    order: VecDeque<(Instant, I)>,
    repeats: u64,
}

impl<I: Clone + Ord> Default for MessageWindow<I> {
    /// 1,000 ids, 60 s.
    fn default() -> Self {
        Self::new(1_000, Duration::from_secs(60))
    }
}

impl<I: Clone + Ord> MessageWindow<I> {
    /// An empty window. A capacity of 0 counts as 1.
    #[must_use]
    pub fn new(capacity: usize, lifetime: Duration) -> Self {
        Self {
            capacity: capacity.max(1),
            lifetime,
            ids: LiteMap::new(),
            order: VecDeque::new(),
            repeats: 0,
        }
    }

    /// Notes an id, and says whether it is new. `awake` is waking time. Takes the time to find a
    /// place in a sorted vector of as many ids as the window holds, and to move as many at most.
    pub fn insert(&mut self, awake: Instant, id: I) -> bool {
        while self.order.front().is_some_and(|(seen, _)| awake - *seen >= self.lifetime) {
            self.forget_oldest();
        }
        if self.ids.try_insert(id.clone(), ()).is_some() {
            self.repeats += 1;
            return false;
        }
        if self.order.len() == self.capacity {
            self.forget_oldest();
        }
        self.order.push_back((awake, id));
        true
    }

    /// Repeats recognised so far, for metrics.
    #[must_use]
    pub const fn repeats(&self) -> u64 {
        self.repeats
    }

    /// Ids held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether no id is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn forget_oldest(&mut self) {
        if let Some((_, id)) = self.order.pop_front() {
            self.ids.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_id_makes_room_when_the_window_is_full() {
        let mut seen = MessageWindow::new(2, Duration::from_secs(60));
        assert!(seen.insert(Instant::ZERO, 1) && seen.insert(Instant::ZERO, 2));
        assert!(seen.insert(Instant::ZERO, 3));
        assert!(!seen.insert(Instant::ZERO, 2) && !seen.insert(Instant::ZERO, 3));
        assert!(seen.insert(Instant::ZERO, 1));
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn a_repeat_does_not_prolong_the_life_of_an_id() {
        let mut seen = MessageWindow::new(10, Duration::from_secs(60));
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        assert!(seen.insert(at(0), 1));
        assert!(!seen.insert(at(59), 1));
        assert!(seen.insert(at(60), 1));
    }

    #[test]
    fn a_stream_of_ids_never_holds_more_than_the_capacity() {
        let mut seen = MessageWindow::default();
        for id in 0..10_000_u64 {
            assert!(seen.insert(Instant::from_micros(id), id));
            assert!(seen.len() <= 1_000 && seen.ids.len() == seen.len());
        }
    }
}

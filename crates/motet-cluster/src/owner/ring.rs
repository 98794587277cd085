//! The latest messages of an owned topic, for those who catch up.

use std::collections::VecDeque;

use motet_protocol::Offset;
use motet_protocol::transport::Publication;

/// Contiguous messages of one stream epoch, the last one at the top, bounded in number and bytes.
#[derive(Debug)]
pub(crate) struct Ring<P> {
    messages: VecDeque<Publication<P>>,
    bytes: usize,
    messages_max: usize,
    bytes_max: usize,
}

impl<P: Clone> Ring<P> {
    pub(crate) fn new(messages_max: usize, bytes_max: usize) -> Self {
        Self { messages: VecDeque::new(), bytes: 0, messages_max, bytes_max }
    }

    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.bytes = 0;
    }

    /// Appends the next message. One that does not continue the ring starts it anew.
    pub(crate) fn push(&mut self, message: Publication<P>) {
        if self.messages.back().is_some_and(|last| last.offset + 1 != message.offset) {
            self.clear();
        }
        self.bytes += message.size as usize;
        self.messages.push_back(message);
        while self.messages.len() > self.messages_max || self.bytes > self.bytes_max {
            let Some(oldest) = self.messages.pop_front() else { break };
            self.bytes -= oldest.size as usize;
        }
    }

    /// Puts earlier messages before the ring; they must end where it begins.
    pub(crate) fn prepend(&mut self, earlier: Vec<Publication<P>>, top: Offset) {
        let next = self.messages.front().map_or(top + 1, |first| first.offset);
        if earlier.last().is_none_or(|last| last.offset + 1 != next) {
            return;
        }
        for message in earlier.into_iter().rev() {
            let room = self.messages.len() < self.messages_max
                && self.bytes + message.size as usize <= self.bytes_max;
            let continues =
                self.messages.front().is_none_or(|first| first.offset == message.offset + 1);
            if !room || !continues {
                break;
            }
            self.bytes += message.size as usize;
            self.messages.push_front(message);
        }
    }

    /// Messages after `offset`, when the ring reaches back that far.
    pub(crate) fn after(&self, offset: Offset) -> Option<impl Iterator<Item = &Publication<P>>> {
        let first = self.messages.front()?.offset;
        let skip = usize::try_from((offset + 1).checked_sub(first)?).ok()?;
        Some(self.messages.iter().skip(skip))
    }

    /// The last `count` messages, or fewer.
    pub(crate) fn tail(&self, count: usize) -> impl Iterator<Item = &Publication<P>> {
        self.messages.iter().skip(self.messages.len().saturating_sub(count))
    }

    /// Whether the newest message kept is this one, or none is kept.
    pub(crate) fn ends_at(&self, top: Offset) -> bool {
        self.messages.back().is_none_or(|last| last.offset == top)
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(offset: Offset) -> Publication<u64> {
        Publication { offset, message_id: None, timestamp_ms: None, size: 10, payload: offset }
    }

    fn offsets<'a>(messages: impl Iterator<Item = &'a Publication<u64>>) -> Vec<Offset> {
        messages.map(|m| m.offset).collect()
    }

    #[test]
    fn the_oldest_leave_when_number_or_bytes_run_out() {
        let mut by_number = Ring::new(3, 1_000);
        let mut by_bytes = Ring::new(100, 25);
        for offset in 1..=5 {
            by_number.push(message(offset));
            by_bytes.push(message(offset));
        }
        assert_eq!(offsets(by_number.tail(10)), [3, 4, 5]);
        assert_eq!(offsets(by_bytes.tail(10)), [4, 5]);
    }

    #[test]
    fn it_says_whether_it_reaches_back_far_enough() {
        let mut ring = Ring::new(3, 1_000);
        (4..=6).for_each(|offset| ring.push(message(offset)));
        assert_eq!(ring.after(3).map(offsets), Some(vec![4, 5, 6]));
        assert_eq!(ring.after(6).map(offsets), Some(vec![]));
        assert!(ring.after(2).is_none());
    }

    #[test]
    fn a_hole_starts_the_ring_anew_and_earlier_messages_fit_only_at_its_edge() {
        let mut ring = Ring::new(5, 1_000);
        ring.push(message(1));
        ring.push(message(7));
        assert_eq!(offsets(ring.tail(9)), [7]);
        ring.prepend(vec![message(4), message(5)], 7);
        assert_eq!(offsets(ring.tail(9)), [7]);
        ring.prepend(vec![message(5), message(6)], 7);
        assert_eq!(offsets(ring.tail(9)), [5, 6, 7]);
    }
}

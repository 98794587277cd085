//! The messages a page keeps of a topic: for late handlers, and for an owner without history.

use std::collections::VecDeque;

use motet_protocol::{Offset, Position, StreamEpoch};

/// One message with its payload, inside a stream epoch that the holder knows.
#[derive(Clone, Debug)]
pub(super) struct Message<P> {
    pub(super) offset: Offset,
    pub(super) size: u32,
    pub(super) message_id: Option<String>,
    pub(super) timestamp_ms: Option<i64>,
    pub(super) payload: P,
}

/// Messages of one stream epoch, ascending and without holes: whatever breaks the sequence empties
/// the ring first, so what it hands out is always contiguous.
#[derive(Debug)]
pub(super) struct Ring<P> {
    epoch: Option<StreamEpoch>,
    messages: VecDeque<Message<P>>,
    bytes: usize,
}

impl<P: Clone> Ring<P> {
    pub(super) const fn new() -> Self {
        Self { epoch: None, messages: VecDeque::new(), bytes: 0 }
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Keeps a message that was just delivered, within the limits of its topic.
    pub(super) fn push(
        &mut self,
        epoch: &StreamEpoch,
        message: Message<P>,
        count_max: usize,
        bytes_max: usize,
    ) {
        let follows = self.messages.back().is_none_or(|last| last.offset + 1 == message.offset);
        if self.epoch.as_ref() != Some(epoch) || !follows {
            self.clear();
            self.epoch = Some(epoch.clone());
        }
        self.bytes += message.size as usize;
        self.messages.push_back(message);
        while self.messages.len() > count_max || self.bytes > bytes_max {
            self.drop_oldest();
        }
    }

    /// Gives up at least half of what is held, oldest first. Halving keeps the search for the
    /// largest ring rare when the page's limit is reached.
    pub(super) fn halve(&mut self) {
        let target = self.bytes / 2;
        while self.bytes > target {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let dropped = self.messages.pop_front().expect("bytes and count are of held messages");
        self.bytes -= dropped.size as usize;
    }

    fn clear(&mut self) {
        self.messages.clear();
        self.bytes = 0;
    }

    /// The last `count` messages, oldest first, with their positions.
    pub(super) fn tail(&self, count: usize) -> impl Iterator<Item = (Position, &Message<P>)> {
        let skipped = self.messages.len().saturating_sub(count);
        self.messages.iter().skip(skipped).filter_map(|message| {
            let epoch = self.epoch.clone()?;
            Some((Position::new(epoch, message.offset), message))
        })
    }

    /// Everything held, when it is of this epoch.
    pub(super) fn of_epoch(&self, epoch: &StreamEpoch) -> impl Iterator<Item = &Message<P>> {
        let wanted = self.epoch.as_ref() == Some(epoch);
        self.messages.iter().filter(move |_| wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(offset: Offset, size: u32) -> Message<u64> {
        Message { offset, size, message_id: None, timestamp_ms: None, payload: offset }
    }

    fn offsets(ring: &Ring<u64>) -> Vec<Offset> {
        ring.tail(usize::MAX).map(|(position, _)| position.offset).collect()
    }

    #[test]
    fn a_ring_keeps_the_newest_within_count_and_bytes() {
        let mut ring = Ring::new();
        let epoch = StreamEpoch::new("a");
        for offset in 1..=10 {
            ring.push(&epoch, message(offset, 10), 4, 1_000);
        }
        assert_eq!(offsets(&ring), [7, 8, 9, 10]);
        ring.push(&epoch, message(11, 25), 4, 40);
        assert_eq!((offsets(&ring), ring.bytes()), (vec![10, 11], 35));
        ring.push(&epoch, message(12, 50), 4, 40);
        assert_eq!((offsets(&ring), ring.bytes()), (vec![], 0), "larger than the whole ring");
    }

    #[test]
    fn a_hole_or_another_epoch_starts_the_ring_anew() {
        let mut ring = Ring::new();
        ring.push(&StreamEpoch::new("a"), message(1, 1), 9, 9);
        ring.push(&StreamEpoch::new("a"), message(3, 1), 9, 9);
        assert_eq!(offsets(&ring), [3]);
        ring.push(&StreamEpoch::new("b"), message(4, 1), 9, 9);
        assert_eq!(offsets(&ring), [4]);
        assert_eq!(ring.of_epoch(&StreamEpoch::new("a")).count(), 0);
        assert_eq!(ring.of_epoch(&StreamEpoch::new("b")).count(), 1);
    }

    #[test]
    fn halving_drops_the_oldest_half() {
        let mut ring = Ring::new();
        for offset in 1..=8 {
            ring.push(&StreamEpoch::new("a"), message(offset, 2), 99, 99);
        }
        ring.halve();
        assert_eq!(offsets(&ring), [5, 6, 7, 8]);
    }
}

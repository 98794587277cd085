//! Messages that arrived beyond a hole, until it is filled or given up.

use std::collections::VecDeque;

use motet_protocol::{Offset, Position, StreamEpoch};

use super::ring::Message;

/// Held messages of one stream epoch, ascending, each offset once.
#[derive(Debug)]
struct Lane<P> {
    epoch: StreamEpoch,
    messages: VecDeque<Message<P>>,
    /// The owner was asked after the last of them came.
    asked: bool,
}

/// Everything held behind a hole. Epochs have no order of their own, so each has a lane, in the
/// order in which they were first heard of.
#[derive(Debug)]
pub(super) struct Held<P> {
    lanes: Vec<Lane<P>>,
    len: usize,
}

impl<P> Held<P> {
    pub(super) const fn new() -> Self {
        Self { lanes: Vec::new(), len: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn clear(&mut self) {
        self.lanes.clear();
        self.len = 0;
    }

    /// Holds a message; false when it is held already.
    pub(super) fn hold(&mut self, epoch: &StreamEpoch, message: Message<P>) -> bool {
        let index = self.lanes.iter().position(|lane| lane.epoch == *epoch).unwrap_or_else(|| {
            self.lanes.push(Lane { epoch: epoch.clone(), messages: VecDeque::new(), asked: false });
            self.lanes.len() - 1
        });
        let lane = &mut self.lanes[index];
        lane.asked = false;
        let messages = &mut lane.messages;
        // Nearly always the end: an owner posts in order.
        let mut at = messages.len();
        while at > 0 && messages[at - 1].offset > message.offset {
            at -= 1;
        }
        if at > 0 && messages[at - 1].offset == message.offset {
            return false;
        }
        messages.insert(at, message);
        self.len += 1;
        true
    }

    /// The message that follows `position`, if it is held. Drops what lies at or below it.
    pub(super) fn take_next(&mut self, position: &Position) -> Option<Message<P>> {
        let index = self.lanes.iter().position(|lane| lane.epoch == position.epoch)?;
        let messages = &mut self.lanes[index].messages;
        while messages.front().is_some_and(|first| first.offset <= position.offset) {
            messages.pop_front();
            self.len -= 1;
        }
        let next = messages.front().is_some_and(|first| first.offset == position.offset + 1);
        let taken = if next { messages.pop_front() } else { None };
        self.len -= usize::from(taken.is_some());
        if messages.is_empty() {
            self.lanes.remove(index);
        }
        taken
    }

    /// The lowest offset held in this epoch.
    pub(super) fn first_in(&self, epoch: &StreamEpoch) -> Option<Offset> {
        let lane = self.lanes.iter().find(|lane| lane.epoch == *epoch)?;
        lane.messages.front().map(|first| first.offset)
    }

    /// The epoch heard of last, and the lowest offset held in it.
    pub(super) fn newest(&self) -> Option<(StreamEpoch, Offset)> {
        let lane = self.lanes.last()?;
        Some((lane.epoch.clone(), lane.messages.front()?.offset))
    }

    /// The stream went on from `left` to `entered`: what was held of the one left, and of epochs
    /// heard of before the one entered, is over.
    pub(super) fn switch(&mut self, left: &StreamEpoch, entered: &StreamEpoch) {
        if let Some(index) = self.lanes.iter().position(|lane| lane.epoch == *entered) {
            self.lanes.drain(..index);
        }
        self.lanes.retain(|lane| lane.epoch != *left);
        self.count();
    }

    /// The owner is asked now: it knows of everything that is held.
    pub(super) fn mark_asked(&mut self) {
        for lane in &mut self.lanes {
            lane.asked = true;
        }
    }

    /// The owner answered in `epoch`: what it knew of in other epochs is over.
    pub(super) fn drop_asked_but(&mut self, epoch: &StreamEpoch) {
        self.lanes.retain(|lane| lane.epoch == *epoch || !lane.asked);
        self.count();
    }

    /// Drops what is of any other epoch.
    pub(super) fn keep_only(&mut self, epoch: &StreamEpoch) {
        self.lanes.retain(|lane| lane.epoch == *epoch);
        self.count();
    }

    fn count(&mut self) {
        self.len = self.lanes.iter().map(|lane| lane.messages.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(offset: Offset) -> Message<u64> {
        Message { offset, size: 1, message_id: None, timestamp_ms: None, payload: offset }
    }

    fn at(epoch: &str, offset: Offset) -> Position {
        Position::new(StreamEpoch::new(epoch), offset)
    }

    #[test]
    fn held_messages_come_back_in_order_whatever_order_they_came_in() {
        let mut held = Held::new();
        let epoch = StreamEpoch::new("a");
        for offset in [5, 4, 7, 5] {
            held.hold(&epoch, message(offset));
        }
        assert_eq!(held.len(), 3, "a repeat is not held twice");
        assert!(held.take_next(&at("a", 2)).is_none());
        assert_eq!(held.take_next(&at("a", 3)).map(|m| m.offset), Some(4));
        assert_eq!(held.take_next(&at("a", 4)).map(|m| m.offset), Some(5));
        assert!(held.take_next(&at("a", 5)).is_none());
        assert_eq!(held.first_in(&epoch), Some(7));
        assert!(held.take_next(&at("a", 9)).is_none() && held.is_empty());
    }

    #[test]
    fn a_switch_of_epochs_drops_what_came_before() {
        let mut held = Held::new();
        for (epoch, offset) in [("a", 9), ("b", 2), ("c", 1)] {
            held.hold(&StreamEpoch::new(epoch), message(offset));
        }
        held.switch(&StreamEpoch::new("a"), &StreamEpoch::new("b"));
        assert_eq!((held.len(), held.first_in(&StreamEpoch::new("a"))), (2, None));
        held.switch(&StreamEpoch::new("b"), &StreamEpoch::new("c"));
        assert_eq!(held.newest(), Some((StreamEpoch::new("c"), 1)));
        assert_eq!(held.len(), 1);
    }
}

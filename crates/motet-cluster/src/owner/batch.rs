//! Batching of the data channels: one post carries many messages when they come quickly.

use core::time::Duration;

use motet_protocol::transport::Publication;
use motet_protocol::{Instant, NodeId, RouteFence, StreamEpoch};

use crate::frame::{Frame, MessageHead};
use crate::name::SHARDS;
use crate::node::NodePacket;
use crate::packet::Packet;

/// A post carries at most so many messages...
const POST_MESSAGES_MAX: usize = 256;
/// ... or payload bytes, so that no reader's task grows long.
const POST_BYTES_MAX: usize = 256 << 10;

struct Shard<P> {
    packet: NodePacket<P>,
    bytes: usize,
    posted: Option<Instant>,
}

/// What waits to be posted on each data channel.
///
/// A message is posted at once when nothing was posted on its channel during the window before,
/// else at the window's end: a lone message pays nothing, a burst shares its posts.
pub(crate) struct Batches<P> {
    me: NodeId,
    window: Duration,
    shards: Vec<Shard<P>>,
}

impl<P: Clone> Batches<P> {
    pub(crate) fn new(me: NodeId, window: Duration) -> Self {
        let shard = |_| Shard { packet: Packet::new(me), bytes: 0, posted: None };
        Self { me, window, shards: (0..SHARDS).map(shard).collect() }
    }

    /// Adds a message; consecutive ones of a topic share their frame.
    pub(crate) fn message(
        &mut self,
        shard: u8,
        topic: &str,
        fence: RouteFence,
        epoch: &StreamEpoch,
        message: &Publication<P>,
    ) {
        let batch = &mut self.shards[usize::from(shard)];
        batch.bytes += message.size as usize;
        let head = head_of(message, &mut batch.packet);
        if let Some(Frame::Data { topic: t, fence: f, epoch: e, messages }) =
            batch.packet.frames.last_mut()
            && t == topic
            && *f == fence
            && e == epoch
        {
            messages.push(head);
            return;
        }
        batch.packet.frames.push(Frame::Data {
            topic: topic.to_owned(),
            fence,
            epoch: epoch.clone(),
            messages: vec![head],
        });
    }

    /// Adds a frame without payload.
    pub(crate) fn frame(&mut self, shard: u8, frame: Frame) {
        self.shards[usize::from(shard)].packet.frames.push(frame);
    }

    /// Forgets what is not posted yet.
    pub(crate) fn discard(&mut self) {
        for shard in &mut self.shards {
            shard.packet = Packet::new(self.me);
            shard.bytes = 0;
        }
    }

    /// Posts what waits on a channel without waiting for its window.
    pub(crate) fn hurry(&mut self, shard: u8) {
        self.shards[usize::from(shard)].posted = None;
    }

    /// Forgets what is not posted yet of one topic.
    pub(crate) fn discard_topic(&mut self, shard: u8, discarded: &str) {
        self.shards[usize::from(shard)].packet.frames.retain(|frame| match frame {
            Frame::Data { topic, .. } | Frame::Head { topic, .. } => topic != discarded,
            _ => true,
        });
    }

    /// The next channel that is due, with its packet.
    pub(crate) fn due(&mut self, now: Instant) -> Option<(u8, NodePacket<P>)> {
        let window = self.window;
        let (index, batch) = self
            .shards
            .iter_mut()
            .enumerate()
            .find(|(_, shard)| shard.due(window).is_some_and(|at| at <= now))?;
        batch.posted = Some(now);
        batch.bytes = 0;
        Some((index as u8, core::mem::replace(&mut batch.packet, Packet::new(self.me))))
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.shards.iter().filter_map(|shard| shard.due(self.window)).min()
    }
}

impl<P> Shard<P> {
    fn due(&self, window: Duration) -> Option<Instant> {
        if self.packet.frames.is_empty() {
            return None;
        }
        let full = self.packet.payloads.len() >= POST_MESSAGES_MAX || self.bytes >= POST_BYTES_MAX;
        Some(match self.posted {
            Some(posted) if !full => posted + window,
            _ => Instant::ZERO,
        })
    }
}

/// Attaches a message's payload to a packet and returns its head.
pub(crate) fn head_of<F, P: Clone>(
    message: &Publication<P>,
    packet: &mut Packet<F, P>,
) -> MessageHead {
    MessageHead {
        offset: message.offset,
        size: message.size,
        slot: packet.attach(message.payload.clone()),
        message_id: message.message_id.clone(),
        timestamp_ms: message.timestamp_ms,
    }
}

#[cfg(test)]
mod tests {
    use motet_protocol::{Fence, Generation};

    use super::*;

    const FENCE: RouteFence =
        RouteFence { fence: Fence { incarnation: 1, epoch: 1 }, generation: Generation::FIRST };

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn add(batches: &mut Batches<u64>, offset: u64) {
        let message =
            Publication { offset, message_id: None, timestamp_ms: None, size: 8, payload: offset };
        batches.message(0, "t", FENCE, &StreamEpoch::new("e"), &message);
    }

    #[test]
    fn a_lone_message_is_posted_at_once_and_a_burst_at_the_windows_end() {
        let mut batches = Batches::new(NodeId::from_bits(1), Duration::from_millis(2));
        add(&mut batches, 1);
        assert!(batches.due(at(10_000)).is_some());
        add(&mut batches, 2);
        add(&mut batches, 3);
        assert!(batches.due(at(11_000)).is_none());
        assert_eq!(batches.next_timeout(), Some(at(12_000)));
        let (_, packet) = batches.due(at(12_000)).expect("the window has ended");
        assert_eq!(packet.payloads, [2, 3]);
        assert_eq!(packet.frames.len(), 1, "one frame for consecutive messages of a topic");
    }

    #[test]
    fn a_full_post_does_not_wait() {
        let mut batches = Batches::new(NodeId::from_bits(1), Duration::from_millis(2));
        add(&mut batches, 1);
        assert!(batches.due(at(1)).is_some());
        (0..POST_MESSAGES_MAX as u64).for_each(|n| add(&mut batches, 2 + n));
        assert!(batches.due(at(2)).is_some());
    }
}

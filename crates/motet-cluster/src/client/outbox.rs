//! What the client is about to ask of its driver, and what every part of it shares.

use std::collections::VecDeque;

use motet_protocol::{Error, Instant, NodeId, Rng};

use super::api::{ClientConfig, ClientIdentity, ClientOutput, ErrorSource};
use super::snapshot::ClientCounters;
use crate::frame::ToNode;
use crate::node::ToNodePacket;
use crate::packet::Packet;

/// Frames, and topics in one frame, per packet: keeps every packet well below the size limit.
const FRAMES_PER_PACKET: usize = 512;

/// Outputs in order. Frames for the node gather in one packet until the driver asks for it.
#[derive(Debug)]
pub(super) struct Outbox<P> {
    queue: VecDeque<ClientOutput<P>>,
    attach: Option<ToNode>,
    subscribe: Vec<String>,
    unsubscribe: Vec<String>,
    packet: ToNodePacket<P>,
    /// The node's port is open. Without it there is nobody to post to: all intent is told anew
    /// when it opens.
    open: bool,
}

impl<P> Outbox<P> {
    const fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            attach: None,
            subscribe: Vec::new(),
            unsubscribe: Vec::new(),
            packet: Packet::new(NodeId::from_bits(0)),
            open: false,
        }
    }

    pub(super) fn push(&mut self, output: ClientOutput<P>) {
        self.queue.push_back(output);
    }

    /// The port is open: `attach` is the first thing the node hears.
    pub(super) fn open(&mut self, attach: ToNode) {
        self.discard();
        self.open = true;
        self.attach = Some(attach);
    }

    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// Adds a frame to the packet for the node.
    pub(super) fn send(&mut self, frame: ToNode) {
        self.send_with(|_| frame);
    }

    /// Adds a frame that names payloads, which travel in the same packet.
    pub(super) fn send_with(&mut self, frame: impl FnOnce(&mut ToNodePacket<P>) -> ToNode) {
        if !self.open {
            return;
        }
        if self.packet.frames.len() >= FRAMES_PER_PACKET {
            self.flush();
        }
        let frame = frame(&mut self.packet);
        self.packet.frames.push(frame);
    }

    pub(super) fn subscribe(&mut self, topic: &str) {
        if self.open {
            self.unsubscribe.retain(|other| other != topic);
            self.subscribe.push(topic.into());
        }
    }

    pub(super) fn unsubscribe(&mut self, topic: &str) {
        if self.open {
            self.subscribe.retain(|other| other != topic);
            self.unsubscribe.push(topic.into());
        }
    }

    /// The node whose port this is, once it is known.
    pub(super) const fn sender(&mut self, node: NodeId) {
        self.packet.from = node;
    }

    /// The port is closed, and what was not posted yet is forgotten.
    pub(super) fn close(&mut self) {
        self.discard();
        self.open = false;
    }

    fn discard(&mut self) {
        self.attach = None;
        self.subscribe.clear();
        self.unsubscribe.clear();
        self.packet = Packet::new(NodeId::from_bits(0));
    }

    /// Ends the packet, so that what is pushed next comes after it.
    pub(super) fn flush(&mut self) {
        let from = self.packet.from;
        let mut frames: Vec<_> = self.attach.take().into_iter().collect();
        for (topics, added) in [(&mut self.subscribe, true), (&mut self.unsubscribe, false)] {
            while !topics.is_empty() {
                let rest = topics.split_off(topics.len().min(FRAMES_PER_PACKET));
                let topics = core::mem::replace(topics, rest);
                frames.push(if added {
                    ToNode::Subscribe { topics }
                } else {
                    ToNode::Unsubscribe { topics }
                });
                if frames.len() >= 8 {
                    let frames = core::mem::take(&mut frames);
                    self.queue.push_back(ClientOutput::Port(Packet {
                        from,
                        frames,
                        payloads: Vec::new(),
                    }));
                }
            }
        }
        let mut packet = core::mem::replace(&mut self.packet, Packet::new(from));
        frames.append(&mut packet.frames);
        packet.frames = frames;
        if !packet.frames.is_empty() {
            self.queue.push_back(ClientOutput::Port(packet));
        }
    }

    pub(super) fn pop(&mut self) -> Option<ClientOutput<P>> {
        if self.queue.is_empty() {
            self.flush();
        }
        self.queue.pop_front()
    }
}

/// What all parts of a client share.
#[derive(Debug)]
pub(super) struct Env<P> {
    /// Waking time of the present call.
    pub(super) now: Instant,
    pub(super) config: ClientConfig,
    pub(super) rng: Rng,
    pub(super) identity: ClientIdentity,
    pub(super) counters: ClientCounters,
    pub(super) outbox: Outbox<P>,
    /// Payload bytes in all rings.
    pub(super) ring_bytes: usize,
    /// No timer is due before this (waking time). Lowered by whoever sets a timer, computed anew
    /// when it is reached; a timer that was cancelled costs one idle tick.
    due: Option<Instant>,
}

impl<P> Env<P> {
    pub(super) const fn new(
        now: Instant,
        config: ClientConfig,
        rng: Rng,
        identity: ClientIdentity,
    ) -> Self {
        Self {
            now,
            config,
            rng,
            identity,
            counters: ClientCounters::ZERO,
            outbox: Outbox::new(),
            ring_bytes: 0,
            due: None,
        }
    }

    /// Asks to be called at `at` at the latest.
    pub(super) fn wake_at(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes the due time; whoever still has a timer sets it again.
    pub(super) const fn clear_due(&mut self) {
        self.due = None;
    }

    /// Reports something to the application.
    pub(super) fn report(&mut self, source: ErrorSource, error: Error) {
        self.outbox.push(ClientOutput::Error { source, error });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_one_drain_travel_in_one_packet_topics_first() {
        let mut outbox = Outbox::<u64>::new();
        outbox.open(ToNode::Nudge);
        outbox.send(ToNode::Ping);
        outbox.subscribe("a");
        outbox.subscribe("b");
        outbox.unsubscribe("a");
        let Some(ClientOutput::Port(packet)) = outbox.pop() else { panic!("a packet") };
        assert_eq!(
            packet.frames,
            [
                ToNode::Nudge,
                ToNode::Subscribe { topics: vec!["b".into()] },
                ToNode::Unsubscribe { topics: vec!["a".into()] },
                ToNode::Ping
            ]
        );
        assert_eq!(outbox.pop(), None);
    }

    #[test]
    fn a_flood_of_topics_and_frames_is_split_into_bounded_packets() {
        let mut outbox = Outbox::<u64>::new();
        outbox.open(ToNode::Nudge);
        for number in 0..6_000_u32 {
            outbox.subscribe(&number.to_string());
            outbox.send(ToNode::Nudge);
        }
        let (mut topics, mut nudges) = (0, 0);
        while let Some(ClientOutput::Port(packet)) = outbox.pop() {
            assert!(packet.frames.len() <= FRAMES_PER_PACKET + 8);
            for frame in packet.frames {
                match frame {
                    ToNode::Subscribe { topics: some } => topics += some.len(),
                    _ => nudges += 1,
                }
            }
        }
        assert_eq!((topics, nudges), (6_000, 6_001));
    }
}

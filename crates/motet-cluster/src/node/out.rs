//! What one input makes a node say, gathered so that each destination gets one packet.

use std::collections::VecDeque;

use litemap::LiteMap;
use motet_protocol::transport::TransportOp;
use motet_protocol::{ClientId, NodeId};

use super::api::{NodeEvent, NodeOutput, NodePacket, ToPagePacket};
use crate::frame::{Frame, ToPage};
use crate::lock::LockOp;
use crate::packet::Packet;

/// Outputs in the making.
///
/// A node never hears its own posts, so what it addresses to itself, or announces, comes back
/// through [`Out::take_local`] within the same input.
pub(crate) struct Out<P> {
    me: NodeId,
    announce: NodePacket<P>,
    inboxes: LiteMap<NodeId, NodePacket<P>>,
    ports: LiteMap<ClientId, ToPagePacket<P>>,
    local: VecDeque<NodePacket<P>>,
    data: VecDeque<NodeOutput<P>>,
    ready: VecDeque<NodeOutput<P>>,
}

impl<P: Clone> Out<P> {
    pub(crate) fn new(me: NodeId) -> Self {
        Self {
            me,
            announce: Packet::new(me),
            inboxes: LiteMap::new(),
            ports: LiteMap::new(),
            local: VecDeque::new(),
            data: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// Says a frame without payload to all nodes, this one included.
    pub(crate) fn announce(&mut self, frame: Frame) {
        self.local.push_back(Packet::single(self.me, frame.clone()));
        self.announce.frames.push(frame);
    }

    /// Says a frame without payload to one node.
    pub(crate) fn send(&mut self, to: NodeId, frame: Frame) {
        self.send_with(to, |_| frame);
    }

    /// Says a frame to one node; `build` attaches the payloads it refers to.
    pub(crate) fn send_with(
        &mut self,
        to: NodeId,
        build: impl FnOnce(&mut NodePacket<P>) -> Frame,
    ) {
        if to == self.me {
            let mut packet = Packet::new(self.me);
            let frame = build(&mut packet);
            packet.frames.push(frame);
            self.local.push_back(packet);
        } else {
            let packet = self.inboxes.entry(to).or_insert_with(|| Packet::new(self.me));
            let frame = build(packet);
            packet.frames.push(frame);
        }
    }

    /// Says a frame without payload to a page.
    pub(crate) fn page(&mut self, client: ClientId, frame: ToPage) {
        self.page_with(client, |_| frame);
    }

    /// Says a frame to a page; `build` attaches the payloads it refers to.
    pub(crate) fn page_with(
        &mut self,
        client: ClientId,
        build: impl FnOnce(&mut ToPagePacket<P>) -> ToPage,
    ) {
        let packet = self.ports.entry(client).or_insert_with(|| Packet::new(self.me));
        let frame = build(packet);
        packet.frames.push(frame);
    }

    pub(crate) fn lock(&mut self, op: LockOp) {
        self.ready.push_back(NodeOutput::Lock(op));
    }

    pub(crate) fn transport(&mut self, op: TransportOp<P>) {
        self.ready.push_back(NodeOutput::Transport(op));
    }

    /// Says messages to all pages. They overtake everything else: handlers wait for them, and
    /// channels have no mutual order. A page that is catching up holds what comes before its answer.
    pub(crate) fn data(&mut self, shard: u8, packet: NodePacket<P>) {
        self.data.push_back(NodeOutput::Data { shard, packet });
    }

    pub(crate) fn event(&mut self, event: NodeEvent) {
        self.ready.push_back(NodeOutput::Event(event));
    }

    /// The next packet that the node said to itself.
    pub(crate) fn take_local(&mut self) -> Option<NodePacket<P>> {
        self.local.pop_front()
    }

    /// Closes the packets: what was said during one input is ready to be posted.
    pub(crate) fn flush(&mut self) {
        if !self.announce.frames.is_empty() {
            let packet = core::mem::replace(&mut self.announce, Packet::new(self.me));
            self.ready.push_back(NodeOutput::Announce(packet));
        }
        for (to, packet) in core::mem::take(&mut self.inboxes) {
            self.ready.push_back(NodeOutput::Inbox { to, packet });
        }
        for (client, packet) in core::mem::take(&mut self.ports) {
            self.ready.push_back(NodeOutput::Port { client, packet });
        }
    }

    pub(crate) fn poll(&mut self) -> Option<NodeOutput<P>> {
        self.data.pop_front().or_else(|| self.ready.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_for_handlers_overtake_what_was_said_before_them() {
        let me = NodeId::from_bits(1);
        let mut out = Out::<u64>::new(me);
        out.send(NodeId::from_bits(2), Frame::Pulse { fence: Default::default() });
        out.flush();
        out.data(0, Packet::new(me));
        out.data(1, Packet::new(me));
        assert!(matches!(out.poll(), Some(NodeOutput::Data { shard: 0, .. })));
        assert!(matches!(out.poll(), Some(NodeOutput::Data { shard: 1, .. })));
        assert!(matches!(out.poll(), Some(NodeOutput::Inbox { .. })));
    }
}

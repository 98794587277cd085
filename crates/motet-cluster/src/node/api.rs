//! What a node is told and what it asks for: its whole surface to a driver.

use core::time::Duration;

use motet_protocol::transport::{TransportEvent, TransportOp};
use motet_protocol::{ClientId, Error, Fence, Generation, NodeId, TabId};

use crate::frame::{Frame, ToNode, ToPage};
use crate::lock::{LockEvent, LockOp};
use crate::packet::Packet;

/// A packet between nodes, or from a node to the data channels.
pub type NodePacket<P> = Packet<Frame, P>;
/// A packet from a page to its node.
pub type ToNodePacket<P> = Packet<ToNode, P>;
/// A packet from a node to a page.
pub type ToPagePacket<P> = Packet<ToPage, P>;

/// How a node behaves. All nodes of a cluster must agree; the cluster's name is derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// At most so many nodes own topics. Default 3.
    pub max_active_nodes: u32,
    /// Messages kept per owned topic for those who catch up. Default 100.
    pub ring_messages: usize,
    /// Payload bytes kept per owned topic. Default 1 MiB.
    pub ring_bytes: usize,
    /// Batching window of the data channels. Default 2 ms.
    pub batch_window: Duration,
    /// Topics of others that the node remembers. Default 500.
    pub known_topics: usize,
    /// Several pages share the node: it waits on each page's lock to learn of its death.
    pub shared: bool,
    /// This build, for skew reports.
    pub build: String,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            max_active_nodes: 3,
            ring_messages: 100,
            ring_bytes: 1 << 20,
            batch_window: Duration::from_millis(2),
            known_topics: 500,
            shared: false,
            build: String::new(),
        }
    }
}

/// Who a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The node, drawn anew for each.
    pub node: NodeId,
    /// The tab of the page that started it.
    pub tab: TabId,
    /// That page is visible.
    pub visible: bool,
}

/// What a node hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeInput<P> {
    /// Inbox and announce channel are open: begin. First input.
    Start,
    /// The time named by `next_timeout` has come, or passed.
    Tick,
    /// From the announce channel. A node never hears its own posts.
    Announce(NodePacket<P>),
    /// From the node's inbox channel.
    Inbox(NodePacket<P>),
    /// From a page's port.
    Port {
        /// The page.
        client: ClientId,
        /// What it says.
        packet: ToNodePacket<P>,
    },
    /// A page is gone: its port closed or its lock fell free.
    PortGone {
        /// The page.
        client: ClientId,
    },
    /// From the lock manager.
    Lock(LockEvent),
    /// From the transport.
    Transport(TransportEvent<P>),
}

/// What a node asks of its driver. Drained after every input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOutput<P> {
    /// Post on the announce channel.
    Announce(NodePacket<P>),
    /// Post on another node's inbox channel.
    Inbox {
        /// The other node.
        to: NodeId,
        /// The packet.
        packet: NodePacket<P>,
    },
    /// Post on a data channel.
    Data {
        /// The channel.
        shard: u8,
        /// The packet.
        packet: NodePacket<P>,
    },
    /// Post to a page.
    Port {
        /// The page.
        client: ClientId,
        /// The packet.
        packet: ToPagePacket<P>,
    },
    /// For the lock manager.
    Lock(LockOp),
    /// For the transport.
    Transport(TransportOp<P>),
    /// For logs and traces; never carries payloads.
    Event(NodeEvent),
}

/// What happened in a node, for observers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// It became coordinator.
    Elected(Fence),
    /// It is coordinator no more.
    SteppedDown,
    /// It follows this coordinator.
    Following(NodeId, Fence),
    /// It chose an owner.
    Chose {
        /// The topic.
        topic: String,
        /// The owner.
        owner: NodeId,
        /// The decision.
        generation: Generation,
        /// Topics owned by each candidate when the choice was made, in order of preference.
        candidates: Vec<(NodeId, u32)>,
    },
    /// It woke from a stall of this many milliseconds.
    Woke(u64),
    /// Frames were dropped because they were malformed, foreign or not allowed for their sender.
    BadFrames(u32),
    /// A member runs another build.
    BuildSkew(NodeId),
    /// Something to report.
    Error(Error),
}

//! Every frame of the cluster protocol, with its fields: the one place where they are defined.
//!
//! Frames travel in a [`crate::Packet`]. Encoded, each is a CBOR array with numbered fields:
//! a newer build may append fields (ignored by older ones) and frames (skipped and counted), so
//! builds of the same protocol major understand each other. Payloads are never inside a frame: a
//! [`Slot`] says where in the packet they are.

mod port;

use minicbor::{Decode, Encode};
use motet_protocol::{
    CallId, ClientId, Error, Fence, NodeId, Offset, Position, RouteFence, StreamEpoch,
};

pub use self::port::{Heard, ToNode, ToPage};
use crate::table::{Member, Route, RouteState, TransportStatus};

/// Index of a payload in its packet.
pub type Slot = u32;

/// Optional features of a build, as bits. The coordinator uses what all members know.
pub type Capabilities = u32;

/// What this build can do beyond the base protocol of its major: nothing yet.
pub const CAPABILITIES: Capabilities = 0;

/// A message without its payload.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct MessageHead {
    /// Offset in the stream epoch of the frame around it.
    #[n(0)]
    pub offset: Offset,
    /// Bytes of the payload on the wire.
    #[n(1)]
    pub size: u32,
    /// The payload.
    #[n(2)]
    pub slot: Slot,
    /// The application's message id.
    #[n(3)]
    pub message_id: Option<String>,
    /// The application's timestamp, milliseconds since 1970.
    #[n(4)]
    pub timestamp_ms: Option<i64>,
}

/// A topic that a reporting node owns or has seen owned.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ReportedRoute {
    /// The topic.
    #[n(0)]
    pub topic: String,
    /// The owner that the reporter knows.
    #[n(1)]
    pub owner: NodeId,
    /// The decision the reporter knows: a floor for the next one.
    #[n(2)]
    pub fence: RouteFence,
    /// How far it has come, when the reporter is the owner itself.
    #[n(3)]
    pub state: Option<RouteState>,
}

/// A publication on its way to the node that will send it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PublishFrame {
    /// The attempt.
    #[n(0)]
    pub call: CallId,
    /// The topic.
    #[n(1)]
    pub topic: String,
    /// The payload.
    #[n(2)]
    pub slot: Slot,
    /// Bytes of the payload, estimated before encoding.
    #[n(3)]
    pub size: u32,
    /// Idempotency key of the operation, the same for all attempts.
    #[n(4)]
    pub idempotency_key: Option<String>,
    /// The application's message id.
    #[n(5)]
    pub message_id: Option<String>,
    /// The application's timestamp, milliseconds since 1970.
    #[n(6)]
    pub timestamp_ms: Option<i64>,
    /// Time left before the caller gives up.
    #[n(7)]
    pub remaining_ms: u32,
}

/// A subscriber's request for its place in the stream, and for what it misses.
///
/// First subscription, owner change, hole and thaw are all the same question.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct JoinFrame {
    /// The topic.
    #[n(0)]
    pub topic: String,
    /// The page.
    #[n(1)]
    pub client: ClientId,
    /// The attempt; a reply to an older one is dropped.
    #[n(2)]
    pub call: CallId,
    /// The last message the page has delivered or covered with a gap; `None` at first.
    #[n(3)]
    pub position: Option<Position>,
    /// How many earlier messages a first join wants replayed.
    #[n(4)]
    pub replay: u32,
}

/// The owner's answer to a [`JoinFrame`]. Long catch-ups come as several, `more` set on all but
/// the last.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct JoinedFrame {
    /// The topic.
    #[n(0)]
    pub topic: String,
    /// The page asked for.
    #[n(1)]
    pub client: ClientId,
    /// The attempt.
    #[n(2)]
    pub call: CallId,
    /// Authority of the answering owner.
    #[n(3)]
    pub fence: RouteFence,
    /// Where the page stands after these messages.
    #[n(4)]
    pub position: Position,
    /// Messages lie before the first of `messages` (or before `position`) that cannot be had.
    #[n(5)]
    pub missing: Option<GapReason>,
    /// The first `replayed` of `messages` are earlier than the subscription.
    #[n(6)]
    pub replayed: u32,
    /// Ascending and contiguous, ending at `position` (all in its epoch).
    #[n(7)]
    pub messages: Vec<MessageHead>,
    /// More follow.
    #[n(8)]
    pub more: bool,
    /// The server keeps history: positions survive a change of owner.
    #[n(9)]
    pub history: bool,
}

/// Why messages are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum GapReason {
    /// The server no longer has them.
    #[n(0)]
    NotRetained,
    /// The server's stream started anew (a restart without durable history).
    #[n(1)]
    StreamReset,
    /// The topic has no history and its owner changed.
    #[n(2)]
    OwnerChanged,
    /// The topic has no history and the connection was lost.
    #[n(3)]
    ConnectionLost,
    /// No owner filled the hole in time.
    #[n(4)]
    RepairTimeout,
    /// The page's own queue was full.
    #[n(5)]
    Overflow,
}

/// Frames between nodes, and from nodes to the pages' data channels.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Frame {
    // Announce channel.
    /// A node that is new, or lost touch, asks for the coordinator.
    #[n(0)]
    Hello {
        /// What its build can do.
        #[n(0)]
        capabilities: Capabilities,
        /// Which build it is.
        #[n(1)]
        build: String,
    },
    /// A coordinator takes office, or answers a Hello: everybody reports to it.
    #[n(1)]
    Claim {
        /// Its fence.
        #[n(0)]
        fence: Fence,
        /// It is deciding the table anew and waits for the reports.
        #[n(1)]
        rebuild: bool,
    },
    /// Members that are new or changed, and those gone.
    #[n(2)]
    Members {
        /// The coordinator's fence.
        #[n(0)]
        fence: Fence,
        /// Rows that are new or changed.
        #[n(1)]
        members: Vec<Member>,
        /// Nodes that are gone.
        #[n(2)]
        gone: Vec<NodeId>,
        /// `members` is everybody.
        #[n(3)]
        full: bool,
        /// What every member's build can do.
        #[n(4)]
        capabilities: Capabilities,
    },
    /// Routes that are new or changed, and those dropped. To the owner it is the order to act.
    #[n(3)]
    Assign {
        /// The coordinator's fence.
        #[n(0)]
        fence: Fence,
        /// Rows that are new or changed.
        #[n(1)]
        routes: Vec<Route>,
        /// Topics that nobody wants any more.
        #[n(2)]
        dropped: Vec<String>,
        /// `routes` is the whole table.
        #[n(3)]
        full: bool,
    },
    /// The coordinator is alive; owners answer with Pulse.
    #[n(4)]
    Beat {
        /// The coordinator's fence.
        #[n(0)]
        fence: Fence,
    },
    /// A node goes away: said by the node, or by its page when that ends it.
    #[n(5)]
    Leaving {
        /// The node.
        #[n(0)]
        node: NodeId,
        /// It stays until its topics are handed over; otherwise it is gone now.
        #[n(1)]
        graceful: bool,
    },
    /// A node woke from a stall and acts no more until it knows that its routes stand.
    #[n(6)]
    Revalidate {
        /// The fence it knew.
        #[n(0)]
        fence: Fence,
    },

    // Inbox of the coordinator.
    /// All a coordinator must know of a node, to rebuild the table.
    #[n(7)]
    Report {
        /// The fence it answers.
        #[n(0)]
        fence: Fence,
        /// The highest fence the node knows of.
        #[n(1)]
        known: Fence,
        /// The node's own row; order 0 when it never had one.
        #[n(2)]
        member: Member,
        /// Topics it owns.
        #[n(3)]
        owned: Vec<ReportedRoute>,
        /// Topics its pages subscribe.
        #[n(4)]
        wanted: Vec<String>,
        /// Routes of others it has seen.
        #[n(5)]
        seen: Vec<ReportedRoute>,
        /// What its build can do.
        #[n(6)]
        capabilities: Capabilities,
        /// Which build it is.
        #[n(7)]
        build: String,
    },
    /// The node's pages began or ceased to want topics.
    #[n(8)]
    Want {
        /// Began.
        #[n(0)]
        added: Vec<String>,
        /// Ceased.
        #[n(1)]
        removed: Vec<String>,
    },
    /// The node's visibility or connection changed.
    #[n(9)]
    Status {
        /// A page of it is visible.
        #[n(0)]
        visible: bool,
        /// Its server connection.
        #[n(1)]
        transport: TransportStatus,
        /// Its server deduplicates publications by idempotency key.
        #[n(2)]
        idempotent: bool,
        /// Its connection needs a token and none of its pages says a word: it can own nothing.
        #[n(3)]
        tokenless: bool,
    },
    /// How far the owner has come with a route.
    #[n(10)]
    Confirm {
        /// The topic.
        #[n(0)]
        topic: String,
        /// The decision it concerns.
        #[n(1)]
        fence: RouteFence,
        /// The state.
        #[n(2)]
        state: RouteState,
    },
    /// An owner is alive: the answer to Beat.
    #[n(11)]
    Pulse {
        /// The fence of the Beat.
        #[n(0)]
        fence: Fence,
    },

    // Inbox of any node.
    /// Are you alive? Answered by Beat (coordinator) or Pulse (others), whatever their timers do.
    #[n(12)]
    Ping {
        /// The fence the asker knows.
        #[n(0)]
        fence: Fence,
    },
    /// The old owner has unsubscribed: the new one may subscribe.
    #[n(13)]
    Released {
        /// The topic.
        #[n(0)]
        topic: String,
        /// The decision that moved it: only an exact match counts.
        #[n(1)]
        fence: RouteFence,
        /// Where the old owner stopped.
        #[n(2)]
        position: Option<Position>,
    },
    /// A subscriber asks the owner for its place.
    #[n(14)]
    Join(#[n(0)] JoinFrame),
    /// The owner's answer, to the subscriber's node.
    #[n(15)]
    Joined(#[n(0)] JoinedFrame),
    /// The asked node does not own the topic; ask again when the route is known.
    #[n(16)]
    NotOwner {
        /// The topic.
        #[n(0)]
        topic: String,
        /// The page that asked.
        #[n(1)]
        client: ClientId,
        /// The attempt.
        #[n(2)]
        call: CallId,
    },
    /// A publication for the receiver to send.
    #[n(17)]
    Publish(#[n(0)] PublishFrame),
    /// Its outcome: `None` is acknowledged.
    #[n(18)]
    Published {
        /// The attempt.
        #[n(0)]
        call: CallId,
        /// Why not.
        #[n(1)]
        error: Option<Error>,
    },
    /// A new owner without server history asks a subscriber for the messages it kept.
    #[n(19)]
    RingWanted {
        /// The topic.
        #[n(0)]
        topic: String,
        /// The asker's authority.
        #[n(1)]
        fence: RouteFence,
        /// The page that kept them.
        #[n(2)]
        client: ClientId,
    },
    /// The kept messages.
    #[n(20)]
    Ring {
        /// The topic.
        #[n(0)]
        topic: String,
        /// The asker's authority.
        #[n(1)]
        fence: RouteFence,
        /// The stream epoch of the messages.
        #[n(2)]
        epoch: StreamEpoch,
        /// Ascending, contiguous.
        #[n(3)]
        messages: Vec<MessageHead>,
    },

    // Data channels, read by pages.
    /// Live messages of a topic.
    #[n(21)]
    Data {
        /// The topic.
        #[n(0)]
        topic: String,
        /// The owner's authority.
        #[n(1)]
        fence: RouteFence,
        /// The stream epoch.
        #[n(2)]
        epoch: StreamEpoch,
        /// Ascending, contiguous.
        #[n(3)]
        messages: Vec<MessageHead>,
    },
    /// Where a topic stands: after a subscription was made or made again. Pages behind it join.
    #[n(22)]
    Head {
        /// The topic.
        #[n(0)]
        topic: String,
        /// The owner's authority.
        #[n(1)]
        fence: RouteFence,
        /// The last message.
        #[n(2)]
        position: Position,
        /// The server keeps history.
        #[n(3)]
        history: bool,
    },
}

/// What a page itself posts on the announce channel, encoded as the [`Frame`] of the same number:
/// the encoder of them all would make the page's module 1.8 KB (gzip) larger.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
pub enum PageFrame {
    /// [`Frame::Leaving`], said of the page's node.
    #[n(5)]
    Leaving {
        /// The node.
        #[n(0)]
        node: NodeId,
        /// See [`Frame::Leaving`].
        #[n(1)]
        graceful: bool,
    },
}

impl From<PageFrame> for Frame {
    fn from(frame: PageFrame) -> Self {
        match frame {
            PageFrame::Leaving { node, graceful } => Self::Leaving { node, graceful },
        }
    }
}

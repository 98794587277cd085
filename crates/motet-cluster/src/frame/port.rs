//! Frames on the port between a page and its node.

use minicbor::{Decode, Encode};
use motet_protocol::{CallId, ClientId, Error, Fence, NodeId, RouteFence, StreamEpoch, TabId};

use super::{JoinFrame, JoinedFrame, MessageHead, PublishFrame};
use crate::table::{Member, Route, TransportStatus};

/// Frames from a page to its node.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ToNode {
    /// A page begins to use the node; first frame of a port.
    #[n(0)]
    Attach {
        /// The page.
        #[n(0)]
        client: ClientId,
        /// Its tab.
        #[n(1)]
        tab: TabId,
        /// It is visible.
        #[n(2)]
        visible: bool,
        /// Its build; another build than the node's is refused.
        #[n(3)]
        build: String,
    },
    /// First subscriber of these topics in the page.
    #[n(1)]
    Subscribe {
        /// The topics.
        #[n(0)]
        topics: Vec<String>,
    },
    /// Last subscriber of these topics left the page.
    #[n(2)]
    Unsubscribe {
        /// The topics.
        #[n(0)]
        topics: Vec<String>,
    },
    /// For the owner of the topic.
    #[n(3)]
    Join(#[n(0)] JoinFrame),
    /// For the owner of the topic, or whoever can send.
    #[n(4)]
    Publish(#[n(0)] PublishFrame),
    /// The page became visible or hidden.
    #[n(5)]
    Visible {
        /// Now visible.
        #[n(0)]
        visible: bool,
    },
    /// The network is back, or the page is shown again.
    #[n(6)]
    Nudge,
    /// Answer to [`ToPage::TokenWanted`].
    #[n(7)]
    Token {
        /// The topic it is for, or `None` for the connection's.
        #[n(0)]
        topic: Option<String>,
        /// The token, or `None` when the application has none.
        #[n(1)]
        token: Option<String>,
    },
    /// Try again what the server refused for good.
    #[n(8)]
    Retry,
    /// Answer to [`ToPage::RingWanted`].
    #[n(9)]
    Ring {
        /// The topic.
        #[n(0)]
        topic: String,
        /// The asker's authority, as it came.
        #[n(1)]
        fence: RouteFence,
        /// The stream epoch of the messages.
        #[n(2)]
        epoch: StreamEpoch,
        /// Ascending, contiguous.
        #[n(3)]
        messages: Vec<MessageHead>,
    },
    /// Are you alive?
    #[n(10)]
    Ping,
    /// The page leaves; a node with no other page hands its topics over and then says Closed.
    #[n(11)]
    Bye,
}

/// When a member gave a sign of life.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Heard {
    /// The member.
    #[n(0)]
    pub node: NodeId,
    /// Milliseconds ago, in the teller's waking time.
    #[n(1)]
    pub ago_ms: u32,
}

/// Frames from a node to a page.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ToPage {
    /// The page is attached.
    #[n(0)]
    Attached {
        /// The node; another id than before means that it was started anew.
        #[n(0)]
        node: NodeId,
        /// The node's build.
        #[n(1)]
        build: String,
    },
    /// The node is a cluster member under this coordinator, or has lost it (`None`).
    #[n(1)]
    Coordinator {
        /// The coordinator.
        #[n(0)]
        node: Option<NodeId>,
        /// Its fence.
        #[n(1)]
        fence: Fence,
    },
    /// Members that are new or changed, and those gone.
    #[n(2)]
    Members {
        /// Rows that are new or changed.
        #[n(0)]
        members: Vec<Member>,
        /// Nodes that are gone.
        #[n(1)]
        gone: Vec<NodeId>,
        /// `members` is everybody.
        #[n(2)]
        full: bool,
    },
    /// Routes that are new or changed, and those dropped.
    #[n(3)]
    Routes {
        /// The coordinator's fence.
        #[n(0)]
        fence: Fence,
        /// Rows that are new or changed.
        #[n(1)]
        routes: Vec<Route>,
        /// Topics dropped.
        #[n(2)]
        dropped: Vec<String>,
        /// `routes` is the whole table.
        #[n(3)]
        full: bool,
    },
    /// The node's own server connection.
    #[n(4)]
    Transport {
        /// Its state.
        #[n(0)]
        status: TransportStatus,
        /// Why it is errored.
        #[n(1)]
        error: Option<Error>,
        /// No further attempt is made before a new token or Retry.
        #[n(2)]
        terminal: bool,
    },
    /// The owner's answer to a Join.
    #[n(5)]
    Joined(#[n(0)] JoinedFrame),
    /// The owner is not known, or not the one asked: join again when the route changes.
    #[n(6)]
    NotOwner {
        /// The topic.
        #[n(0)]
        topic: String,
        /// The attempt.
        #[n(1)]
        call: CallId,
    },
    /// Outcome of a publish attempt: `None` is acknowledged.
    #[n(7)]
    Published {
        /// The attempt.
        #[n(0)]
        call: CallId,
        /// Why not.
        #[n(1)]
        error: Option<Error>,
        /// Resending with the same idempotency key is safe with this server.
        #[n(2)]
        idempotent: bool,
    },
    /// A token is needed.
    #[n(8)]
    TokenWanted {
        /// The topic it is for, or `None` for the connection's.
        #[n(0)]
        topic: Option<String>,
    },
    /// A new owner without server history wants the messages the page kept.
    #[n(9)]
    RingWanted {
        /// The topic.
        #[n(0)]
        topic: String,
        /// The asker's authority.
        #[n(1)]
        fence: RouteFence,
    },
    /// The node lives.
    #[n(10)]
    Pong {
        /// The node.
        #[n(0)]
        node: NodeId,
        /// Members it has heard of.
        #[n(1)]
        heard: Vec<Heard>,
    },
    /// All topics are handed over; the node may be ended.
    #[n(11)]
    Closed,
    /// The node took the page for gone, and knows nothing of it any more: it attaches anew.
    #[n(13)]
    Detached,
    /// So many frames from elsewhere were malformed, foreign or not allowed for their sender.
    #[n(14)]
    BadFrames {
        /// Since the node started.
        #[n(0)]
        count: u32,
    },
    /// Something to report to the application.
    #[n(12)]
    Report {
        /// What.
        #[n(0)]
        error: Error,
    },
}

//! The rows of the cluster's table, as the coordinator decides them and every node repeats them.

use minicbor::{Decode, Encode};
use motet_protocol::{Error, NodeId, RouteFence, TabId};

/// State of a node's server connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum TransportStatus {
    /// Not wanted.
    #[n(0)]
    #[default]
    Idle,
    /// Being opened.
    #[n(1)]
    Connecting,
    /// Open.
    #[n(2)]
    Connected,
    /// Lost or refused; an owner of last resort.
    #[n(3)]
    Errored,
}

/// One cluster member.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Member {
    /// The node.
    #[n(0)]
    pub node: NodeId,
    /// The tab whose page started it.
    #[n(1)]
    pub tab: TabId,
    /// Registration order, counted by coordinators from 1.
    #[n(2)]
    pub order: u64,
    /// Whether a page of it is visible.
    #[n(3)]
    pub visible: bool,
    /// Its server connection.
    #[n(4)]
    pub transport: TransportStatus,
    /// It is going away and takes no new topics.
    #[n(5)]
    pub leaving: bool,
    /// Its server deduplicates publications by idempotency key.
    #[n(6)]
    pub idempotent: bool,
}

/// How far a route has come.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum RouteState {
    /// Decided; the owner has not answered yet.
    #[n(0)]
    Assigned,
    /// The owner has taken it and is subscribing at the server.
    #[n(1)]
    Subscribing,
    /// The owner holds the server subscription.
    #[n(2)]
    Subscribed,
    /// The server refused it for good.
    #[n(3)]
    Failed(#[n(0)] Error),
}

/// Who owns a topic.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Route {
    /// The topic.
    #[n(0)]
    pub topic: String,
    /// The only node that may subscribe it at the server.
    #[n(1)]
    pub owner: NodeId,
    /// The decision that made it. A later coordinator that finds the route standing keeps it.
    #[n(2)]
    pub fence: RouteFence,
    /// The node that must release the topic first, during a graceful handoff.
    #[n(3)]
    pub handoff_from: Option<NodeId>,
    /// How far it has come.
    #[n(4)]
    pub state: RouteState,
    /// Nodes with a subscriber. Updated at leisure: at most every 250 ms.
    #[n(5)]
    pub subscribers: u32,
}

//! What a client (one page's handle on the bus) is told and what it asks for.

use core::time::Duration;

use motet_protocol::{CallId, ClientId, CorrelationId, Error, NodeId, Position, TabId};

use crate::frame::{GapReason, PageFrame};
use crate::node::{NodePacket, ToNodePacket, ToPagePacket};
use crate::packet::Packet;

/// One subscription call of the application.
pub type HandlerId = u32;

/// How a client behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The tab.
    pub tab: TabId,
    /// The page is visible at the start.
    pub visible: bool,
    /// How long a topic without handlers stays subscribed. Default 250 ms.
    pub linger: Duration,
    /// Messages kept per topic for late handlers. Default 100.
    pub ring_messages: usize,
    /// Payload bytes kept per topic. Default 1 MiB.
    pub ring_bytes: usize,
    /// Payload bytes kept in all. Default 32 MiB.
    pub ring_bytes_total: usize,
    /// How long a hole is left open before a gap is reported. Default 500 ms.
    pub hole_wait: Duration,
    /// Messages held behind a hole before a gap is reported. Default 1,000.
    pub hole_messages: usize,
    /// Publications waiting; the oldest is rejected beyond it. Default 1,000.
    pub publish_queue: usize,
    /// Time a publication has, unless its call says otherwise. Default 10 s.
    pub publish_deadline: Duration,
    /// Receivers drop a message whose id was seen in the last 60 s (1,000 ids). Default off.
    pub dedupe_by_id: bool,
    /// Node restarts a minute. Default 5.
    pub node_restarts: u32,
    /// This build.
    pub build: String,
}

impl ClientConfig {
    /// The defaults, for this tab.
    #[must_use]
    pub fn new(tab: TabId) -> Self {
        Self {
            tab,
            visible: true,
            linger: Duration::from_millis(250),
            ring_messages: 100,
            ring_bytes: 1 << 20,
            ring_bytes_total: 32 << 20,
            hole_wait: Duration::from_millis(500),
            hole_messages: 1_000,
            publish_queue: 1_000,
            publish_deadline: Duration::from_secs(10),
            dedupe_by_id: false,
            node_restarts: 5,
            build: String::new(),
        }
    }
}

/// What the browser does to the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEvent {
    /// `pagehide`: the page is closed, navigated away from or put into the back/forward cache.
    Hide,
    /// `pageshow` of a restored page.
    Show,
    /// `freeze`.
    Freeze,
    /// `resume`.
    Resume,
    /// `visibilitychange`.
    Visible(bool),
    /// `online`.
    Online,
}

/// A publication by the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishCall<P> {
    /// The topic.
    pub topic: String,
    /// The payload.
    pub payload: P,
    /// Bytes of the payload, estimated.
    pub size: u32,
    /// The application's message id.
    pub message_id: Option<String>,
    /// The application's timestamp, milliseconds since 1970.
    pub timestamp_ms: Option<i64>,
    /// The operation's idempotency key; one is drawn when absent.
    pub idempotency_key: Option<String>,
    /// Time it has; the configured deadline when absent.
    pub deadline: Option<Duration>,
}

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientInput<P> {
    /// Begin (or begin again after a failure); harmless while running.
    Start,
    /// Leave the cluster, handing topics over first.
    Close,
    /// The time named by `next_timeout` has come, or passed.
    Tick,
    /// The application subscribes. The id is the driver's and not in use.
    Subscribe {
        /// The handler.
        handler: HandlerId,
        /// The topic.
        topic: String,
        /// Earlier messages wanted.
        replay: u32,
    },
    /// The application unsubscribes.
    Unsubscribe {
        /// The handler.
        handler: HandlerId,
    },
    /// The application publishes; settled by [`ClientOutput::Settled`].
    Publish {
        /// The driver's number of the call.
        correlation: CorrelationId,
        /// What.
        call: PublishCall<P>,
    },
    /// The application aborts a publish; it settles `ABORTED` unless it has settled.
    Abort {
        /// The call.
        correlation: CorrelationId,
    },
    /// The node that [`ClientOutput::StartNode`] asked for runs, and its port is open.
    NodeStarted {
        /// Which start.
        start: u32,
        /// The node is shared with other pages: it outlives this one.
        shared: bool,
    },
    /// The tab's identity is another than thought: its lock was held by a tab it was copied from.
    Tab(TabId),
    /// The node could not be started, or died (its lock fell free, its host reported an error).
    NodeGone {
        /// Which start.
        start: u32,
        /// Why.
        error: Error,
    },
    /// From the node's port.
    Port(ToPagePacket<P>),
    /// From a data channel.
    Data(NodePacket<P>),
    /// From the browser.
    Page(PageEvent),
    /// The application's answer to [`ClientOutput::TokenWanted`].
    Token {
        /// The topic it is for, or `None` for the connection's.
        topic: Option<String>,
        /// The token.
        token: Option<String>,
    },
    /// Try again what the server refused for good.
    Retry,
    /// A snapshot was read: the node is asked when it heard of the other members, at most once a
    /// second, for the next one to show.
    Inspect,
}

/// What a client asks of its driver. Drained after every input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientOutput<P> {
    /// Start a node and open its port; answered by `NodeStarted` or `NodeGone`.
    StartNode {
        /// Number of the start: what a former node says is ignored.
        start: u32,
    },
    /// Close the port and end the page's own node at once (a shared one lives on).
    StopNode,
    /// Post to the node.
    Port(ToNodePacket<P>),
    /// Post on the announce channel: `Leaving`, because the node is about to be ended.
    Announce(Packet<PageFrame, P>),
    /// Listen on a data channel.
    OpenShard(u8),
    /// Stop listening on it.
    CloseShard(u8),
    /// Hand a message to handlers.
    Deliver(Delivery<P>),
    /// Tell handlers that messages are missing.
    Gap {
        /// The topic.
        topic: String,
        /// What is missing.
        gap: Gap,
    },
    /// A publish has its outcome.
    Settled {
        /// The call.
        correlation: CorrelationId,
        /// Acknowledged by the server, or why not.
        result: Result<(), Error>,
    },
    /// A topic's subscription changed.
    Subscription {
        /// The topic.
        topic: String,
        /// Its state.
        state: SubscriptionState,
    },
    /// The client's state changed.
    Status(ClientStatus),
    /// The application should supply a token.
    TokenWanted {
        /// The topic it is for, or `None` for the connection's.
        topic: Option<String>,
    },
    /// Something to report.
    Error {
        /// The part it concerns.
        source: ErrorSource,
        /// What.
        error: Error,
    },
}

/// Who gets a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// Every handler of the topic that is present when delivery begins.
    All,
    /// A handler that catches up.
    One(HandlerId),
}

/// A message for handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The topic.
    pub topic: String,
    /// Who gets it.
    pub to: Recipients,
    /// Its place in the stream.
    pub position: Position,
    /// Earlier than the subscription.
    pub replayed: bool,
    /// The application's message id.
    pub message_id: Option<String>,
    /// The application's timestamp, milliseconds since 1970.
    pub timestamp_ms: Option<i64>,
    /// Bytes of the payload on the wire.
    pub size: u32,
    /// The payload.
    pub payload: P,
}

/// Messages that may be missing: all after `from` and before or at `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last message delivered.
    pub from: Position,
    /// The last one missing; `None` when it is not known how many.
    pub to: Option<Position>,
    /// Why.
    pub reason: GapReason,
}

/// A topic's subscription, as the page sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionState {
    /// Not yet answered by an owner.
    Pending,
    /// Messages after this position are delivered: the guarantee starts here.
    Ready(Position),
    /// The owner changed or is silent; what is missed will be caught up.
    Recovering,
    /// The server refused it for good.
    Failed(Error),
}

/// Lifecycle of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientStatus {
    /// Not started.
    Idle,
    /// The node is being started or joins the cluster.
    Starting,
    /// The node is a member; if it owns topics it is connected.
    Running {
        /// The node.
        node: NodeId,
    },
    /// The page is cached or frozen.
    Suspended,
    /// The coordinator or the connection is being replaced.
    Recovering,
    /// Running with less than was asked for.
    Degraded {
        /// The page's node; none while it cannot be started.
        node: Option<NodeId>,
        /// What is in the way.
        error: Error,
    },
    /// Stopped by an error; `Start` tries again.
    Failed(Error),
    /// Handing over.
    Closing,
    /// Ended for good.
    Closed,
}

/// The part an error concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorSource {
    /// Handing messages to handlers.
    Dispatch,
    /// The server connection.
    Transport,
    /// Working with the other tabs.
    Coordination,
    /// What the application configured.
    Config,
    /// What the page keeps over a reload.
    Storage,
}

/// A waiting publish, for the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPublish {
    /// The call.
    pub correlation: CorrelationId,
    /// The present attempt, when it was sent.
    pub call: Option<CallId>,
    /// The topic.
    pub topic: String,
    /// Attempts made.
    pub attempt: u32,
    /// Milliseconds since it was asked for.
    pub age_ms: u64,
    /// Milliseconds until it gives up.
    pub remaining_ms: u64,
}

/// The page and its place in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// This page, drawn anew at each start.
    pub client: ClientId,
    /// Its tab.
    pub tab: TabId,
    /// Its node, once attached.
    pub node: Option<NodeId>,
}

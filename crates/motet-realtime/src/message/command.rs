//! What a client sends.

use super::{
    ConnectRequest, HistoryRequest, PresenceRequest, PresenceStatsRequest, PublishExtension,
    RefreshRequest, SubRefreshRequest, SubscribeRequest,
};

/// One message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<P> {
    /// Correlates the reply; above 0 in everything but a send and a pong.
    pub id: u32,
    /// What is asked for; `None` with id 0 is the pong.
    pub request: Option<Request<P>>,
}

/// The request in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<P> {
    /// Opens the session; always the first command.
    Connect(Box<ConnectRequest<P>>),
    /// Subscribes to a channel.
    Subscribe(Box<SubscribeRequest<P>>),
    /// Ends a subscription.
    Unsubscribe(UnsubscribeRequest),
    /// Publishes into a channel.
    Publish(PublishRequest<P>),
    /// Asks who is in a channel.
    Presence(PresenceRequest),
    /// Asks how many are in a channel.
    PresenceStats(PresenceStatsRequest),
    /// Reads a channel's history.
    History(HistoryRequest),
    /// A ping of the client: servers refuse it.
    Ping,
    /// A message to the server that gets no reply.
    Send(SendRequest<P>),
    /// Calls a procedure of the server.
    Rpc(RpcRequest<P>),
    /// Prolongs the connection with a new token.
    Refresh(RefreshRequest),
    /// Prolongs a subscription with a new token.
    SubRefresh(SubRefreshRequest),
}

impl<P> Command<P> {
    /// A command that asks for something.
    #[must_use]
    pub const fn new(id: u32, request: Request<P>) -> Self {
        Self { id, request: Some(request) }
    }

    /// The answer to a server's ping.
    #[must_use]
    pub const fn pong() -> Self {
        Self { id: 0, request: None }
    }

    /// Whether this is the answer to a ping.
    #[must_use]
    pub const fn is_pong(&self) -> bool {
        self.id == 0 && self.request.is_none()
    }
}

/// Ends a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnsubscribeRequest {
    /// The channel.
    pub channel: String,
}

/// Publishes into a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishRequest<P> {
    /// The channel.
    pub channel: String,
    /// The payload.
    pub data: P,
    /// Kind of channel the publication is meant for: 0 for a stream, others name kinds that keep
    /// a map of keys.
    pub kind: i32,
    /// Idempotency key, message id and timestamp, for a server that negotiated the extension.
    pub motet: Option<PublishExtension>,
}

/// A message to the server that gets no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRequest<P> {
    /// The payload.
    pub data: P,
}

/// Calls a procedure of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcRequest<P> {
    /// The argument.
    pub data: P,
    /// Which procedure; may be empty.
    pub method: String,
}

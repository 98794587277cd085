//! What goes into a hub and what comes out of it.

use std::sync::Arc;

use super::{ApiError, ApiRequest, ApiResult};
use crate::broker::{BrokerEvent, BrokerRequest, OpId};
use crate::message::{Command, Disconnect, Push, Reply, StreamPosition};
use crate::server::{TokenClaims, TokenError, TokenKind};

/// Names one connection. The driver chooses it and never uses it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Names one call of the server's API. The driver chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiCallId(pub u64);

/// What a hub is told.
#[derive(Clone, Debug)]
pub enum Input<P> {
    /// A connection was opened.
    Open(SessionId),
    /// An open connection wants to be pinged by frames of its transport instead of messages. To be
    /// said before its first command.
    FramePings(SessionId),
    /// A connection answered [`Output::FramePing`].
    FramePong(SessionId),
    /// A connection sent a command.
    Command(SessionId, Command<P>),
    /// A connection sent something that is no command.
    Malformed(SessionId),
    /// A connection does not read what it is sent; the driver has dropped its queue.
    Slow(SessionId),
    /// A connection cannot be sent what a channel carries: its encoding has no form for it.
    Unfit(SessionId, String),
    /// A connection is gone.
    Closed(SessionId),
    /// The answer to [`Output::Verify`].
    Verified(OpId, Result<TokenClaims<P>, TokenError>),
    /// The broker reports.
    Broker(BrokerEvent<P>),
    /// The server's API is called; answered by [`Output::ApiReply`].
    Api(ApiCallId, ApiRequest<P>),
    /// The server stops: every connection is asked to come back elsewhere, none is taken any more.
    Shutdown,
    /// [`Hub::next_timeout`](super::Hub::next_timeout) has come.
    Timeout,
}

/// What a hub wants done, in this order.
#[derive(Clone, Debug)]
pub enum Output<P> {
    /// Send to one connection.
    Reply(SessionId, Reply<P>),
    /// Send the same to many connections. Encode it once per encoding.
    Fanout(Push<P>, Arc<Vec<SessionId>>),
    /// Send a ping frame of the transport to one connection.
    FramePing(SessionId),
    /// Send what is queued, then close with this code. No [`Input::Closed`] is needed, one is
    /// harmless.
    Close(SessionId, Disconnect),
    /// Verify a token and answer with [`Input::Verified`].
    Verify {
        /// Comes back with the answer.
        op: OpId,
        /// What the token is for.
        kind: TokenKind,
        /// The token.
        token: String,
    },
    /// A request to the broker.
    Broker(BrokerRequest<P>),
    /// The answer to [`Input::Api`].
    ApiReply(ApiCallId, Result<ApiResult<P>, ApiError>),
    /// A publication was accepted (only with `report_accepted`).
    Accepted {
        /// Its channel.
        channel: Arc<str>,
        /// Its place; `None` where the channel keeps no stream.
        position: Option<StreamPosition>,
        /// The payload.
        data: P,
    },
}

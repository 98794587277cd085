//! The transport seam: what a node asks of a server connection, and what it hears back.
//!
//! The cluster's node speaks these types, a transport client (for one, the Centrifuge session of
//! `motet-realtime`) implements them; neither knows the other. A transport keeps the intent it was
//! given: after a lost connection it reconnects with backoff by itself, subscribes again what is
//! wanted, and recovers from the last position it has handed out.

use core::time::Duration;

use crate::error::Error;
use crate::id::CallId;
use crate::position::{Offset, Position};

/// One message of a topic, as it came from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication<P> {
    /// Offset in the stream epoch; 0 where the topic has no history.
    pub offset: Offset,
    /// The application's message id, for dedupe by id.
    pub message_id: Option<String>,
    /// The application's timestamp, milliseconds since 1970: data, never compared with a clock.
    pub timestamp_ms: Option<i64>,
    /// Bytes of the payload on the wire.
    pub size: u32,
    /// The payload, untouched.
    pub payload: P,
}

/// What a connected server can do, negotiated when the connection opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportFeatures {
    /// An idempotency key makes resending a publication safe.
    pub idempotency: bool,
    /// Publications of one connection are applied in the order in which they were sent.
    pub ordered_publish: bool,
    /// Patterns can be subscribed.
    pub wildcards: bool,
}

/// A publication to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishRequest<P> {
    /// The call that is answered by [`TransportEvent::Published`].
    pub call: CallId,
    /// The topic.
    pub topic: String,
    /// The payload, untouched.
    pub payload: P,
    /// Idempotency key; sent only to a server with [`TransportFeatures::idempotency`].
    pub idempotency_key: Option<String>,
    /// The application's message id.
    pub message_id: Option<String>,
    /// The application's timestamp, milliseconds since 1970.
    pub timestamp_ms: Option<i64>,
    /// Time left before the caller gives up. What was not written by then never is.
    pub remaining: Duration,
}

/// A page of a topic's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRequest {
    /// The call that is answered by [`TransportEvent::History`].
    pub call: CallId,
    /// The topic.
    pub topic: String,
    /// Read after this position (before it when `reverse`); from the stream's end when absent.
    pub since: Option<Position>,
    /// At most so many publications.
    pub limit: u32,
    /// Newest first.
    pub reverse: bool,
}

/// What a node asks of its transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportOp<P> {
    /// Connect, and stay connected until [`TransportOp::Close`]. Repeating it is harmless.
    Open,
    /// Disconnect and forget all subscriptions. No event follows a close.
    Close,
    /// Hold a server subscription. Repeating it is harmless; it may name the position to recover
    /// from for as long as the server was not asked.
    Subscribe {
        /// The topic.
        topic: String,
        /// Recover what followed this position.
        since: Option<Position>,
    },
    /// Give up a server subscription; answered by [`TransportEvent::Unsubscribed`] with no error
    /// once the server has confirmed it, and also when there was none. One answer may be for
    /// several that were asked before it.
    Unsubscribe {
        /// The topic.
        topic: String,
    },
    /// Publish once. A publication that was not yet written when the connection is lost fails as
    /// [`crate::ErrorCode::TransportUnavailable`], when its time is up, as
    /// [`crate::ErrorCode::DeadlineExceeded`]; one that was written, as
    /// [`crate::ErrorCode::OutcomeUnknown`].
    Publish(PublishRequest<P>),
    /// Read history once.
    History(HistoryRequest),
    /// Answer to [`TransportEvent::TokenWanted`]; `None` when the application has no token.
    Token {
        /// The topic the token is for, or `None` for the connection's.
        topic: Option<String>,
        /// The token.
        token: Option<String>,
    },
    /// The network came back or the page is shown again: try at once, with backoff reset.
    Nudge,
    /// Try again after a permanent refusal.
    Retry,
}

/// What a node hears from its transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportEvent<P> {
    /// A connection attempt began.
    Connecting,
    /// Connected.
    Connected(TransportFeatures),
    /// Not connected any more, or the attempt failed. Subscriptions are kept as intent.
    Disconnected {
        /// Why.
        error: Error,
        /// Permanent: no further attempt is made before [`TransportOp::Retry`] or a new token.
        terminal: bool,
    },
    /// A subscription stands (first time, or again after a reconnect).
    Subscribed {
        /// The topic.
        topic: String,
        /// Top of the stream after `publications`; `None` when the topic has no history.
        position: Option<Position>,
        /// Whether a recovery was asked for and is complete.
        recovered: bool,
        /// What was recovered, ascending.
        publications: Vec<Publication<P>>,
    },
    /// A subscription is gone: asked for (`error` is `None`) or refused.
    Unsubscribed {
        /// The topic.
        topic: String,
        /// Why, unless it was asked for.
        error: Option<Error>,
        /// Permanent: not subscribed again by the transport itself.
        terminal: bool,
    },
    /// A live message.
    Publication {
        /// The topic.
        topic: String,
        /// The message.
        publication: Publication<P>,
    },
    /// Outcome of a publish.
    Published {
        /// The call.
        call: CallId,
        /// Acknowledged, or why not.
        result: Result<(), Error>,
    },
    /// Answer to a history request.
    History {
        /// The call.
        call: CallId,
        /// The page, or why not.
        result: Result<HistoryPage<P>, Error>,
    },
    /// A token is needed to connect, subscribe or go on.
    TokenWanted {
        /// The topic the token is for, or `None` for the connection's.
        topic: Option<String>,
    },
}

/// A page of history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage<P> {
    /// Top of the stream.
    pub position: Position,
    /// The publications, in the order asked for.
    pub publications: Vec<Publication<P>>,
}

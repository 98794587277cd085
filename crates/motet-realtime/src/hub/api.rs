//! The server's API as plain data: what a backend may ask of a hub.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::broker::{BrokerError, HistoryPage, Version};
use crate::message::{ClientInfo, Disconnect, StreamPosition};
use crate::server::ServerSubscription;

/// A call of the API.
#[derive(Clone, Debug)]
pub enum ApiRequest<P> {
    /// Publish into one channel.
    Publish(ApiPublish<P>, String),
    /// Publish the same into several channels.
    Broadcast(ApiPublish<P>, Vec<String>),
    /// Subscribe a user's connections to a channel.
    Subscribe(Box<ApiSubscribe<P>>),
    /// Unsubscribe a user's connections from a channel, or from all when it is empty.
    Unsubscribe {
        /// The user.
        user: String,
        /// The channel.
        channel: String,
        /// Only this connection; empty for all of the user's.
        client: String,
    },
    /// Close a user's connections.
    Disconnect {
        /// The user.
        user: String,
        /// Only this connection; empty for all of the user's.
        client: String,
        /// Connections that stay.
        keep: BTreeSet<String>,
        /// The close code and reason.
        disconnect: Disconnect,
    },
    /// Prolong or expire a user's connections.
    Refresh {
        /// The user.
        user: String,
        /// Only this connection; empty for all of the user's.
        client: String,
        /// Close them as expired.
        expired: bool,
        /// How long they last from now on; `None` for ever.
        expires_in: Option<Duration>,
    },
    /// Who is in a channel.
    Presence(String),
    /// How many are in a channel.
    PresenceStats(String),
    /// Read a channel's history.
    History {
        /// The channel.
        channel: String,
        /// At most so many publications; 0 reads the position only, -1 as many as allowed.
        limit: i32,
        /// Start after this position (before it when `reverse`).
        since: Option<StreamPosition>,
        /// Newest first.
        reverse: bool,
    },
    /// Remove a channel's publications.
    HistoryRemove(String),
    /// Channels with subscribers, and how many.
    Channels,
    /// Numbers about this server.
    Info,
}

/// What is published.
#[derive(Clone, Debug)]
pub struct ApiPublish<P> {
    /// The payload.
    pub data: P,
    /// Do not keep it in history.
    pub skip_history: bool,
    /// Text attributes.
    pub tags: BTreeMap<String, String>,
    /// Makes repeating the call safe; empty for none.
    pub idempotency_key: String,
    /// Drop the publication unless its version is newer.
    pub version: Option<Version>,
}

/// Subscribes a user's connections.
#[derive(Clone, Debug)]
pub struct ApiSubscribe<P> {
    /// The user.
    pub user: String,
    /// Only this connection; empty for all of the user's.
    pub client: String,
    /// The channel.
    pub channel: String,
    /// Info, data and deviations from the namespace.
    pub subscription: ServerSubscription<P>,
    /// How long the subscription lasts; `None` for ever.
    pub expires_in: Option<Duration>,
    /// Deliver what followed this position.
    pub recover_since: Option<StreamPosition>,
}

/// What an API call returns.
#[derive(Clone, Debug)]
pub enum ApiResult<P> {
    /// Nothing to tell.
    Done,
    /// The publication's place, where the channel keeps a stream.
    Published(Option<StreamPosition>),
    /// One outcome per channel, in the order given.
    Broadcast(Vec<Result<Option<StreamPosition>, ApiError>>),
    /// Who is in the channel, by client id.
    Presence(BTreeMap<String, ClientInfo<P>>),
    /// How many are in the channel.
    PresenceStats {
        /// Connections.
        num_clients: u32,
        /// Different users among them.
        num_users: u32,
    },
    /// A page of history.
    History(HistoryPage<P>),
    /// Subscribers per channel.
    Channels(BTreeMap<String, u32>),
    /// Numbers about this server.
    Info(HubStats),
}

/// Numbers about one hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubStats {
    /// Connections that have connected.
    pub clients: usize,
    /// Different users among them.
    pub users: usize,
    /// Channels with subscribers.
    pub channels: usize,
    /// Subscriptions.
    pub subscriptions: usize,
}

/// Code of an API error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiErrorCode {
    /// The server failed; the same call may succeed later.
    Internal,
    /// The channel's namespace does not exist.
    UnknownChannel,
    /// There is no such method.
    MethodNotFound,
    /// A limit of the server was reached.
    LimitExceeded,
    /// The call contradicts itself or lacks something.
    BadRequest,
    /// The channel does not offer what was asked for.
    NotAvailable,
    /// The position belongs to another life of the stream.
    UnrecoverablePosition,
    /// The call contradicts an earlier one.
    Conflict,
}

impl ApiErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Internal => 100,
            Self::UnknownChannel => 102,
            Self::MethodNotFound => 104,
            Self::LimitExceeded => 106,
            Self::BadRequest => 107,
            Self::NotAvailable => 108,
            Self::UnrecoverablePosition => 112,
            Self::Conflict => 113,
        }
    }

    /// The text that goes with it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Internal => "internal server error",
            Self::UnknownChannel => "unknown channel",
            Self::MethodNotFound => "method not found",
            Self::LimitExceeded => "limit exceeded",
            Self::BadRequest => "bad request",
            Self::NotAvailable => "not available",
            Self::UnrecoverablePosition => "unrecoverable position",
            Self::Conflict => "conflict",
        }
    }
}

/// Why an API call failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ApiError {
    /// The code.
    pub code: ApiErrorCode,
    /// Text for people.
    pub message: String,
}

impl ApiError {
    /// A call that contradicts itself or lacks something, and what.
    #[must_use]
    pub fn bad_request(why: &str) -> Self {
        let code = ApiErrorCode::BadRequest;
        Self { code, message: format!("{}: {why}", code.text()) }
    }
}

impl From<ApiErrorCode> for ApiError {
    fn from(code: ApiErrorCode) -> Self {
        Self { code, message: code.text().to_owned() }
    }
}

impl From<BrokerError> for ApiError {
    fn from(error: BrokerError) -> Self {
        let code = match error {
            BrokerError::IdempotencyKeyReused => ApiErrorCode::Conflict,
            BrokerError::Full => ApiErrorCode::LimitExceeded,
            BrokerError::Unavailable => ApiErrorCode::Internal,
        };
        Self { code, message: error.to_string() }
    }
}

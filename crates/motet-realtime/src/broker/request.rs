//! What a hub asks of its broker, and what it hears back.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::message::{ClientInfo, Publication, StreamPosition};

/// Names one request, so that its answer finds its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// A request to the broker.
#[derive(Clone, Debug)]
pub struct BrokerRequest<P> {
    /// Comes back with the answer.
    pub op: OpId,
    /// The channel, or a pattern (`prefix.*`, `*`) for subscribe and unsubscribe.
    pub channel: Arc<str>,
    /// What is asked for.
    pub request: BrokerOp<P>,
}

/// What is asked of a broker.
#[derive(Clone, Debug)]
pub enum BrokerOp<P> {
    /// Deliver the channel's publications, joins and leaves from now on.
    Subscribe,
    /// Stop delivering them.
    Unsubscribe,
    /// Take a publication.
    Publish(Box<Publication<P>>, PublishOptions),
    /// Tell subscribers that somebody joined.
    Join(Box<ClientInfo<P>>),
    /// Tell subscribers that somebody left.
    Leave(Box<ClientInfo<P>>),
    /// Read the stream. Its epoch is known before the first publication, and that one has it.
    History(HistoryQuery, Retention),
    /// Remove the publications of a stream; its position stays.
    RemoveHistory,
    /// Note that a connection is in the channel.
    AddPresence(Box<ClientInfo<P>>),
    /// Note that a connection left.
    RemovePresence(String),
    /// Who is in the channel.
    Presence,
    /// How many are in the channel.
    PresenceStats,
}

/// How long a stream keeps what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Publications kept; 0 keeps no stream.
    pub size: usize,
    /// How long a publication is kept.
    pub ttl: Duration,
    /// How long epoch and offset outlive the publications.
    pub meta_ttl: Duration,
}

impl Retention {
    /// Keeps nothing.
    pub const NONE: Self = Self { size: 0, ttl: Duration::ZERO, meta_ttl: Duration::ZERO };

    /// Whether there is a stream at all.
    #[must_use]
    pub const fn enabled(&self) -> bool {
        self.size > 0 && !self.ttl.is_zero()
    }
}

/// How a publication is to be taken.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// Stream settings of the channel.
    pub retention: Retention,
    /// Makes repeating safe.
    pub idempotency: Option<Idempotency>,
    /// Publications that are not newer than the channel's last version are dropped.
    pub version: Option<Version>,
}

/// Makes repeating a publication safe: a key seen within the broker's window is answered with the
/// first outcome and not delivered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The key, unique among the channel's publishers.
    pub key: String,
    /// Identifies the payload; the same key with another one is refused. `None` does not compare.
    pub fingerprint: Option<u64>,
}

/// Version of the state that a publication describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Grows with each change.
    pub number: u64,
    /// Numbers compare only within one epoch.
    pub epoch: String,
}

/// Which part of a stream to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Only publications after this offset (before it when `reverse`).
    pub since: Option<u64>,
    /// At most so many; 0 reads the position only, `None` everything.
    pub limit: Option<usize>,
    /// Newest first.
    pub reverse: bool,
    /// At most so many bytes of messages, but at least one publication where `limit` allows one;
    /// `None` sets no limit.
    pub bytes_max: Option<usize>,
}

impl HistoryQuery {
    /// Reads the position only.
    pub const POSITION: Self =
        Self { since: None, limit: Some(0), reverse: false, bytes_max: None };
}

/// A part of a stream.
#[derive(Clone, Debug)]
pub struct HistoryPage<P> {
    /// The publications, in the order asked for.
    pub publications: Vec<Publication<P>>,
    /// The stream's newest position. Offset 0 before the first publication.
    pub top: StreamPosition,
}

/// A publication was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its place; `None` where the channel keeps no stream.
    pub position: Option<StreamPosition>,
    /// It was known already (idempotency key or version) and was not delivered again.
    pub suppressed: bool,
}

/// What a broker reports.
#[derive(Clone, Debug)]
pub enum BrokerEvent<P> {
    /// The answer to a request.
    Answer(OpId, Result<Answer<P>, BrokerError>),
    /// A publication of a subscribed channel. `publication.epoch` is set where there is a stream.
    Publication {
        /// The concrete channel.
        channel: Arc<str>,
        /// The publication.
        publication: Box<Publication<P>>,
    },
    /// Somebody joined a subscribed channel.
    Join {
        /// The channel.
        channel: Arc<str>,
        /// Who.
        info: Box<ClientInfo<P>>,
    },
    /// Somebody left a subscribed channel.
    Leave {
        /// The channel.
        channel: Arc<str>,
        /// Who.
        info: Box<ClientInfo<P>>,
    },
}

/// The answer to a request that succeeded.
#[derive(Clone, Debug)]
pub enum Answer<P> {
    /// Done; there is nothing to tell.
    Done,
    /// The publication was taken.
    Published(Published),
    /// A part of the stream.
    History(HistoryPage<P>),
    /// Who is in the channel, by client id.
    Presence(BTreeMap<String, ClientInfo<P>>),
    /// How many connections and users are in the channel.
    PresenceStats {
        /// Connections.
        num_clients: u32,
        /// Different users among them.
        num_users: u32,
    },
}

/// Why a broker could not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The idempotency key was used before, with another payload.
    #[error("the idempotency key was used before with another payload")]
    IdempotencyKeyReused,
    /// The broker has no room for the publication, or for one more stream.
    #[error("the broker has no room for it: publish later, or raise the limits of the broker")]
    Full,
    /// The broker cannot be reached; the request may or may not have been carried out.
    #[error("the broker cannot be reached")]
    Unavailable,
}

//! Subscribing to a channel.

use super::Publication;

/// Bit of [`SubscribeRequest::flag`]: refuse with error 112 instead of subscribing unrecovered.
pub const SUBSCRIBE_FLAG_REJECT_UNRECOVERED: i64 = 2;

/// Subscribes to a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribeRequest<P> {
    /// The channel; empty in a map that is keyed by channel.
    pub channel: String,
    /// Subscription token; empty where the channel asks for none.
    pub token: String,
    /// Recover what followed `offset` in `epoch`.
    pub recover: bool,
    /// Life of the stream that is to be recovered; an empty one matches any.
    pub epoch: String,
    /// Last offset the client has seen.
    pub offset: u64,
    /// Application data.
    pub data: Option<P>,
    /// Asks the server to watch the client's place in the stream.
    pub positioned: bool,
    /// Asks for a subscription that can be recovered.
    pub recoverable: bool,
    /// Asks for join and leave pushes.
    pub join_leave: bool,
    /// Delta format that the client can apply; empty for none.
    pub delta: String,
    /// Whether a filter over tags was sent along.
    pub tags_filter: bool,
    /// Capability bits, see [`SUBSCRIBE_FLAG_REJECT_UNRECOVERED`].
    pub flag: i64,
    /// Kind of subscription: 0 for a stream, others name kinds that keep a map of keys or poll.
    pub kind: i32,
}

impl<P> Default for SubscribeRequest<P> {
    fn default() -> Self {
        Self {
            channel: String::new(),
            token: String::new(),
            recover: false,
            epoch: String::new(),
            offset: 0,
            data: None,
            positioned: false,
            recoverable: false,
            join_leave: false,
            delta: String::new(),
            tags_filter: false,
            flag: 0,
            kind: 0,
        }
    }
}

/// The subscription stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribeResult<P> {
    /// Whether the subscription expires unless it is refreshed by the client.
    pub expires: bool,
    /// Seconds until it does.
    pub ttl: u32,
    /// Whether the stream can be recovered.
    pub recoverable: bool,
    /// The stream's life.
    pub epoch: String,
    /// What was recovered, ascending.
    pub publications: Vec<Publication<P>>,
    /// Whether the recovery that was asked for is complete.
    pub recovered: bool,
    /// Top of the stream, or the requested offset after a complete recovery.
    pub offset: u64,
    /// Whether the server watches the client's place in the stream.
    pub positioned: bool,
    /// Application data.
    pub data: Option<P>,
    /// Whether a recovery was tried.
    pub was_recovering: bool,
}

impl<P> Default for SubscribeResult<P> {
    fn default() -> Self {
        Self {
            expires: false,
            ttl: 0,
            recoverable: false,
            epoch: String::new(),
            publications: Vec::new(),
            recovered: false,
            offset: 0,
            positioned: false,
            data: None,
            was_recovering: false,
        }
    }
}

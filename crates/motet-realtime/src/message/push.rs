//! What a server sends unasked.

use super::{ClientInfo, DisconnectCode, Publication, UnsubscribeCode};

/// One message of a server that answers nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push<P> {
    /// The channel it concerns; empty where it concerns the connection.
    pub channel: String,
    /// What happened.
    pub event: PushEvent<P>,
}

/// What a push tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushEvent<P> {
    /// A message of the channel.
    Publication(Box<Publication<P>>),
    /// Somebody joined.
    Join(Box<ClientInfo<P>>),
    /// Somebody left.
    Leave(Box<ClientInfo<P>>),
    /// The subscription has ended.
    Unsubscribe(Unsubscribe),
    /// A message of the server to this connection.
    Message(P),
    /// The server subscribed this connection.
    Subscribe(SubscribePush<P>),
    /// The connection ends (transports that cannot close with a code).
    Disconnect(Disconnect),
    /// The server refreshed the connection.
    Refresh(RefreshPush),
    /// A push of a kind that is not known here; it is to be ignored.
    Unknown,
}

impl<P> Push<P> {
    /// A message of a channel.
    #[must_use]
    pub fn publication(channel: impl Into<String>, publication: Publication<P>) -> Self {
        Self { channel: channel.into(), event: PushEvent::Publication(Box::new(publication)) }
    }
}

/// A subscription has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsubscribe {
    /// Why, and whether the client subscribes again.
    pub code: UnsubscribeCode,
    /// Text for people.
    pub reason: String,
}

impl From<UnsubscribeCode> for Unsubscribe {
    fn from(code: UnsubscribeCode) -> Self {
        Self { code, reason: code.text().to_owned() }
    }
}

/// A connection ends: the close code and reason of its transport.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disconnect {
    /// Why, and whether the client comes back.
    pub code: DisconnectCode,
    /// Text for people.
    pub reason: String,
}

impl From<DisconnectCode> for Disconnect {
    fn from(code: DisconnectCode) -> Self {
        Self { code, reason: code.text().to_owned() }
    }
}

/// The server subscribed this connection to a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribePush<P> {
    /// Whether the stream can be recovered.
    pub recoverable: bool,
    /// The stream's life.
    pub epoch: String,
    /// Top of the stream.
    pub offset: u64,
    /// Whether the server watches the client's place in the stream.
    pub positioned: bool,
    /// Application data.
    pub data: Option<P>,
}

impl<P> Default for SubscribePush<P> {
    fn default() -> Self {
        Self { recoverable: false, epoch: String::new(), offset: 0, positioned: false, data: None }
    }
}

/// The server refreshed the connection by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefreshPush {
    /// Whether the connection expires.
    pub expires: bool,
    /// Seconds until it does.
    pub ttl: u32,
}

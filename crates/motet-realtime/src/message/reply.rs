//! What a server sends.

use super::{
    ConnectResult, ErrorReply, HistoryResult, PresenceResult, PresenceStatsResult, Push,
    RefreshResult, SubRefreshResult, SubscribeResult,
};

/// One message of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<P> {
    /// Id of the command that is answered; 0 for a push and a ping.
    pub id: u32,
    /// The answer, or the push.
    pub body: ReplyBody<P>,
}

/// What a reply carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyBody<P> {
    /// Nothing: with id 0 this is the server's ping.
    Empty,
    /// The command was refused.
    Error(ErrorReply),
    /// Not an answer but news.
    Push(Push<P>),
    /// The session is open.
    Connect(Box<ConnectResult<P>>),
    /// The subscription stands.
    Subscribe(Box<SubscribeResult<P>>),
    /// The subscription has ended.
    Unsubscribe,
    /// The publication was taken.
    Publish,
    /// Who is in the channel.
    Presence(PresenceResult<P>),
    /// How many are in the channel.
    PresenceStats(PresenceStatsResult),
    /// A page of history.
    History(HistoryResult<P>),
    /// Answer to a client's ping.
    Ping,
    /// What a procedure returned.
    Rpc(RpcResult<P>),
    /// The connection was prolonged.
    Refresh(RefreshResult),
    /// The subscription was prolonged.
    SubRefresh(SubRefreshResult),
}

impl<P> Reply<P> {
    /// The answer to command `id`.
    #[must_use]
    pub const fn new(id: u32, body: ReplyBody<P>) -> Self {
        Self { id, body }
    }

    /// The refusal of command `id`.
    #[must_use]
    pub fn error(id: u32, error: impl Into<ErrorReply>) -> Self {
        Self { id, body: ReplyBody::Error(error.into()) }
    }

    /// News.
    #[must_use]
    pub const fn push(push: Push<P>) -> Self {
        Self { id: 0, body: ReplyBody::Push(push) }
    }

    /// The server's ping.
    #[must_use]
    pub const fn ping() -> Self {
        Self { id: 0, body: ReplyBody::Empty }
    }

    /// Whether this is the server's ping.
    #[must_use]
    pub const fn is_ping(&self) -> bool {
        self.id == 0 && matches!(self.body, ReplyBody::Empty)
    }
}

/// What a procedure returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcResult<P> {
    /// The result.
    pub data: P,
}

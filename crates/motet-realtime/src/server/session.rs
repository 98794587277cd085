//! What the server knows of one connection.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use motet_protocol::Instant;

use super::{ConnectProgress, Subscription};
use crate::broker::OpId;
use crate::message::{
    ClientInfo, Command, ConnectRequest, Features, HistoryRequest, SubscribeRequest,
};

/// One connection.
pub(crate) struct Session<P> {
    pub(crate) phase: Phase,
    /// The connection's public id, drawn when it connects.
    pub(crate) client: String,
    pub(crate) user: String,
    pub(crate) info: Option<P>,
    pub(crate) features: Features,
    pub(crate) subs: BTreeMap<Arc<str>, Subscription<P>>,
    /// The command that waits for an answer; later ones wait in the backlog.
    pub(crate) waiting: Option<Waiting<P>>,
    pub(crate) backlog: VecDeque<Command<P>>,
    /// Pinged by frames of the transport, of which the client's code learns nothing.
    pub(crate) frame_pings: bool,
    pub(crate) next_ping: Option<Instant>,
    pub(crate) pong_due: Option<Instant>,
    /// When the connection ends unless it is refreshed, grace included.
    pub(crate) closes_at: Option<Instant>,
    /// The session's entry in the hub's timers.
    pub(crate) armed: Option<Instant>,
    pub(crate) allowance: Allowance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for its connect command until then.
    Fresh {
        stale_at: Instant,
    },
    /// Its connect command is being carried out.
    Connecting {
        stale_at: Instant,
    },
    Connected,
    /// Its connect command was refused: nothing more is taken until it closes.
    Refused {
        stale_at: Instant,
    },
}

/// What the session's current command waits for.
pub(crate) struct Waiting<P> {
    pub(crate) op: OpId,
    pub(crate) deadline: Instant,
    pub(crate) step: Step<P>,
}

pub(crate) enum Step<P> {
    ConnectToken { command: u32, request: Box<ConnectRequest<P>> },
    ConnectSubscriptions(ConnectProgress<P>),
    SubscribeToken { command: u32, request: Box<SubscribeRequest<P>> },
    Subscribe,
    RefreshToken { command: u32 },
    SubRefreshToken { command: u32, channel: Arc<str> },
    Publish { command: u32 },
    History { command: u32, request: HistoryRequest },
    Presence { command: u32 },
    PresenceStats { command: u32 },
}

/// Commands left in the current second, for the rate limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowance {
    pub(crate) left: u32,
    pub(crate) renews_at: Instant,
}

impl<P: Clone> Session<P> {
    pub(crate) fn new(stale_at: Instant) -> Self {
        Self {
            phase: Phase::Fresh { stale_at },
            client: String::new(),
            user: String::new(),
            info: None,
            features: Features::default(),
            subs: BTreeMap::new(),
            waiting: None,
            backlog: VecDeque::new(),
            frame_pings: false,
            next_ping: None,
            pong_due: None,
            closes_at: None,
            armed: None,
            allowance: Allowance::default(),
        }
    }

    /// How others see the connection.
    pub(crate) fn client_info(&self) -> ClientInfo<P> {
        ClientInfo {
            user: self.user.clone(),
            client: self.client.clone(),
            conn_info: self.info.clone(),
            chan_info: None,
        }
    }

    /// How others see the connection in a channel.
    pub(crate) fn channel_info(&self, channel: &str) -> ClientInfo<P> {
        let chan_info = self.subs.get(channel).and_then(|sub| sub.traits.info.clone());
        ClientInfo { chan_info, ..self.client_info() }
    }

    pub(crate) fn is_subscribed(&self, channel: &str) -> bool {
        self.subs.get(channel).is_some_and(Subscription::is_live)
    }

    /// When something about the session is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Fresh { stale_at }
            | Phase::Connecting { stale_at }
            | Phase::Refused { stale_at } => Some(stale_at),
            Phase::Connected => None,
        };
        let waiting = self.waiting.as_ref().map(|waiting| waiting.deadline);
        let subs = self.subs.values().filter_map(Subscription::next_timeout).min();
        [phase, waiting, subs, self.next_ping, self.pong_due, self.closes_at]
            .into_iter()
            .flatten()
            .min()
    }
}

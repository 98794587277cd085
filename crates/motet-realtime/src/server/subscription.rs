//! One subscription of a session, from the request to its end.

use std::sync::Arc;

use motet_protocol::Instant;

use crate::broker::{HistoryPage, OpId};
use crate::message::{ConnectResult, StreamPosition};

/// A subscription of a session.
pub(crate) struct Subscription<P> {
    pub(crate) traits: Traits<P>,
    pub(crate) state: SubscriptionState,
    /// When it ends unless it is refreshed, grace included.
    pub(crate) closes_at: Option<Instant>,
}

/// What a subscription is, settled when it is made.
pub(crate) struct Traits<P> {
    /// Made by the server; the client cannot make it again by itself.
    pub(crate) server_side: bool,
    /// A pattern rather than a channel.
    pub(crate) pattern: bool,
    /// The client's place in the stream is watched.
    pub(crate) positioned: bool,
    pub(crate) recoverable: bool,
    /// The connection shows up in the channel's presence.
    pub(crate) presence: bool,
    /// Its coming and going is announced to others.
    pub(crate) announced: bool,
    /// It hears the announcements.
    pub(crate) hears_announcements: bool,
    pub(crate) info: Option<P>,
    /// Handed to the client with the reply.
    pub(crate) data: Option<P>,
}

pub(crate) enum SubscriptionState {
    Subscribing(Box<Subscribing>),
    Live,
}

/// A subscription on its way.
pub(crate) struct Subscribing {
    pub(crate) origin: Origin,
    /// The broker's answer that is awaited.
    pub(crate) op: OpId,
    pub(crate) deadline: Instant,
    /// Where the client wants to go on; `None` starts at the top.
    pub(crate) recover_from: Option<StreamPosition>,
    /// Refuse rather than subscribe unrecovered.
    pub(crate) reject_unrecovered: bool,
}

/// Who asked for a subscription and hears the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A subscribe command with this id.
    Command(u32),
    /// The connect command.
    Connect,
    /// The server's API.
    Api,
}

/// A connect command whose server-side subscriptions are being made.
pub(crate) struct ConnectProgress<P> {
    pub(crate) command: u32,
    pub(crate) result: Box<ConnectResult<P>>,
    /// Server-side subscriptions that are being made.
    pub(crate) wanted: usize,
    /// Those that are ready, with their stream where they have a place in one.
    pub(crate) ready: Vec<(Arc<str>, Option<HistoryPage<P>>)>,
}

impl<P> Subscription<P> {
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.state, SubscriptionState::Live)
    }

    /// When something about it is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        match &self.state {
            SubscriptionState::Subscribing(subscribing) => Some(subscribing.deadline),
            SubscriptionState::Live => self.closes_at,
        }
    }
}

//! Calls of the node that wait for a connection that is about to stand.

use motet_protocol::Instant;
use motet_protocol::transport::{HistoryRequest, PublishRequest};

/// A call of the node.
#[derive(Clone, Debug)]
pub(super) enum NodeCall<P> {
    /// A publication, and when its caller gives up.
    Publish(PublishRequest<P>, Instant),
    History(HistoryRequest),
}

impl<P> NodeCall<P> {
    const fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Publish(_, deadline) => Some(*deadline),
            // Reading late does no harm.
            Self::History(_) => None,
        }
    }

    /// Whether its caller has given up.
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= now)
    }
}

/// The calls that wait, in the order in which they will be sent.
#[derive(Debug)]
pub(super) struct Held<P> {
    calls: Vec<NodeCall<P>>,
    /// Not later than the first time at which a caller gives up.
    due: Option<Instant>,
}

impl<P> Held<P> {
    pub(super) const fn new() -> Self {
        Self { calls: Vec::new(), due: None }
    }

    pub(super) const fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn push(&mut self, call: NodeCall<P>) {
        self.due = self.due.into_iter().chain(call.deadline()).min();
        self.calls.push(call);
    }

    /// Takes all.
    pub(super) fn take(&mut self) -> Vec<NodeCall<P>> {
        core::mem::replace(self, Self::new()).calls
    }

    /// Takes those whose callers have given up.
    pub(super) fn take_expired(&mut self, now: Instant) -> Vec<NodeCall<P>> {
        if self.due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        let (expired, waiting) = self.take().into_iter().partition(|call| call.is_expired(now));
        for call in waiting {
            self.push(call);
        }
        expired
    }
}

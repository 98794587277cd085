//! After a stall: act no more until it is known that the routes stand.

use core::time::Duration;

use motet_protocol::Instant;
use motet_protocol::fault::planted;

use super::election::Query;
use super::{Node, NodeEvent, Role};
use crate::frame::Frame;

/// How often the question is repeated while nobody answers.
const REVALIDATE_WAIT: Duration = Duration::from_millis(500);

impl<P: Clone> Node<P> {
    /// The node was called later than it asked for: frozen, asleep or starved.
    pub(super) fn woke(&mut self, stall: Duration) {
        let now = self.clock.now();
        self.out.event(NodeEvent::Woke(u64::try_from(stall.as_millis()).unwrap_or(u64::MAX)));
        self.heard_from_coordinator(now);
        if planted("skip-revalidate") {
            return;
        }
        self.owner.pause();
        self.revalidate_at = Some(now);
    }

    pub(super) fn revalidate_tick(&mut self, now: Instant) {
        if self.revalidate_at.is_none_or(|at| at > now) {
            return;
        }
        match &self.role {
            Role::Governing(_) => {
                if !self.queries.iter().any(|query| matches!(query, Query::Prove(_))) {
                    self.query(Query::Prove(None));
                }
            }
            // Nothing is owned: there is nothing to ask.
            _ if self.owner.is_empty() => return self.revalidated(),
            Role::Following => self.out.announce(Frame::Revalidate { fence: self.known }),
            // Nobody governs, or the office was taken away meanwhile: the next table says what
            // stands.
            Role::Joining { .. } | Role::Electing(_) => {}
        }
        self.revalidate_at = Some(now + REVALIDATE_WAIT);
    }

    /// The routes stand, or what did not stand is given up.
    pub(super) fn revalidated(&mut self) {
        if self.revalidate_at.take().is_some() {
            self.owner.resume(&mut self.out);
        }
    }
}

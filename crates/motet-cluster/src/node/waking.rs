//! After a stall: act no more until it is known that the routes stand.

use core::time::Duration;

use motet_protocol::Instant;
use motet_protocol::fault::planted;

use super::election::Query;
use super::{Node, NodeEvent, Role};
use crate::frame::Frame;
use crate::lock::HeldLock;
use crate::name::LockName;

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
        self.table_asked = false;
        // An answer that is under way may be of before the sleep.
        for at in 0..self.queries.len() {
            let query = self.queries[at];
            if matches!(query, Query::Prove(_)) {
                self.queries[at] = Query::Void;
                self.query(query);
            }
        }
    }

    pub(super) fn revalidate_tick(&mut self, now: Instant) {
        if self.revalidate_at.is_none_or(|at| at > now) {
            return;
        }
        match &self.role {
            // Nothing is owned: there is nothing to ask.
            Role::Following if self.owner.is_empty() => return self.resume_owner(),
            Role::Governing(_) | Role::Following => {
                if !self.queries.iter().any(|query| matches!(query, Query::Prove(_))) {
                    self.query(Query::Prove(None));
                }
            }
            // Nobody governs, or the office was taken away meanwhile: the next table says what
            // stands.
            Role::Joining { .. } | Role::Electing(_) => {}
        }
        self.revalidate_at = Some(now + REVALIDATE_WAIT);
    }

    /// Asks the coordinator whether the routes stand, once the list of held locks has shown that it
    /// governs. What it said while this node slept may still be queued, and it may be dead.
    pub(super) fn ask_coordinator(&mut self, held: &[HeldLock]) {
        let governs = held.iter().any(|lock| lock.name == LockName::Term(self.known));
        if governs && self.revalidate_at.is_some() {
            self.table_asked = true;
            self.out.announce(Frame::Revalidate { fence: self.known });
        }
    }

    /// The fence that was asked under is not the one that is followed now.
    pub(super) fn ask_anew(&mut self, now: Instant) {
        self.table_asked = false;
        if let Some(at) = &mut self.revalidate_at {
            *at = now;
        }
    }

    /// A full table came: the routes stand, and what did not stand was given up.
    pub(super) fn table_came(&mut self) {
        if self.table_asked || self.revalidate_at.is_none() {
            self.resume_owner();
        }
    }

    fn resume_owner(&mut self) {
        self.table_asked = false;
        self.revalidate_at = None;
        self.owner.resume(&mut self.out);
    }
}

//! Finding the coordinator, following it, and noticing when it is gone or frozen.

use core::time::Duration;

use motet_protocol::fault::planted;
use motet_protocol::{Fence, Instant, NodeId};

use super::locks::Purpose;
use super::{HELLO_WAIT_MAX, Node, NodeEvent, Role, Status};
use crate::frame::{CAPABILITIES, Frame, ReportedRoute};

/// A coordinator silent for this long is asked for a sign of life.
const SILENCE_PING: Duration = Duration::from_millis(3_100);
/// Without an answer in this time it is frozen: one beat interval and its grace after its last word.
const ANSWER_WAIT: Duration = Duration::from_millis(600);
/// Nobody took over in this time although the term has ended: whoever got the lock is frozen.
const ORPHAN_STEAL: Duration = Duration::from_millis(750);
/// A node that comes this late to its turn may have slept with the coordinator's words queued: it
/// listens once more, as long as an answer may take, before it steals.
const LATE: Duration = Duration::from_millis(200);
/// Nodes steal one after the other, by rank, so that one suffices.
const RANK_STEP: Duration = Duration::from_millis(100);
/// A late rank does not wait longer than this.
const RANK_MAX: u32 = 10;

impl<P: Clone> Node<P> {
    /// The node's own lock is held: it is a member now.
    pub(super) fn enter(&mut self, now: Instant) {
        self.queue_for_office();
        self.heard_from_coordinator(now);
        self.say_hello(now);
        if let Some(coordinator) = self.coordinator {
            // Whoever governs has heard nothing of it, or has taken it for dead when its lock was
            // lost.
            self.report(coordinator, self.known);
        }
    }

    fn say_hello(&mut self, now: Instant) {
        if let Role::Joining { hello_at, wait } = &mut self.role {
            *hello_at = now + *wait;
            *wait = (*wait * 2).min(HELLO_WAIT_MAX);
            let build = self.config.build.clone();
            self.out.announce(Frame::Hello { capabilities: CAPABILITIES, build });
        }
    }

    /// Obeys the coordinator `from` from now on, and reports to it.
    pub(super) fn follow(&mut self, from: NodeId, fence: Fence, now: Instant) {
        if from != self.me {
            self.step_down(now);
            self.role = Role::Following;
        }
        self.recognise(from, fence, now);
        self.queue_for_office();
        self.out.event(NodeEvent::Following(from, fence));
    }

    /// Notes who governs, leaves the trace of its fence, and waits for the end of its term.
    pub(super) fn recognise(&mut self, from: NodeId, fence: Fence, now: Instant) {
        if fence != self.known {
            self.ask_anew(now);
        }
        self.known = fence;
        self.author = Some(from);
        self.coordinator = Some(from);
        self.orphaned = None;
        self.heard_from_coordinator(now);
        self.locks.release(|p| matches!(p, Purpose::TermEnd(old) if old != fence), &mut self.out);
        for purpose in [Purpose::Known(fence), Purpose::TermEnd(fence)] {
            let own_term = from == self.me && purpose == Purpose::TermEnd(fence);
            if !own_term && !self.locks.has(purpose) {
                self.locks.request(purpose, false, self.me, &mut self.out);
            }
        }
        self.pages_coordinator();
    }

    pub(super) fn heard_from_coordinator(&mut self, now: Instant) {
        self.heard = now;
        self.pinged = None;
        self.listening = None;
    }

    /// Everything the coordinator must know of this node. A node without its own lock is none yet:
    /// whoever waits for its death would be told of it at once.
    pub(super) fn report(&mut self, to: NodeId, fence: Fence) {
        if !self.alive {
            return;
        }
        self.want_added.clear();
        self.want_removed.clear();
        self.reported_status = Status { tokenless: false, ..self.status() };
        let others = self.replica.routes().values().filter(|route| !self.owner.keeps(&route.topic));
        let seen = others.map(|route| ReportedRoute {
            topic: route.topic.clone(),
            owner: route.owner,
            fence: route.fence,
            state: None,
        });
        let frame = Frame::Report {
            fence,
            known: self.known,
            member: self.member(),
            owned: self.owner.report(),
            wanted: self.pages.wanted(),
            seen: seen.collect(),
            capabilities: CAPABILITIES,
            build: self.config.build.clone(),
        };
        self.out.send(to, frame);
    }

    /// The coordinator's term lock fell free: it is gone, and the next in the queue takes over.
    pub(super) fn term_ended(&mut self, fence: Fence, now: Instant) {
        if fence == self.known && matches!(self.role, Role::Following) {
            self.orphaned = Some(now);
            self.coordinator = None;
            self.pages_coordinator();
        }
    }

    /// A node that joins knows nobody's rank: its id spreads it.
    fn turn(&self) -> Duration {
        let spread = u64::try_from(RANK_STEP.as_millis()).unwrap_or(u64::MAX) * u64::from(RANK_MAX);
        Duration::from_millis(self.me.bits() % spread)
    }

    fn rank(&self) -> Duration {
        RANK_STEP * self.replica.rank(self.me, self.coordinator).min(RANK_MAX)
    }

    fn steal_at(&self) -> Option<Instant> {
        if self.leaving || !self.alive {
            return None;
        }
        let at = match (&self.role, self.orphaned, self.pinged) {
            (Role::Following, Some(since), _) => since + ORPHAN_STEAL + self.rank(),
            (Role::Following, None, Some(asked)) => asked + ANSWER_WAIT + self.rank(),
            (Role::Joining { .. }, ..) => self.heard + SILENCE_PING + ANSWER_WAIT + self.turn(),
            _ => return None,
        };
        Some(self.listening.map_or(at, |until| until.max(at)))
    }

    fn ping_at(&self) -> Option<Instant> {
        let following = matches!(self.role, Role::Following) && self.orphaned.is_none();
        (following && self.pinged.is_none()).then(|| self.heard + SILENCE_PING)
    }

    /// A member that does not leave asks for the coordinator until it hears of one.
    fn seeks_coordinator(&self) -> bool {
        self.alive && !self.leaving
    }

    pub(super) fn membership_tick(&mut self, now: Instant) {
        if let Role::Joining { hello_at, .. } = self.role
            && hello_at <= now
            && self.seeks_coordinator()
        {
            self.say_hello(now);
        }
        if self.ping_at().is_some_and(|at| at <= now)
            && let Some(coordinator) = self.coordinator
        {
            self.pinged = Some(now);
            self.out.send(coordinator, Frame::Ping { fence: self.known });
        }
        if let Some(at) = self.steal_at().filter(|at| *at <= now) {
            if now - at > LATE && self.listening.is_none() {
                self.listening = Some(now + ANSWER_WAIT);
            } else {
                self.steal_if_needed(now);
            }
        }
    }

    fn steal_if_needed(&mut self, now: Instant) {
        // If even the stolen lock does not come, the next attempt is a full wait away.
        self.heard_from_coordinator(now);
        self.orphaned = self.orphaned.map(|_| now);
        if !planted("never-steal") {
            self.steal_office();
        }
    }

    pub(super) fn membership_timeout(&self) -> Option<Instant> {
        let hello = match self.role {
            Role::Joining { hello_at, .. } if self.seeks_coordinator() => Some(hello_at),
            _ => None,
        };
        [hello, self.ping_at(), self.steal_at()].into_iter().flatten().min()
    }
}

//! Becoming coordinator, proving to be it, and ceasing to be it.

use litemap::LiteMap;
use motet_protocol::fault::planted;
use motet_protocol::{FENCE_NUMBER_MAX, Fence, Instant, NodeId};

use super::locks::Purpose;
use super::{HELLO_WAIT, Node, NodeEvent, Role};
use crate::coordinator::Coordinator;
use crate::lock::{HeldLock, LockEvent, LockOp, LockRequest};
use crate::name::LockName;

/// Epochs are this far apart at most.
const EPOCH_STRIDE: u64 = 1 << 20;

/// Why the list of held locks was asked for; answers come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Query {
    /// To find the fence to govern under.
    Elect,
    /// To prove, after a stall or a doubt, that the coordinator lock is still ours; with the fence
    /// that must be exceeded if it is.
    Prove(Option<Fence>),
    /// Nothing any more: the node has slept since it was asked.
    Void,
}

/// What a node that holds the office waits for before it governs. Both are asked for at once: each
/// takes a round trip to the lock manager, and nobody has an owner meanwhile.
#[derive(Default)]
pub(super) struct Election {
    /// Who held a node lock, once the list of held locks is there.
    members: Option<LiteMap<NodeId, ()>>,
    /// The term that was asked for, and whether its lock is held.
    term: Option<(Fence, bool)>,
}

impl<P: Clone> Node<P> {
    pub(super) fn lock_event(&mut self, event: LockEvent, now: Instant) {
        match event {
            LockEvent::Granted { request } => {
                if let Some(purpose) = self.locks.purpose(request) {
                    self.granted(request, purpose, now);
                }
            }
            LockEvent::Refused { request } => {
                if let Some(Purpose::Term(fence)) = self.locks.purpose(request) {
                    self.locks.forget(request);
                    self.claim_term(Fence { epoch: fence.epoch + 1, ..fence });
                }
            }
            LockEvent::Lost { request } => {
                let lost = self.locks.purpose(request);
                self.locks.forget(request);
                if let Some(purpose) = lost {
                    self.lost(purpose, now);
                }
            }
            LockEvent::Snapshot { held } => match self.queries.pop_front() {
                Some(Query::Elect) => self.elect(&held, now),
                Some(Query::Prove(above)) => self.prove(&held, above, now),
                Some(Query::Void) => {}
                None => self.bad_frame(),
            },
        }
    }

    fn granted(&mut self, request: LockRequest, purpose: Purpose, now: Instant) {
        match purpose {
            Purpose::Life => {
                self.alive = true;
                self.enter(now);
            }
            Purpose::Office if self.leaving => {
                self.locks.release(|p| p == Purpose::Office, &mut self.out)
            }
            Purpose::Office => {
                self.role = Role::Electing(Election::default());
                self.query(Query::Elect);
                if self.known.incarnation != 0 {
                    // The list seldom holds a higher fence than what this node knows.
                    let fence = self.fence_above(self.known);
                    self.claim_term(fence);
                }
            }
            Purpose::Term(fence) => self.term_granted(fence, now),
            Purpose::TermEnd(fence) => {
                self.end_request(request);
                self.term_ended(fence, now);
            }
            Purpose::Known(fence) => {
                // The newer trace is left: the older ones may go.
                self.locks
                    .release(|p| matches!(p, Purpose::Known(old) if old < fence), &mut self.out);
            }
            Purpose::Death(node) => {
                self.end_request(request);
                self.member_died(node, now);
            }
            Purpose::PageEnd(client) => {
                self.end_request(request);
                self.page_gone(client);
                // It may only have lost its lock.
                self.out.page(client, crate::frame::ToPage::Detached);
            }
        }
    }

    fn end_request(&mut self, request: LockRequest) {
        self.locks.forget(request);
        self.out.lock(LockOp::Release { request });
    }

    fn member_died(&mut self, node: NodeId, now: Instant) {
        if let Role::Governing(coordinator) = &mut self.role
            && !planted("ignore-death")
        {
            coordinator.gone(node, now, &mut self.out);
        }
    }

    /// A lock was taken away: somebody stole it, or the lock manager started anew.
    fn lost(&mut self, purpose: Purpose, now: Instant) {
        self.alive &= purpose != Purpose::Life;
        match purpose {
            Purpose::Office | Purpose::Term(_) => {
                if !planted("keep-governing-without-lock") {
                    self.step_down(now);
                }
                self.queue_for_office();
            }
            Purpose::Life
            | Purpose::Known(_)
            | Purpose::Death(_)
            | Purpose::TermEnd(_)
            | Purpose::PageEnd(_) => {
                self.locks.request(purpose, false, self.me, &mut self.out);
            }
        }
    }

    pub(super) fn query(&mut self, query: Query) {
        self.queries.push_back(query);
        self.out.lock(LockOp::Query);
    }

    pub(super) fn queue_for_office(&mut self) {
        if self.alive && !self.leaving && !self.locks.has(Purpose::Office) {
            self.locks.request(Purpose::Office, false, self.me, &mut self.out);
        }
    }

    /// Takes the office from a holder that does not answer.
    pub(super) fn steal_office(&mut self) {
        self.deposed = self.coordinator;
        self.locks.release(|purpose| purpose == Purpose::Office, &mut self.out);
        self.locks.request(Purpose::Office, true, self.me, &mut self.out);
    }

    /// The list of held locks is there: who the members are, and above which fence to govern.
    fn elect(&mut self, held: &[HeldLock], now: Instant) {
        let Role::Electing(election) = &mut self.role else { return };
        election.members = Some(members_of(held));
        let claimed = election.term.map(|(fence, _)| fence);
        let fences = held.iter().filter_map(|lock| match lock.name {
            LockName::Known(fence) => Some(fence),
            // Its own, if the list was made after the claim.
            LockName::Term(fence) => Some(fence).filter(|fence| Some(*fence) != claimed),
            _ => None,
        });
        let highest = fences.chain([self.known]).max().unwrap_or_default();
        if claimed.is_some_and(|claimed| claimed > highest) {
            return self.govern_if_elected(now);
        }
        if let Some(claimed) = claimed {
            self.locks.release(|purpose| purpose == Purpose::Term(claimed), &mut self.out);
        }
        let fence = self.fence_above(highest);
        self.claim_term(fence);
    }

    fn fence_above(&mut self, highest: Fence) -> Fence {
        let highest = match highest.incarnation {
            0 => Fence { incarnation: (self.rng.u64() & FENCE_NUMBER_MAX).max(1), epoch: 0 },
            // Only a forger has counted so far: the cluster goes on in the next incarnation.
            incarnation if highest.epoch > FENCE_NUMBER_MAX - EPOCH_STRIDE => {
                Fence { incarnation: (incarnation + 1).min(FENCE_NUMBER_MAX), epoch: 0 }
            }
            _ => highest,
        };
        // A stride, because coordinators that nobody here remembers may have come and gone since
        // the highest epoch that is still known: none of theirs may be used twice.
        let stride = 1 + self.rng.below(EPOCH_STRIDE);
        let epoch =
            if planted("repeat-epoch") { highest.epoch.max(1) } else { highest.epoch + stride };
        Fence { epoch, ..highest }
    }

    fn claim_term(&mut self, fence: Fence) {
        if let Role::Electing(election) = &mut self.role {
            election.term = Some((fence, false));
            self.locks.request(Purpose::Term(fence), false, self.me, &mut self.out);
        }
    }

    fn term_granted(&mut self, fence: Fence, now: Instant) {
        match &mut self.role {
            Role::Electing(Election { term: Some((claimed, held)), .. }) if *claimed == fence => {
                *held = true;
                self.govern_if_elected(now);
            }
            _ => self.locks.release(|purpose| purpose == Purpose::Term(fence), &mut self.out),
        }
    }

    fn govern_if_elected(&mut self, now: Instant) {
        let Role::Electing(election) = &mut self.role else { return };
        let Some((fence, true)) = election.term else { return };
        let Some(mut members) = election.members.take() else { return };
        members.insert(self.me, ());
        let me = self.me;
        members.keys().filter(|node| **node != me).for_each(|node| self.watch_death(*node));
        self.locks.release(|p| matches!(p, Purpose::Term(old) if old != fence), &mut self.out);
        let deposed = self.deposed.take().filter(|node| *node != self.me);
        self.out.event(NodeEvent::Elected(fence));
        let active_max = self.config.max_active_nodes;
        let members = members.into_iter().map(|(node, ())| node);
        let coordinator =
            Coordinator::new(self.me, fence, active_max, now, members, deposed, &mut self.out);
        self.role = Role::Governing(Box::new(coordinator));
        self.recognise(self.me, fence, now);
    }

    pub(super) fn watch_death(&mut self, node: NodeId) {
        if !self.locks.has(Purpose::Death(node)) {
            self.locks.request(Purpose::Death(node), false, self.me, &mut self.out);
        }
    }

    /// Whether the coordinator lock is ours is in the list: its holder is the holder of our life.
    fn prove(&mut self, held: &[HeldLock], above: Option<Fence>, now: Instant) {
        let coordinator = match &self.role {
            Role::Governing(coordinator) => coordinator,
            Role::Following => return self.ask_coordinator(held),
            Role::Joining { .. } | Role::Electing(_) => return,
        };
        let holder = |wanted: LockName| {
            held.iter().find(|lock| lock.name == wanted).map(|lock| &lock.holder)
        };
        let ours = holder(LockName::Node(self.me));
        if ours.is_none() || holder(LockName::Coordinator) != ours {
            self.step_down(now);
            return;
        }
        if let Some(above) = above.filter(|above| *above >= coordinator.fence()) {
            self.role = Role::Electing(Election::default());
            self.known = self.known.max(above);
            self.elect(held, now);
        }
        self.revalidate_at = None;
        // What it owned before it slept stands once the members have said what they know.
        if matches!(&self.role, Role::Governing(coordinator) if !coordinator.rebuilding()) {
            self.owner.resume(&mut self.out);
        }
    }

    /// Governs no more; who does will be heard.
    pub(super) fn step_down(&mut self, now: Instant) {
        if !matches!(self.role, Role::Governing(_) | Role::Electing(_)) {
            return;
        }
        self.locks.release(
            |p| matches!(p, Purpose::Office | Purpose::Term(_) | Purpose::Death(_)),
            &mut self.out,
        );
        self.out.event(NodeEvent::SteppedDown);
        self.coordinator = None;
        self.pages_coordinator();
        self.role = Role::Joining { hello_at: now, wait: HELLO_WAIT };
        self.heard_from_coordinator(now);
        self.queue_for_office();
    }
}

fn members_of(held: &[HeldLock]) -> LiteMap<NodeId, ()> {
    // One by one: `collect` would bring a sort of its own into the module.
    let mut members = LiteMap::new();
    for lock in held {
        if let LockName::Node(node) = lock.name {
            members.insert(node, ());
        }
    }
    members
}

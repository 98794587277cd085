//! The named checks, judged from outside: by what applications were handed, what the server
//! logged, which server subscriptions exist and what was posted, never by a core's own counters.

pub(crate) mod calls;
pub(crate) mod coordinators;
pub(crate) mod delivery;
pub(crate) mod log;
pub(crate) mod owners;
mod rest;

use std::collections::HashMap;

use motet_cluster::client::{Delivery, Gap, SubscriptionState};
use motet_cluster::frame::Frame;
use motet_cluster::node::{NodePacket, ToPagePacket};
use motet_protocol::{Error, NodeId};

use crate::setup::Setup;
use crate::world::context::ContextId;
use calls::Calls;
use coordinators::Coordinators;
use delivery::{Kept, StreamKey, Streams};
use log::Log;
use owners::Owners;

/// How much longer holes are excused after connections were disturbed.
const BACKOFF_GRACE: u64 = 50 * crate::world::SECOND;
/// A page that can ask nobody waits five seconds for what it misses; less the time of a judgement.
const UNASKED_MAX: u64 = 4_900 * crate::world::MS;
/// Outputs of one input that no honest core needs.
const OUTPUTS_MAX: usize = 5_000;

/// A check that failed.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    /// The check, by its name in the specification.
    pub(crate) check: &'static str,
    /// When, in virtual microseconds.
    pub(crate) at: u64,
    /// What was seen.
    pub(crate) detail: String,
}

/// What the judges know.
#[derive(Debug)]
pub(crate) struct Checks {
    /// The first check that failed.
    pub(crate) violation: Option<Violation>,
    pub(crate) log: Log,
    pub(crate) coordinators: Coordinators,
    pub(crate) owners: Owners,
    pub(crate) streams: Streams,
    pub(crate) calls: Calls,
    /// Posts on channels so far.
    pub(crate) channel_posts: u64,
    /// When each page last had a node that ran.
    pub(crate) hosted_at: HashMap<ContextId, u64>,
    /// When a topic last got another owner.
    pub(crate) moved_at: u64,
    /// Posts on ports so far.
    pub(crate) port_posts: u64,
    pub(crate) next_judgement: u64,
    /// When the last fault struck or ended.
    pub(crate) last_disturbance: u64,
    /// When the lock manager last lost everything.
    pub(crate) locks_vanished: Option<u64>,
    /// Connections were disturbed in this run: the next attempt may be a long backoff away.
    pub(crate) backoff: bool,
    /// Since when a topic that is listened on has no owner that acts.
    pub(crate) orphaned_since: Vec<Option<u64>>,
}

/// Outcome of one observation: the failed check and what was seen.
pub(crate) type Verdict = Result<(), (&'static str, String)>;

impl Checks {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self {
            violation: None,
            log: Log::new(&setup.topics),
            coordinators: Coordinators::default(),
            owners: Owners::new(&setup.topics),
            streams: Streams::default(),
            calls: Calls::default(),
            channel_posts: 0,
            hosted_at: HashMap::new(),
            moved_at: 0,
            port_posts: 0,
            next_judgement: 0,
            last_disturbance: 0,
            locks_vanished: None,
            backoff: false,
            orphaned_since: vec![None; setup.topics.len()],
        }
    }

    pub(crate) fn fail(&mut self, check: &'static str, at: u64, detail: &str) {
        if self.violation.is_none() {
            self.violation = Some(Violation { check, at, detail: detail.to_owned() });
        }
    }

    fn note(&mut self, at: u64, verdict: Verdict) {
        if let Err((check, detail)) = verdict {
            self.fail(check, at, &detail);
        }
    }

    pub(crate) fn outputs(&mut self, at: u64, count: usize) {
        if count > OUTPUTS_MAX {
            self.fail("bounded", at, &format!("{count} outputs after one input"));
        }
    }

    /// A page posts on the announce channel.
    pub(crate) fn page_posts(&mut self, packet: &NodePacket<u64>) {
        self.channel_posts += 1;
        for frame in &packet.frames {
            if let Frame::Leaving { node, .. } = frame {
                self.owners.left(*node);
            }
        }
    }

    pub(crate) fn port_posts(&mut self, count: u64) {
        self.port_posts += count;
    }

    pub(crate) fn node_started(&mut self, node: NodeId, context: ContextId) {
        self.owners.node_started(node, context);
    }

    pub(crate) fn node_ended(&mut self, node: NodeId) {
        self.owners.node_ended(node);
        self.coordinators.node_ended(node);
    }

    /// A node posts on a channel.
    pub(crate) fn node_posts(&mut self, node: NodeId, packet: &NodePacket<u64>, at: u64) {
        self.channel_posts += 1;
        let verdict = self.coordinators.posts(node, packet, at);
        self.note(at, verdict);
        let verdict = self.owners.posts(node, packet);
        self.note(at, verdict);
    }

    /// A node tells a page whom it follows.
    pub(crate) fn tells_page(&mut self, node: NodeId, packet: &ToPagePacket<u64>, at: u64) {
        let verdict = self.coordinators.tells(node, packet);
        self.note(at, verdict);
    }

    /// A node is about to handle what another node posted.
    pub(crate) fn hears(&mut self, node: NodeId, packet: &NodePacket<u64>) {
        self.coordinators.hears(node, packet);
        self.owners.hears(node, packet);
    }

    pub(crate) fn subscribed(&mut self, key: StreamKey) {
        self.streams.subscribed(key);
    }

    pub(crate) fn unsubscribed(&mut self, key: StreamKey) {
        self.streams.unsubscribed(key);
    }

    pub(crate) fn delivered(
        &mut self,
        key: StreamKey,
        delivery: &Delivery<u64>,
        heard: bool,
        at: u64,
    ) -> String {
        let verdict = if heard { self.streams.delivered(key, delivery, &self.log) } else { Ok(()) };
        self.note(at, verdict);
        let replayed = if delivery.replayed { " replayed" } else { "" };
        let position = &delivery.position;
        format!(
            "topic {} is handed {} at {}:{}{replayed}",
            key.topic,
            delivery.payload,
            position.epoch.as_str(),
            position.offset
        )
    }

    pub(crate) fn gap(&mut self, key: StreamKey, gap: &Gap, kept: Option<&Kept>, at: u64) {
        // A half-open connection is found by its missing pings, and opened again after a backoff.
        let excused = if self.backoff { BACKOFF_GRACE } else { 0 };
        // Whoever had no node that runs for so long could not ask for what it misses.
        let asked = self.hosted_at.get(&key.page).is_some_and(|hosted| at < hosted + UNASKED_MAX);
        let calm = if asked { at.saturating_sub(self.last_disturbance + excused) } else { 0 };
        let verdict = self.streams.gap(key, gap, kept, calm, &self.log);
        self.note(at, verdict);
    }

    pub(crate) fn subscription(&mut self, key: StreamKey, state: &SubscriptionState, at: u64) {
        let verdict = self.streams.state(key, state, &self.log);
        self.note(at, verdict);
    }

    pub(crate) fn publishing(&mut self, page: ContextId, topic: usize, payload: u64) {
        self.calls.publishing(page, topic, payload);
    }

    pub(crate) fn settled(&mut self, payload: u64, result: &Result<(), Error>, at: u64) {
        let verdict = self.calls.settled(payload, result, &self.log);
        self.note(at, verdict);
    }

    pub(crate) fn closing(&mut self, page: ContextId) {
        self.calls.closing(page);
    }

    pub(crate) fn page_gone(&mut self, page: ContextId) {
        self.streams.page_gone(page);
        self.calls.page_gone(page);
    }

    /// The server has accepted a publication.
    pub(crate) fn accepted(&mut self, topic: usize, entry: log::Accepted, at: u64) {
        let verdict = self.calls.accepted(topic, &entry, &self.log);
        self.note(at, verdict);
        self.log.append(topic, entry);
    }
}

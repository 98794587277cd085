//! Checks that need the whole world: after every step, and once all faults have ended.

use std::collections::BTreeSet;

use motet_cluster::client::Client;
use motet_cluster::frame::Frame;
use motet_cluster::name::LockName;
use motet_cluster::node::NodePacket;
use motet_protocol::NodeId;

use super::delivery::StreamKey;
use crate::driver::host::Host;
use crate::media::lock::Agent;
use crate::media::port::PortId;
use crate::server::Link;
use crate::setup::USUAL_SLOWEST;
use crate::world::context::{AppCall, ContextId, Task};
use crate::world::tab::TabState;
use crate::world::{MS, SECOND, World};

/// Time between judgements of what lasts.
const JUDGEMENT: u64 = 50 * MS;
/// So long after it was impaired a node may still hold what it does not own.
const IMPAIRED_GRACE: u64 = 5 * SECOND;
/// So long after a change of coordinator a healthy node may hold what it does not own.
const CHANGE_GRACE: u64 = 2 * SECOND;
/// Tasks that wait for a context that runs.
const QUEUE_MAX: usize = 10_000;
/// A frozen coordinator is found, then a frozen owner, then two seconds.
const ORPHAN_BOUND: u64 = 10 * SECOND;
/// A frozen owner is found by a coordinator that is well, then two seconds.
const GOVERNED_ORPHAN_BOUND: u64 = 6 * SECOND;
/// Detection bound and two seconds.
const SETTLE_BASE: u64 = 6 * SECOND;
/// The longest delay between two attempts to connect.
const BACKOFF_MAX: u64 = 30 * SECOND;
/// How long an idle cluster is watched.
const QUIET_WATCH: u64 = 30 * SECOND;
/// Subscriptions that come and go.
const CHURN_CYCLES: u64 = 300;
/// Time of one of them.
const CHURN_STEP: u64 = 10 * MS;
/// Locks that a node may hold or await besides one for each node and page.
const CLAIMS_EXTRA: usize = 6;
/// How long what was accepted last may take to its subscribers, while others still publish.
const DELIVERY_PATIENCE: u64 = 4 * SECOND;
/// A page whose node failed to start five times waits for up to a minute.
const RESTART_WAIT: u64 = 62 * SECOND;
/// When the last publication has settled at the latest.
const PUBLICATIONS_END: u64 = 10 * SECOND;
/// Posts per second that an idle cluster stays below.
const QUIET_RATE: u64 = 2;

impl World {
    /// After every step.
    pub(crate) fn judge(&mut self) {
        if self.now < self.checks.next_judgement {
            return;
        }
        self.checks.next_judgement = self.now + JUDGEMENT;
        let contexts = &self.contexts;
        let now = self.now;
        let verdict = self.checks.calls.pass(JUDGEMENT / MS, |page| {
            contexts[page].acting(now) && contexts[page].timer_grid == 0
        });
        if let Err((check, detail)) = verdict {
            self.checks.fail(check, self.now, &detail);
        }
        for id in 0..self.contexts.len() {
            let port = self.contexts[id].page.as_ref().and_then(|page| page.port);
            if self.hosts(port) {
                self.checks.hosted_at.insert(id, self.now);
            }
        }
        for topic in 0..self.setup.topics.len() {
            self.judge_holders(topic);
            self.judge_orphan(topic);
        }
        let full = self
            .contexts
            .iter()
            .position(|context| context.acting(now) && context.queued() > QUEUE_MAX);
        if let Some(full) = full {
            self.checks.fail("bounded", self.now, &format!("context {full} has too many tasks"));
        }
    }

    /// Two nodes that act never hold the same topic at the server.
    pub(crate) fn judge_holders(&mut self, topic: usize) {
        let healthy = |context: ContextId| {
            let context = &self.contexts[context];
            let recovered = context.impaired_until == 0
                || context.impaired_until.saturating_add(IMPAIRED_GRACE) < self.now;
            context.acting(self.now) && context.timer_grid == 0 && recovered
        };
        let mut agents: Vec<Agent> = self
            .holders(topic)
            .filter(|link| link.client_open && link.carries && healthy(link.context))
            .map(|link| link.agent)
            .collect();
        agents.sort_unstable();
        agents.dedup();
        if agents.len() < 2 {
            return;
        }
        let vanished = self.checks.locks_vanished;
        if vanished.is_some_and(|at| self.now < at + IMPAIRED_GRACE)
            || self.now < self.checks.coordinators.changed_at + CHANGE_GRACE
        {
            return;
        }
        let nodes: Vec<_> = self.nodes_of(&agents);
        let text = format!("{nodes:?} are both subscribed to topic {topic} at the server");
        self.checks.fail("one-owner", self.now, &text);
    }

    /// A route never moves away from an owner that is well, unless too many nodes own topics.
    pub(crate) fn judge_move(&mut self, topic: usize, from: NodeId, to: NodeId) {
        let Some(id) = self.checks.owners.context_of(from) else { return };
        if self.checks.owners.leaves(from) {
            return;
        }
        let context = &self.contexts[id];
        let well =
            context.acting(self.now) && context.impaired_until == 0 && context.timer_grid == 0;
        let calm = self.checks.locks_vanished.is_none() && self.setup.slowest <= USUAL_SLOWEST;
        let ready = context.host.as_ref().is_some_and(|host| !host.ports.is_empty());
        let holds = self.holders(topic).any(|link| {
            link.context == id
                && link.client_open
                && link.carries
                && self.node_of(id, link.agent) == Some(from)
        });
        if well && calm && ready && holds {
            let text = format!("topic {topic} moves from {from}, which is well, to {to}");
            self.checks.fail("one-owner", self.now, &text);
        }
    }

    /// A node that says Released holds the topic no more.
    pub(crate) fn judge_release(&mut self, host: &Host, packet: &NodePacket<u64>) {
        for frame in &packet.frames {
            let Frame::Released { topic, .. } = frame else { continue };
            let Some(topic) = self.topic_index(topic) else { continue };
            let holds = |link: &Link| link.agent == host.agent && link.client_open && link.carries;
            if self.holders(topic).any(holds) {
                let text = format!("{} releases topic {topic} and is still subscribed", host.id);
                self.checks.fail("one-owner", self.now, &text);
            }
        }
    }

    /// In time somebody owns what an application listens on.
    fn judge_orphan(&mut self, topic: usize) {
        let listened = self.checks.streams.wanted().any(|key| {
            let context = &self.contexts[key.page];
            key.topic == topic
                && self.hosts(context.page.as_ref().and_then(|page| page.port))
                && context.acting(self.now)
                && context.timer_grid == 0
        });
        let possible = self.server.up
            && self.online
            && self.tokens_valid
            && self.contexts.iter().all(|context| context.timer_grid == 0);
        let held = self.holders(topic).any(|link| {
            link.client_open && link.carries && self.contexts[link.context].acting(self.now)
        });
        if !listened || !possible || held {
            self.checks.orphaned_since[topic] = None;
            return;
        }
        let since = *self.checks.orphaned_since[topic].get_or_insert(self.now);
        let backoff = if self.checks.backoff { BACKOFF_MAX } else { 0 };
        let coordinator = self.locks.coordinator().and_then(|agent| self.locks.context_of(agent));
        let governed = coordinator.is_some_and(|id| {
            let context = &self.contexts[id];
            context.acting(self.now) && context.impaired_until == 0
        });
        let bound = if governed { GOVERNED_ORPHAN_BOUND } else { ORPHAN_BOUND };
        if self.now > since.max(self.checks.last_disturbance) + bound + backoff {
            let name = self.setup.topics[topic].name.clone();
            let text = format!("{name} is listened on and has had no owner since {since} us");
            self.checks.fail("no-orphan", self.now, &text);
        }
    }

    /// Whether a page's port leads to a node that runs.
    pub(crate) fn hosts(&self, port: Option<PortId>) -> bool {
        port.is_some_and(|port| self.contexts[self.ports[port].host].acting(self.now))
    }

    fn nodes_of(&self, agents: &[Agent]) -> Vec<NodeId> {
        let hosts = self.contexts.iter().filter_map(|context| context.host.as_ref());
        hosts.filter(|host| agents.contains(&host.agent)).map(|host| host.id).collect()
    }

    /// The node behind a connection.
    pub(crate) fn node_of(&self, context: ContextId, agent: Agent) -> Option<NodeId> {
        let host = self.contexts[context].host.as_ref().filter(|host| host.agent == agent)?;
        Some(host.id)
    }

    /// Lets everything come to rest, and judges what must then be true.
    pub(crate) fn finish(&mut self) {
        self.heal();
        self.checks.last_disturbance = self.now;
        self.await_owners();
        self.await_catch_up();
        self.probe();
        self.watch_quiet();
        self.churn();
        self.close_all();
    }

    /// `no-orphan`: in time every topic with a subscriber has an owner, and no other topic has.
    fn await_owners(&mut self) {
        let backoff = if self.checks.backoff { BACKOFF_MAX } else { SECOND };
        let mut bound = self.now + SETTLE_BASE + backoff;
        let restarted = bound + RESTART_WAIT;
        let least = self.now + 3 * SECOND;
        loop {
            self.run_until(self.now + 250 * MS);
            if self.checks.violation.is_some() {
                return;
            }
            // A page may have used up the starts of its node for this minute: what it listens on
            // has the usual time from when its node is there.
            let restarting = self.now < restarted && self.some_page_waits_for_its_node();
            if restarting {
                bound = self.now + SETTLE_BASE + backoff;
            }
            match self.orphans() {
                None if self.now >= least && !restarting => return,
                Some(text) if self.now >= bound => {
                    self.checks.fail("no-orphan", self.now, &text);
                    return;
                }
                _ => {}
            }
        }
    }

    fn some_page_waits_for_its_node(&self) -> bool {
        (0..self.tabs.len()).filter_map(|tab| self.open_page(tab)).any(|id| {
            let page = self.contexts[id].page.as_ref();
            page.is_some_and(|page| !page.app.closing && page.port.is_none())
        })
    }

    fn orphans(&self) -> Option<String> {
        for topic in 0..self.setup.topics.len() {
            let listeners: Vec<StreamKey> =
                self.checks.streams.wanted().filter(|key| key.topic == topic).collect();
            let mut owners: Vec<Agent> = self
                .holders(topic)
                .filter(|link| link.client_open && link.carries)
                .map(|link| link.agent)
                .collect();
            let stray = self.holders(topic).count() - owners.len();
            owners.sort_unstable();
            owners.dedup();
            let name = &self.setup.topics[topic].name;
            if listeners.is_empty() && (!owners.is_empty() || stray > 0) {
                return Some(format!("{name} has no subscriber, but {:?}", self.nodes_of(&owners)));
            }
            if !listeners.is_empty() && (owners.len() != 1 || stray > 0) {
                return Some(format!(
                    "{name} has subscribers {listeners:?}, but owners {:?} and {stray} stray",
                    self.nodes_of(&owners)
                ));
            }
        }
        None
    }

    /// Whoever missed something has asked for it by now.
    fn await_catch_up(&mut self) {
        if self.checks.violation.is_some() {
            return;
        }
        let patience = self.now + DELIVERY_PATIENCE;
        while let Err((check, detail)) = self.checks.streams.caught_up(&self.checks.log) {
            if self.now >= patience {
                return self.checks.fail(check, self.now, &detail);
            }
            self.run_until(self.now + 250 * MS);
        }
    }

    /// What is published now reaches everybody who listens, and with it all that came before.
    fn probe(&mut self) {
        for _ in 0..2 {
            for topic in 0..self.setup.topics.len() {
                self.server_publishes(topic, 1);
            }
            self.run_until(self.now + 300 * MS);
        }
        let patience = self.now + DELIVERY_PATIENCE;
        loop {
            self.run_until(self.now + SECOND);
            match self.checks.streams.complete(&self.checks.log) {
                Ok(()) => return,
                // Somebody's last publication may just have been accepted.
                Err((check, detail)) if self.now >= patience => {
                    return self.checks.fail(check, self.now, &detail);
                }
                Err(_) => {}
            }
        }
    }

    /// `quiet`, and at rest exactly one node beats.
    fn watch_quiet(&mut self) {
        if self.checks.violation.is_some() {
            return;
        }
        // What was published before has its deadline, a client gives up a mute connection, and
        // surplus owners hand over one by one; only then is the cluster idle.
        let idle_at = self.now + PUBLICATIONS_END;
        let mute = |link: &Link| link.client_open && !link.carries;
        while self.now < idle_at
            && (self.checks.calls.waiting() || self.crowded() || self.links.iter().any(mute))
        {
            self.run_until(self.now + 500 * MS);
        }
        if self.crowded() {
            let text = format!("more than {} nodes own topics", self.setup.max_active_nodes);
            self.checks.fail("one-owner", self.now, &text);
        }
        let mut start = self.now;
        let mut posts = self.posts_until(start + QUIET_WATCH);
        if self.checks.moved_at >= start && self.setup.token_seconds > 0 {
            // Something happened: the page of an owner had no token when the old one ended.
            start = self.now;
            posts = self.posts_until(start + QUIET_WATCH);
        }
        if posts * SECOND >= QUIET_RATE * QUIET_WATCH {
            let text = format!("{posts} posts in {} s of idleness", QUIET_WATCH / SECOND);
            self.checks.fail("quiet", self.now, &text);
        }
        let beats = self.checks.coordinators.beats.iter().filter(|(_, at)| **at >= start);
        let beating: Vec<_> = beats.map(|(node, _)| *node).collect();
        let alone = self.checks.owners.nodes().count() < 2;
        if beating.len() > 1 || (beating.is_empty() && !alone) {
            let text = format!("at rest {beating:?} act as coordinator");
            self.checks.fail("one-coordinator", self.now, &text);
        }
    }

    fn posts_until(&mut self, end: u64) -> u64 {
        let before = self.checks.channel_posts;
        self.run_until(end);
        self.checks.channel_posts - before
    }

    /// Whether more nodes own topics than may.
    fn crowded(&self) -> bool {
        let topics = 0..self.setup.topics.len();
        let holders = topics.flat_map(|topic| self.holders(topic));
        let owners: BTreeSet<Agent> = holders.map(|link| link.agent).collect();
        owners.len() > self.setup.max_active_nodes as usize
    }

    /// `bounded`: handlers that come and go leave nothing behind.
    fn churn(&mut self) {
        if self.checks.violation.is_some() {
            return;
        }
        self.judge_claims();
        if !self.chance(60) {
            return;
        }
        let Some(page) = (0..self.tabs.len()).find_map(|tab| self.open_page(tab)) else { return };
        let before = self.claims();
        for cycle in 0..CHURN_CYCLES {
            let topic = (cycle % self.setup.topics.len() as u64) as usize;
            let at = cycle * CHURN_STEP;
            self.send(page, at, Task::App(AppCall::Subscribe(topic, 0)));
            self.send(page, at + CHURN_STEP / 2, Task::App(AppCall::Unsubscribe(topic)));
        }
        self.run_until(self.now + CHURN_CYCLES * CHURN_STEP);
        self.await_owners();
        let after = self.claims();
        if after > before + 2 {
            let text = format!("{CHURN_CYCLES} subscriptions left {after} locks, not {before}");
            self.checks.fail("bounded", self.now, &text);
        }
    }

    fn claims(&self) -> usize {
        let hosts = self.contexts.iter().filter_map(|context| context.host.as_ref());
        hosts.map(|host| self.locks.claims_of(host.agent).len()).sum()
    }

    /// A node holds or awaits few locks besides one for each other node and page.
    fn judge_claims(&mut self) {
        let most = self.checks.owners.nodes().count() + self.tabs.len() + CLAIMS_EXTRA;
        let hosts = self.contexts.iter().filter_map(|context| context.host.as_ref());
        let worst = hosts.map(|host| (self.locks.claims_of(host.agent).len(), host.id)).max();
        if let Some((claims, node)) = worst.filter(|(claims, _)| *claims > most) {
            let text = format!("{node} holds or awaits {claims} locks at rest");
            self.checks.fail("bounded", self.now, &text);
        }
    }

    /// `settles`: after `close()` nothing remains.
    fn close_all(&mut self) {
        if self.checks.violation.is_some() {
            return;
        }
        let mut pages = Vec::new();
        for tab in 0..self.tabs.len() {
            if self.tabs[tab].state == TabState::Open
                && let Some(page) = self.tabs[tab].page
            {
                pages.push(page);
                let after = self.rng.below(400 * MS);
                self.send(page, after, Task::App(AppCall::Close));
            }
        }
        self.run_until(self.now + 14 * SECOND);
        if self.checks.violation.is_some() {
            return;
        }
        for page in pages {
            if let Some(text) = self.remains_of(page) {
                self.checks.fail(
                    "settles",
                    self.now,
                    &format!("after close() of page {page}: {text}"),
                );
            }
        }
        let connections = self.connections().count();
        if connections > 0 {
            let text = format!("after close() of all pages {connections} connections remain");
            self.checks.fail("settles", self.now, &text);
        }
    }

    fn remains_of(&self, id: ContextId) -> Option<String> {
        let page = self.contexts[id].page.as_ref()?;
        if !page.app.closed {
            return Some("it is not closed".to_owned());
        }
        let mut claims = self.locks.claims_of(page.agent);
        claims.retain(|lock| !matches!(lock, LockName::Tab(_)));
        let channels = self.channels.of_context(id);
        let worker = page.worker().filter(|worker| self.contexts[*worker].alive());
        let due = page.client.as_ref().and_then(Client::next_timeout);
        let remains = !claims.is_empty()
            || !channels.is_empty()
            || page.port.is_some()
            || worker.is_some()
            || due.is_some();
        remains.then(|| {
            let port = page.port;
            format!("locks {claims:?}, channels {channels:?}, port {port:?}, worker {worker:?}, timer {due:?}")
        })
    }
}

//! The coordinator's routes: every decision about a topic is made here.

use core::time::Duration;

use litemap::LiteMap;
use motet_protocol::fault::planted;
use motet_protocol::{Fence, Generation, Instant, NodeId, RouteFence};

use super::choice::{Candidate, choose, one_too_many, rank};
use super::{COUNTS_WAIT, Coordinator};
use crate::node::{NodeEvent, Out};
use crate::table::{Route, RouteState};

/// An assignment that is not confirmed is announced again after this time...
pub(super) const CONFIRM_WAIT: Duration = Duration::from_millis(500);
/// ... so often, and then given to another node.
const CONFIRM_TRIES: u32 = 3;
/// A handoff that does not end is cut short: the new owner proceeds. So long an owner also has to
/// unsubscribe from what nobody wants any more.
pub(super) const HANDOFF_WAIT: Duration = Duration::from_secs(5);

/// Former owners that are remembered; beyond that a topic that comes back gets the usual choice.
const FORMER_OWNERS_MAX: usize = 1_000;

/// One route as the coordinator sees it.
pub(super) struct RouteEntry {
    pub(super) route: Route,
    pub(super) subscribers: LiteMap<NodeId, ()>,
    pub(super) count_changed: bool,
    /// Earlier owners that may still hold the server subscription, by the fence they had it under.
    /// The newest is the one the owner waits for; each passes on the release of those before it.
    pub(super) holders: Vec<(RouteFence, NodeId)>,
    /// When the next step is overdue: the confirmation, or the end of a handoff.
    pub(super) due: Option<Instant>,
    tries: u32,
}

impl RouteEntry {
    pub(super) fn new(route: Route) -> Self {
        Self {
            route,
            subscribers: LiteMap::new(),
            count_changed: false,
            holders: Vec::new(),
            due: None,
            tries: 0,
        }
    }

    pub(super) fn hold(&mut self, fence: RouteFence, node: NodeId) {
        self.holders.retain(|(_, holder)| *holder != node);
        self.holders.push((fence, node));
        self.holders.sort_unstable();
    }

    pub(super) fn last_holder(&self) -> Option<NodeId> {
        self.holders.last().map(|(_, node)| *node)
    }

    pub(super) fn row(&self) -> Route {
        Route { subscribers: self.subscribers.len() as u32, ..self.route.clone() }
    }
}

/// Topics of each owner.
pub(super) type Loads = LiteMap<NodeId, u32>;

impl Coordinator {
    /// Topics that one node wants, or wants no more.
    pub(crate) fn want<P: Clone>(
        &mut self,
        node: NodeId,
        added: Vec<String>,
        removed: Vec<String>,
        now: Instant,
        out: &mut Out<P>,
    ) {
        for topic in removed {
            self.unsubscribe(&topic, node, now);
        }
        let mut loads = self.loads();
        for topic in added {
            self.subscribe(&topic, node, &mut loads, now, out);
        }
    }

    /// Makes what a node reports to want exactly what it is a subscriber of.
    pub(super) fn set_wanted<P: Clone>(
        &mut self,
        node: NodeId,
        wanted: Vec<String>,
        now: Instant,
        out: &mut Out<P>,
    ) {
        // One by one: `collect` would bring a sort of its own into the module.
        let mut wants = LiteMap::new_vec();
        for topic in wanted {
            wants.insert(topic, ());
        }
        let had = self.routes.iter().filter(|(_, entry)| entry.subscribers.contains_key(&node));
        let removed: Vec<_> =
            had.map(|(topic, _)| topic).filter(|t| !wants.contains_key(*t)).cloned().collect();
        let added = wants.into_iter().map(|(topic, ())| topic).filter(|topic| {
            self.routes.get(topic).is_none_or(|entry| !entry.subscribers.contains_key(&node))
        });
        let added = added.collect();
        self.want(node, added, removed, now, out);
    }

    fn subscribe<P: Clone>(
        &mut self,
        topic: &str,
        node: NodeId,
        loads: &mut Loads,
        now: Instant,
        out: &mut Out<P>,
    ) {
        if !self.routes.contains_key(topic) {
            let entry = RouteEntry::new(self.undecided(topic));
            self.routes.insert(topic.to_owned(), entry);
        }
        // What nobody has heard of has not happened.
        let unsaid = self.dropped_routes.remove(topic).is_some();
        let former = self.former_owners.remove(topic).map(|(owner, _)| owner);
        let entry = self.routes.get_mut(topic).expect("inserted above");
        entry.subscribers.insert(node, ());
        entry.count_changed = true;
        self.counts_at.get_or_insert(now + COUNTS_WAIT);
        let undecided =
            entry.route.fence.fence != self.fence && !self.members.contains_key(&entry.route.owner);
        let failed = matches!(entry.route.state, RouteState::Failed(_));
        if self.rebuild_until.is_none() && (undecided || failed) {
            // A former owner may not have unsubscribed at the server yet: it subscribes again in
            // order if it may own the topic, or says when it has unsubscribed.
            let keep = if failed { Some(entry.route.owner) } else { former };
            let fits = |node: &NodeId| {
                let ranked = rank(self.candidates(loads), self.active_max);
                ranked.iter().any(|candidate| candidate.member.node == *node)
            };
            let keep = keep.filter(|node| failed || unsaid || fits(node));
            let releases = former.filter(|node| keep.is_none() && self.members.contains_key(node));
            self.decide(topic, keep, releases, loads, now, out);
        }
    }

    /// A route that nobody has decided: no member is its owner, so the next decision replaces it.
    fn undecided(&self, topic: &str) -> Route {
        Route {
            topic: topic.to_owned(),
            owner: NodeId::from_bits(0),
            fence: RouteFence { fence: Fence::default(), generation: Generation::NONE },
            handoff_from: None,
            state: RouteState::Assigned,
            subscribers: 0,
        }
    }

    fn unsubscribe(&mut self, topic: &str, node: NodeId, now: Instant) {
        let Some(entry) = self.routes.get_mut(topic) else { return };
        entry.subscribers.remove(&node);
        entry.count_changed = true;
        self.counts_at.get_or_insert(now + COUNTS_WAIT);
        if entry.subscribers.is_empty() && self.rebuild_until.is_none() {
            self.drop_route(topic, now);
        }
    }

    pub(super) fn drop_route(&mut self, topic: &str, now: Instant) {
        let Some(entry) = self.routes.remove(topic) else { return };
        self.changed_routes.remove(topic);
        self.dropped_routes.insert(topic.to_owned(), ());
        if self.former_owners.len() < FORMER_OWNERS_MAX {
            self.former_owners.insert(topic.to_owned(), (entry.route.owner, now + HANDOFF_WAIT));
        }
    }

    /// Forgets former owners that have had time to unsubscribe.
    pub(super) fn forget_former_owners(&mut self, now: Instant) {
        self.former_owners.retain(|_, (_, until)| *until > now);
    }

    pub(super) fn forget_subscriber(&mut self, node: NodeId, now: Instant) {
        let mut empty = Vec::new();
        for (topic, entry) in &mut self.routes {
            if entry.subscribers.remove(&node).is_some() {
                entry.count_changed = true;
                if entry.subscribers.is_empty() {
                    empty.push(topic.clone());
                }
            }
        }
        if self.rebuild_until.is_none() {
            empty.iter().for_each(|topic| self.drop_route(topic, now));
        }
    }

    /// Topics that no member could take before may have found one.
    pub(super) fn decide_orphans<P: Clone>(&mut self, now: Instant, out: &mut Out<P>) {
        let orphaned = self.routes.iter().filter(|(_, entry)| !self.may_own(entry.route.owner));
        let topics: Vec<_> =
            orphaned.map(|(topic, entry)| (topic.clone(), entry.route.owner)).collect();
        let mut loads = self.loads();
        for (topic, owner) in topics {
            self.decide(&topic, None, self.hands_over(owner), &mut loads, now, out);
        }
    }

    pub(super) fn may_own(&self, node: NodeId) -> bool {
        self.members.get(&node).is_some_and(|entry| !entry.suspect && !entry.retires())
    }

    /// The node itself when it lives and only retires: then it releases the topic first.
    pub(super) fn hands_over(&self, node: NodeId) -> Option<NodeId> {
        self.members.get(&node).is_some_and(super::MemberEntry::retires).then_some(node)
    }

    /// How many topics each owner has.
    pub(super) fn loads(&self) -> Loads {
        let mut loads = Loads::new();
        for entry in self.routes.values() {
            *loads.entry(entry.route.owner).or_default() += 1;
        }
        loads
    }

    /// Gives a topic an owner under the next generation: `keep` if it may, else the best candidate.
    /// `releases` is the present owner when it lives and lets go of the topic first. `loads` is
    /// counted once for all topics that are decided together.
    pub(super) fn decide<P: Clone>(
        &mut self,
        topic: &str,
        keep: Option<NodeId>,
        releases: Option<NodeId>,
        loads: &mut Loads,
        now: Instant,
        out: &mut Out<P>,
    ) {
        let kept = keep.filter(|node| self.may_own(*node));
        let ranked = rank(self.candidates(loads), self.active_max);
        let Some(owner) = kept.or_else(|| choose(&ranked)) else {
            // Nobody may own it: it is decided when somebody may again.
            if let Some(entry) = self.routes.get_mut(topic) {
                entry.due = None;
            }
            return;
        };
        self.expect_pulses(owner, now);
        let alive = |node: &NodeId| self.members.get(node).is_some_and(|entry| !entry.suspect);
        let Some(entry) = self.routes.get_mut(topic) else { return };
        if let Some(releases) = releases {
            entry.hold(entry.route.fence, releases);
        }
        let old = entry.route.owner;
        if let Some(load) = loads.get_mut(&old) {
            // A topic that is new was not counted.
            *load = load.saturating_sub(1);
        }
        *loads.entry(owner).or_default() += 1;
        let stays = |node: NodeId| node != owner && (node != old || releases == Some(old));
        entry.holders.retain(|(_, node)| stays(*node) && alive(node));
        let handoff_from = entry.last_holder();
        // Fences order before generations, so one count of this coordinator's own decisions is
        // above whatever was decided before it.
        let generation = self.generation.next();
        self.generation = generation;
        let fence = if planted("reuse-generation") {
            entry.route.fence
        } else {
            RouteFence { fence: self.fence, generation }
        };
        entry.route =
            Route { owner, fence, handoff_from, state: RouteState::Assigned, ..entry.row() };
        entry.tries = 0;
        entry.due = Some(now + CONFIRM_WAIT);
        self.changed_routes.insert(topic.to_owned(), ());
        let candidates = ranked.iter().map(|c| (c.member.node, c.load)).collect();
        out.event(NodeEvent::Chose { topic: topic.to_owned(), owner, generation, candidates });
    }

    fn candidates(&self, loads: &Loads) -> Vec<Candidate> {
        let fit = self.members.iter().filter(|(node, _)| self.may_own(**node));
        let candidate = |(node, entry): (&NodeId, &super::MemberEntry)| {
            Some(Candidate {
                member: entry.row.clone()?,
                load: loads.get(node).copied().unwrap_or(0),
            })
        };
        fit.filter_map(candidate).collect()
    }

    /// Moves everything a node owns, and lets new owners proceed that waited for it.
    pub(super) fn move_topics_of<P: Clone>(
        &mut self,
        node: NodeId,
        now: Instant,
        out: &mut Out<P>,
    ) {
        let from = self.hands_over(node);
        let mut loads = self.loads();
        let topics: Vec<_> = self.routes.keys().cloned().collect();
        for topic in topics {
            let route = &self.routes[&topic].route;
            if route.owner == node {
                self.decide(&topic, None, from, &mut loads, now, out);
            } else if from.is_none() {
                self.holder_gone(&topic, node, now);
            }
        }
    }

    /// When more nodes own topics than may, and nothing is on its way, one of them hands its topics
    /// over to the others.
    pub(super) fn thin_owners_out<P: Clone>(&mut self, now: Instant, out: &mut Out<P>) {
        if self.routes.values().any(|entry| entry.due.is_some()) {
            return;
        }
        // What the server refused stays where it was refused until somebody asks for it again; it
        // makes nobody an owner.
        let is_held = |entry: &RouteEntry| !matches!(entry.route.state, RouteState::Failed(_));
        let mut loads = Loads::new();
        for entry in self.routes.values().filter(|entry| is_held(entry)) {
            *loads.entry(entry.route.owner).or_default() += 1;
        }
        let Some((goes, stay)) = one_too_many(self.candidates(&loads), self.active_max) else {
            return;
        };
        let owned =
            self.routes.iter().filter(|(_, entry)| entry.route.owner == goes && is_held(entry));
        let topics: Vec<_> = owned.map(|(topic, _)| topic.clone()).collect();
        for topic in topics {
            let load = |candidate: &&Candidate| loads.get(&candidate.member.node).copied();
            let heir = stay.iter().min_by_key(load).map(|candidate| candidate.member.node);
            self.decide(&topic, heir, Some(goes), &mut loads, now, out);
        }
    }

    /// An earlier owner holds nothing any more: the owner waits for the one before it, if any.
    fn holder_gone(&mut self, topic: &str, node: NodeId, now: Instant) {
        let Some(entry) = self.routes.get_mut(topic) else { return };
        entry.holders.retain(|(_, holder)| *holder != node);
        if entry.route.handoff_from != Some(node) {
            return;
        }
        entry.route.handoff_from = entry.last_holder();
        let waits = entry.route.handoff_from.is_some();
        entry.due = Some(now + if waits { HANDOFF_WAIT } else { CONFIRM_WAIT });
        entry.tries = 0;
        self.changed_routes.insert(topic.to_owned(), ());
    }

    /// The owner has waited long enough.
    fn cut_handoff_short(&mut self, topic: &str, now: Instant) {
        let Some(entry) = self.routes.get_mut(topic) else { return };
        entry.holders.clear();
        entry.route.handoff_from = None;
        entry.due = Some(now + CONFIRM_WAIT);
        entry.tries = 0;
        self.changed_routes.insert(topic.to_owned(), ());
    }

    /// How far the owner has come.
    pub(crate) fn confirm(
        &mut self,
        node: NodeId,
        topic: &str,
        fence: RouteFence,
        state: RouteState,
        now: Instant,
    ) {
        let Some(entry) = self.routes.get_mut(topic) else { return };
        if entry.route.owner != node || entry.route.fence != fence {
            return;
        }
        if state != RouteState::Subscribing {
            entry.route.handoff_from = None;
            entry.holders.clear();
        }
        entry.due = match entry.route.handoff_from {
            None => None,
            Some(_) if entry.route.state == RouteState::Assigned => Some(now + HANDOFF_WAIT),
            Some(_) => entry.due,
        };
        if entry.route.state != state {
            entry.route.state = state;
            self.changed_routes.insert(topic.to_owned(), ());
        }
    }

    pub(super) fn resend_assignments<P: Clone>(&mut self, now: Instant, out: &mut Out<P>) {
        let overdue =
            self.routes.iter().filter(|(_, entry)| entry.due.is_some_and(|due| due <= now));
        let topics: Vec<_> = overdue.map(|(topic, _)| topic.clone()).collect();
        for topic in topics {
            let Some(entry) = self.routes.get_mut(&topic) else { continue };
            if entry.route.handoff_from.is_some() && entry.route.state != RouteState::Assigned {
                self.cut_handoff_short(&topic, now);
            } else if entry.tries < CONFIRM_TRIES {
                entry.tries += 1;
                entry.due = Some(now + CONFIRM_WAIT);
                self.changed_routes.insert(topic, ());
            } else {
                let silent = entry.route.owner;
                if silent == self.me {
                    let mut loads = self.loads();
                    self.decide(&topic, None, None, &mut loads, now, out);
                } else {
                    self.replace_frozen(silent, now, out);
                }
            }
        }
    }

    pub(super) fn routes_timeout(&self) -> Option<Instant> {
        self.routes.values().filter_map(|entry| entry.due).min()
    }
}

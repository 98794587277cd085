//! The page's copy of the cluster's table, as its node tells it: for snapshots, and to know which
//! topics have an owner.

use core::time::Duration;

use litemap::LiteMap;
use motet_protocol::{Fence, Instant, NodeId};

use crate::frame::Heard;
use crate::table::{Member, Route, RouteState};

/// Routes kept of topics that the page does not subscribe and its node does not own.
pub(super) const FOREIGN_TOPICS_MAX: usize = 500;
/// Members kept.
pub(super) const MEMBERS_MAX: usize = 1_000;

/// A member, as the page knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownMember {
    /// The member.
    pub member: Member,
    /// When the page's node told of it first, in the page's waking time.
    pub since: Instant,
    /// How long its silence had lasted, and when the page's node told so.
    pub(super) silence: Option<(Duration, Instant)>,
}

impl KnownMember {
    /// How long its silence has lasted at `now`, as far as the page's node has told.
    pub(super) fn silence_until(&self, now: Instant) -> Option<Duration> {
        self.silence.map(|(ago, told)| ago + (now - told))
    }
}

/// One row of the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRoute {
    /// The route.
    pub route: Route,
    /// When the row changed last, in the page's waking time.
    pub updated: Instant,
    /// When its owner was first known to hold the server subscription.
    pub confirmed: Option<Instant>,
    /// Order of arrival: the first to come is the first to be evicted.
    arrival: u64,
    /// When it was told last, in the same order: tells which rows a full table has left out.
    told: u64,
}

#[derive(Debug)]
pub(super) struct Replica {
    fence: Fence,
    members: Vec<KnownMember>,
    routes: LiteMap<String, KnownRoute>,
    /// Number of the last row told.
    told: u64,
    /// Rows that nothing protects from eviction.
    foreign: usize,
}

impl Replica {
    pub(super) fn new() -> Self {
        Self {
            fence: Fence::default(),
            members: Vec::new(),
            routes: LiteMap::new(),
            told: 0,
            foreign: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(super) const fn fence(&self) -> Fence {
        self.fence
    }

    pub(super) fn members(&self) -> &[KnownMember] {
        &self.members
    }

    pub(super) fn routes(&self) -> impl Iterator<Item = &KnownRoute> {
        self.routes.values()
    }

    pub(super) fn route(&self, topic: &str) -> Option<&Route> {
        self.routes.get(topic).map(|known| &known.route)
    }

    /// Whether a frame of the coordinator with this fence counts; a higher fence is adopted.
    pub(super) fn adopt(&mut self, fence: Fence) -> bool {
        let counts = fence >= self.fence;
        if counts {
            self.fence = fence;
        }
        counts
    }

    /// Takes members, kept in the order of their registration.
    pub(super) fn set_members(
        &mut self,
        now: Instant,
        members: Vec<Member>,
        gone: &[NodeId],
        full: bool,
    ) {
        let before = if full { core::mem::take(&mut self.members) } else { Vec::new() };
        self.members.retain(|known| !gone.contains(&known.member.node));
        for member in members {
            let is_it = |known: &&KnownMember| known.member.node == member.node;
            let known = self.members.iter().chain(&before).find(is_it);
            let since = known.map_or(now, |known| known.since);
            let silence = known.and_then(|known| known.silence);
            self.members.retain(|known| known.member.node != member.node);
            if self.members.len() < MEMBERS_MAX {
                let place = |member: &Member| (member.order, member.node);
                let later = |known: &KnownMember| place(&known.member) > place(&member);
                let at = self.members.iter().position(later).unwrap_or(self.members.len());
                self.members.insert(at, KnownMember { member, since, silence });
            }
        }
    }

    /// Takes what the page's node knows of the members' signs of life.
    pub(super) fn heard_of(&mut self, now: Instant, heard: &[Heard]) {
        for Heard { node, ago_ms } in heard {
            let ago = Duration::from_millis((*ago_ms).into());
            if let Some(known) = self.members.iter_mut().find(|known| known.member.node == *node)
                && known.silence_until(now).is_none_or(|silence| ago < silence)
            {
                known.silence = Some((ago, now));
            }
        }
    }

    /// Takes a row. False when it is older than what is known. `keep` says which topics are never
    /// evicted.
    pub(super) fn set_route(
        &mut self,
        now: Instant,
        route: &Route,
        keep: &dyn Fn(&Route) -> bool,
    ) -> bool {
        self.told += 1;
        let told = self.told;
        let known = self.routes.get_mut(&route.topic).map(|known| {
            known.told = told;
            &*known
        });
        if known.is_some_and(|known| route.fence < known.route.fence) {
            return false;
        }
        let stands = known.filter(|known| known.route.fence == route.fence);
        let confirmed = match route.state {
            RouteState::Subscribed => Some(stands.and_then(|known| known.confirmed).unwrap_or(now)),
            _ => None,
        };
        let updated = match stands {
            Some(known) if known.route == *route => known.updated,
            _ => now,
        };
        let arrival = known.map_or(told, |known| known.arrival);
        let row = KnownRoute { route: route.clone(), updated, confirmed, arrival, told };
        if self.routes.insert(route.topic.clone(), row).is_none() && !keep(route) {
            self.foreign += 1;
            if self.foreign > FOREIGN_TOPICS_MAX {
                self.evict(keep);
            }
        }
        true
    }

    /// Drops the oldest unprotected rows. Which rows those are changes with subscriptions and
    /// owners, so they are counted anew.
    fn evict(&mut self, keep: &dyn Fn(&Route) -> bool) {
        loop {
            let foreign = || self.routes.values().filter(|known| !keep(&known.route));
            self.foreign = foreign().count();
            if self.foreign <= FOREIGN_TOPICS_MAX {
                return;
            }
            let oldest = foreign().min_by_key(|known| known.arrival);
            let topic = oldest.expect("more than the limit").route.topic.clone();
            self.routes.remove(&topic);
        }
    }

    pub(super) fn drop_route(&mut self, topic: &str) {
        self.routes.remove(topic);
    }

    /// Number of the last row told: what a full table names is told after it.
    pub(super) const fn told(&self) -> u64 {
        self.told
    }

    /// Topics whose rows were told at or before this.
    pub(super) fn told_before(&self, told: u64) -> Vec<String> {
        let old = self.routes.iter().filter(|(_, known)| known.told <= told);
        old.map(|(topic, _)| topic.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use motet_protocol::{Generation, RouteFence};

    use super::*;

    #[test]
    fn members_are_kept_in_the_order_of_their_registration_since_they_were_first_told() {
        let mut replica = Replica::new();
        let member = |order: u64, bits| Member {
            node: NodeId::from_bits(bits),
            tab: motet_protocol::TabId::from_bits(1),
            order,
            visible: true,
            transport: crate::table::TransportStatus::Idle,
            leaving: false,
            idempotent: false,
        };
        let at = |seconds| Instant::ZERO + core::time::Duration::from_secs(seconds);
        replica.set_members(at(1), vec![member(3, 1), member(1, 2), member(2, 3)], &[], true);
        replica.set_members(at(2), vec![member(4, 2)], &[NodeId::from_bits(1)], false);
        replica.set_members(at(3), vec![member(4, 2), member(5, 4), member(2, 3)], &[], true);
        let rows = replica.members().iter().map(|known| (known.member.order, known.since));
        assert_eq!(rows.collect::<Vec<_>>(), [(2, at(1)), (4, at(1)), (5, at(3))]);
    }

    fn route(topic: &str, epoch: u64) -> Route {
        Route {
            topic: topic.into(),
            owner: NodeId::from_bits(1),
            fence: RouteFence {
                fence: Fence { incarnation: 1, epoch },
                generation: Generation::FIRST,
            },
            handoff_from: None,
            state: RouteState::Subscribed,
            subscribers: 1,
        }
    }

    #[test]
    fn the_oldest_foreign_topics_make_room_and_kept_ones_never_do() {
        let mut replica = Replica::new();
        let keep = |route: &Route| route.topic.starts_with("mine");
        for number in 0..2_000 {
            replica.set_route(Instant::ZERO, &route(&format!("mine.{number}"), 1), &keep);
            replica.set_route(Instant::ZERO, &route(&format!("other.{number:05}"), 1), &keep);
        }
        let mine = replica.routes().filter(|known| keep(&known.route)).count();
        assert_eq!((mine, replica.routes().count()), (2_000, 2_000 + FOREIGN_TOPICS_MAX));
        assert!(replica.route("other.01499").is_none() && replica.route("other.01500").is_some());
    }

    #[test]
    fn a_row_of_an_older_decision_is_refused() {
        let mut replica = Replica::new();
        assert!(replica.set_route(Instant::ZERO, &route("a", 2), &|_| true));
        assert!(!replica.set_route(Instant::ZERO, &route("a", 1), &|_| true));
        let before = replica.told();
        assert!(!replica.set_route(Instant::ZERO, &route("a", 1), &|_| true));
        assert_eq!(replica.told_before(before), [""; 0], "but it was named");
        assert_eq!(replica.told_before(replica.told()), ["a"]);
    }
}

//! A node's or page's copy of the coordinator's table.

use std::collections::VecDeque;

use litemap::LiteMap;
use motet_protocol::NodeId;

use crate::table::{Member, Route};

/// Members and routes as last announced, with a cap on routes that are of no concern here.
///
/// Topics named by peers are remembered up to a limit, oldest out first; topics that the holder
/// owns or subscribes are never evicted (B18).
#[derive(Clone, Debug)]
pub(crate) struct Replica {
    members: LiteMap<NodeId, Member>,
    routes: LiteMap<String, Route>,
    foreign: VecDeque<String>,
    foreign_max: usize,
}

impl Replica {
    pub(crate) fn new(foreign_max: usize) -> Self {
        Self {
            members: LiteMap::new(),
            routes: LiteMap::new(),
            foreign: VecDeque::new(),
            foreign_max,
        }
    }

    pub(crate) fn members(&self) -> &LiteMap<NodeId, Member> {
        &self.members
    }

    pub(crate) fn routes(&self) -> &LiteMap<String, Route> {
        &self.routes
    }

    pub(crate) fn route(&self, topic: &str) -> Option<&Route> {
        self.routes.get(topic)
    }

    /// Applies announced members.
    pub(crate) fn apply_members(&mut self, members: &[Member], gone: &[NodeId], full: bool) {
        if full {
            self.members.clear();
        }
        for node in gone {
            self.members.remove(node);
        }
        self.members.extend(members.iter().map(|member| (member.node, member.clone())));
    }

    /// Applies announced routes; `concerns` tells the topics that are never evicted.
    pub(crate) fn apply_routes(
        &mut self,
        routes: &[Route],
        dropped: &[String],
        full: bool,
        concerns: impl Fn(&Route) -> bool,
    ) {
        if full {
            self.routes.clear();
            self.foreign.clear();
        }
        for topic in dropped {
            self.routes.remove(topic);
        }
        for route in routes {
            let known = self.routes.insert(route.topic.clone(), route.clone()).is_some();
            if !known && !concerns(route) {
                self.foreign.push_back(route.topic.clone());
            }
        }
        while self.foreign.len() > self.foreign_max {
            let Some(oldest) = self.foreign.pop_front() else { break };
            if self.routes.get(&oldest).is_some_and(|route| !concerns(route)) {
                self.routes.remove(&oldest);
            }
        }
    }

    /// Place of `node` among those that may replace the coordinator, by registration.
    pub(crate) fn rank(&self, node: NodeId, coordinator: Option<NodeId>) -> u32 {
        let Some(own) = self.members.get(&node) else { return self.members.len() as u32 };
        let ahead = self.members.values().filter(|member| {
            Some(member.node) != coordinator
                && !member.leaving
                && (member.order, member.node) < (own.order, own.node)
        });
        ahead.count() as u32
    }
}

#[cfg(test)]
mod tests {
    use motet_protocol::{Fence, Generation, RouteFence};

    use super::*;
    use crate::table::RouteState;

    fn route(topic: &str) -> Route {
        Route {
            topic: topic.to_owned(),
            owner: NodeId::from_bits(1),
            fence: RouteFence { fence: Fence::default(), generation: Generation::FIRST },
            handoff_from: None,
            state: RouteState::Subscribed,
            subscribers: 1,
        }
    }

    #[test]
    fn peers_cannot_fill_the_table_and_own_topics_stay() {
        let mut replica = Replica::new(2);
        let mine = |route: &Route| route.topic == "mine";
        replica.apply_routes(&[route("mine")], &[], false, mine);
        for n in 0..50 {
            replica.apply_routes(&[route(&format!("foreign.{n}"))], &[], false, mine);
        }
        let topics: Vec<_> = replica.routes().keys().map(String::as_str).collect();
        assert_eq!(topics, ["foreign.48", "foreign.49", "mine"]);
    }
}

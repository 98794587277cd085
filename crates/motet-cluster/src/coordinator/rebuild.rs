//! Rebuilding the routes from the members' reports after a change of coordinator.

use motet_protocol::{Instant, NodeId};

use super::Coordinator;
use super::routes::{CONFIRM_WAIT, HANDOFF_WAIT, RouteEntry};
use crate::frame::ReportedRoute;
use crate::node::Out;
use crate::table::{Route, RouteState};

impl Coordinator {
    /// Owners that others know of may be standing: after a change of coordinator their routes are
    /// taken as seen, until the owners themselves have spoken.
    pub(super) fn take_seen(&mut self, seen: &[ReportedRoute]) {
        if self.rebuild_until.is_none() {
            return;
        }
        for report in seen {
            let known = self.routes.get(&report.topic);
            if known.is_none_or(|entry| entry.route.fence < report.fence) {
                let route = self.undecided_as(report);
                self.adopt(route);
            }
        }
    }

    /// A report that comes after the decisions may know a later one about a topic than the one that
    /// stands: it is decided again, for the same owner, or those who know better would drop its data.
    pub(super) fn outrank<P: Clone>(
        &mut self,
        reported: &[ReportedRoute],
        now: Instant,
        out: &mut Out<P>,
    ) {
        let mut loads = self.loads();
        for report in reported {
            let Some(entry) = self.routes.get(&report.topic) else { continue };
            if entry.route.fence < report.fence {
                let owner = entry.route.owner;
                self.decide(&report.topic, Some(owner), None, &mut loads, now, out);
            }
        }
    }

    fn undecided_as(&self, report: &ReportedRoute) -> Route {
        Route {
            topic: report.topic.clone(),
            owner: report.owner,
            fence: report.fence,
            handoff_from: None,
            state: report.state.clone().unwrap_or(RouteState::Assigned),
            subscribers: 0,
        }
    }

    fn adopt(&mut self, route: Route) {
        match self.routes.get_mut(&route.topic) {
            Some(known) => known.route = route,
            None => {
                self.routes.insert(route.topic.clone(), RouteEntry::new(route));
            }
        }
    }

    /// Routes that a node says it owns stand, unless a later decision is known.
    pub(super) fn take_owned(&mut self, node: NodeId, owned: Vec<ReportedRoute>, now: Instant) {
        for report in owned {
            if self.rebuild_until.is_none() {
                let state = report.state.unwrap_or(RouteState::Assigned);
                self.confirm(node, &report.topic, report.fence, state, now);
                continue;
            }
            let stands = match self.routes.get(&report.topic) {
                None => true,
                Some(entry) => entry.route.fence <= report.fence,
            };
            if stands {
                let mut route = self.undecided_as(&report);
                route.owner = node;
                let confirmed = route.state != RouteState::Assigned;
                let topic = route.topic.clone();
                self.adopt(route);
                if let Some(entry) = self.routes.get_mut(&topic) {
                    entry.due = (!confirmed).then_some(now + CONFIRM_WAIT);
                }
                self.changed_routes.insert(topic, ());
            }
            if let Some(entry) = self.routes.get_mut(&report.topic) {
                entry.hold(report.fence, node);
            }
        }
    }

    /// After the reports: what is owned stands, what is wanted gets an owner, the rest is dropped.
    pub(super) fn settle_routes<P: Clone>(&mut self, now: Instant, out: &mut Out<P>) {
        self.register_new();
        let unwanted = self.routes.iter().filter(|(_, entry)| entry.subscribers.is_empty());
        let unwanted: Vec<_> = unwanted.map(|(topic, _)| topic.clone()).collect();
        unwanted.iter().for_each(|topic| self.drop_route(topic, now));
        let mut loads = self.loads();
        let topics: Vec<_> = self.routes.keys().cloned().collect();
        for topic in topics {
            let entry = &self.routes[&topic];
            let owner = entry.route.owner;
            let foreign = entry.route.fence.fence.incarnation != self.fence.incarnation;
            if self.may_own(owner) && foreign {
                // Two lives of the cluster have met. Some page may know of a decision of the higher
                // one that no report names, and would drop data under the lower.
                self.decide(&topic, Some(owner), None, &mut loads, now, out);
            } else if self.may_own(owner) {
                self.resume_handoff(&topic, now);
            } else {
                // An earlier owner that still has it serves on: the decision that took it away has
                // come to nothing.
                let mut latest_first = entry.holders.iter().rev().map(|(_, node)| *node);
                let keep = latest_first.find(|node| self.may_own(*node));
                self.decide(&topic, keep, self.hands_over(owner), &mut loads, now, out);
            }
        }
    }

    /// An owner that has not subscribed yet goes on waiting for those that said they still hold
    /// the topic under an older fence.
    fn resume_handoff(&mut self, topic: &str, now: Instant) {
        let alive = |node: &NodeId| self.members.get(node).is_some_and(|entry| !entry.suspect);
        let Some(entry) = self.routes.get_mut(topic) else { return };
        let owner = entry.route.owner;
        entry.holders.retain(|(_, node)| *node != owner && alive(node));
        let assigned = entry.route.state == RouteState::Assigned;
        if !assigned && entry.route.state != RouteState::Subscribing {
            entry.holders.clear();
        }
        entry.route.handoff_from = entry.last_holder();
        if assigned {
            entry.due = Some(now + CONFIRM_WAIT);
        } else if entry.route.handoff_from.is_some() {
            entry.due = Some(now + HANDOFF_WAIT);
        }
    }
}

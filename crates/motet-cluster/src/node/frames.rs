//! Frames from other nodes, and from this one to itself.

use motet_protocol::fault::planted;
use motet_protocol::{Fence, Instant, NodeId};

use super::api::{NodeEvent, NodePacket};
use super::election::Query;
use super::{Node, Role, Status};
use crate::coordinator::Report;
use crate::frame::Frame;
use crate::name::check_topic;
use crate::table::{Member, Route};

impl<P: Clone> Node<P> {
    pub(super) fn packet(&mut self, packet: &NodePacket<P>, now: Instant) {
        let from = packet.from;
        if from != self.me && self.replica.members().contains_key(&from) {
            self.signs_of_life.insert(from, now);
        }
        if self.coordinator == Some(from) {
            self.heard_from_coordinator(now);
        }
        if let Role::Governing(coordinator) = &mut self.role {
            coordinator.heard(from, now);
        }
        for frame in &packet.frames {
            self.frame(from, frame, packet, now);
        }
    }

    pub(super) fn bad_frame(&mut self) {
        self.bad_frames += 1;
        self.out.event(NodeEvent::BadFrames(self.bad_frames));
    }

    fn frame(&mut self, from: NodeId, frame: &Frame, packet: &NodePacket<P>, now: Instant) {
        match frame {
            Frame::Hello { .. } => self.hello(from),
            Frame::Claim { fence, .. } => self.claim(from, *fence, now),
            Frame::Members { fence, members, gone, full, .. } => {
                if self.obeys(from, *fence, now) {
                    self.members(members, gone, *full);
                }
            }
            Frame::Assign { fence, routes, dropped, full } => {
                if self.obeys(from, *fence, now) {
                    self.assign(routes, dropped, *full);
                } else if *fence < self.known {
                    self.given_away_before(*fence, routes);
                }
            }
            Frame::Beat { fence } => {
                if self.obeys(from, *fence, now) && from != self.me && !self.owner.is_empty() {
                    self.out.send(from, Frame::Pulse { fence: *fence });
                }
            }
            Frame::Ping { fence } => self.ping(from, *fence),
            Frame::Pulse { .. } => {}
            Frame::Leaving { node, graceful } => self.member_leaves(from, *node, *graceful, now),
            Frame::Revalidate { .. } => self.revalidate_asked(from),
            Frame::Report { .. }
            | Frame::Want { .. }
            | Frame::Status { .. }
            | Frame::Confirm { .. } => {
                self.coordinator_frame(from, frame, now);
            }
            Frame::Released { topic, fence, position } => {
                self.owner.released(topic, *fence, position.clone(), &mut self.out);
            }
            Frame::Join(join) => self.owner.join(from, join, &mut self.out),
            Frame::Joined(joined) => self.joined(joined, packet),
            Frame::NotOwner { topic, client, call } => self.pages_not_owner(*client, topic, *call),
            Frame::Publish(publish) => self.publish_for(from, publish, packet, now),
            Frame::Published { call, error } => self.published_there(from, *call, error.clone()),
            Frame::RingWanted { topic, fence, client } => {
                self.ring_wanted(from, topic, *fence, *client);
            }
            Frame::Ring { topic, fence, messages, .. } => {
                self.owner.ring_arrived(topic, *fence, messages, packet);
            }
            // Data channels are for pages; on an inbox these are foreign.
            Frame::Data { .. } | Frame::Head { .. } => self.bad_frame(),
        }
    }

    fn hello(&mut self, from: NodeId) {
        if let Role::Governing(coordinator) = &mut self.role {
            coordinator.welcome(from, &mut self.out);
        }
    }

    fn claim(&mut self, from: NodeId, fence: Fence, now: Instant) {
        let lower = fence < self.known && !planted("obey-lower-fence");
        if lower || (fence == self.known && self.author.is_some_and(|known| known != from)) {
            // Its fence is not high enough for us: it learns of ours, and exceeds it if the lock
            // really is its own.
            if self.governs().is_some() {
                self.query_once(Query::Prove(Some(fence)));
            }
            self.report(from, fence);
            return;
        }
        if self.coordinator != Some(from) || fence > self.known {
            self.follow(from, fence, now);
        }
        self.report(from, fence);
    }

    fn query_once(&mut self, query: Query) {
        if !self.queries.contains(&query) {
            self.query(query);
        }
    }

    /// Whether a coordinator's frame counts; a higher fence than known is adopted on the spot.
    fn obeys(&mut self, from: NodeId, fence: Fence, now: Instant) -> bool {
        if fence > self.known {
            self.claim(from, fence, now);
        }
        let obeyed = self.author == Some(from) && fence == self.known;
        if fence == self.known && !obeyed {
            // Nobody but its author acts under a fence.
            self.bad_frame();
        }
        obeyed || (planted("obey-lower-fence") && fence < self.known)
    }

    fn ping(&mut self, from: NodeId, fence: Fence) {
        if let Role::Governing(coordinator) = &mut self.role {
            coordinator.answer_ping(&mut self.out);
        } else {
            self.out.send(from, Frame::Pulse { fence });
        }
    }

    fn member_leaves(&mut self, from: NodeId, node: NodeId, graceful: bool, now: Instant) {
        if from != node {
            return self.bad_frame();
        }
        if let Role::Governing(coordinator) = &mut self.role {
            if graceful {
                coordinator.leaving(node, now, &mut self.out);
            } else {
                coordinator.gone(node, now, &mut self.out);
            }
        } else if !graceful && self.coordinator == Some(node) {
            self.term_ended(self.known, now);
        }
    }

    fn revalidate_asked(&mut self, from: NodeId) {
        if let Role::Governing(coordinator) = &mut self.role {
            if coordinator.is_member(from) {
                coordinator.tell_table();
            } else {
                coordinator.welcome(from, &mut self.out);
            }
        }
    }

    /// Frames that only a coordinator hears.
    fn coordinator_frame(&mut self, from: NodeId, frame: &Frame, now: Instant) {
        let Role::Governing(coordinator) = &mut self.role else { return };
        match frame {
            Frame::Report { fence, known, member, owned, wanted, seen, capabilities, build } => {
                if *known > coordinator.fence() {
                    return self.query_once(Query::Prove(Some(*known)));
                }
                let report = Report {
                    fence: *fence,
                    member: member.clone(),
                    owned: owned.clone(),
                    wanted: wanted
                        .iter()
                        .filter(|topic| check_topic(topic).is_ok())
                        .cloned()
                        .collect(),
                    seen: seen.clone(),
                    capabilities: *capabilities,
                };
                let unknown = coordinator.report(from, report, now, &mut self.out);
                if unknown && from != self.me {
                    self.watch_death(from);
                }
                if *build != self.config.build {
                    self.out.event(NodeEvent::BuildSkew(from));
                }
            }
            _ if !coordinator.is_member(from) => coordinator.welcome(from, &mut self.out),
            Frame::Want { added, removed } => {
                let valid =
                    added.iter().filter(|topic| check_topic(topic).is_ok()).cloned().collect();
                coordinator.want(from, valid, removed.clone(), now, &mut self.out);
            }
            Frame::Status { visible, transport, idempotent, tokenless } => {
                let status = Status {
                    visible: *visible,
                    transport: *transport,
                    idempotent: *idempotent,
                    tokenless: *tokenless,
                };
                coordinator.status(from, status, now, &mut self.out);
            }
            Frame::Confirm { topic, fence, state } => {
                coordinator.confirm(from, topic, *fence, state.clone(), now);
            }
            _ => {}
        }
    }

    fn members(&mut self, members: &[Member], gone: &[NodeId], full: bool) {
        let expelled = gone.contains(&self.me);
        if let (true, Some(coordinator)) = (expelled, self.coordinator) {
            self.report(coordinator, self.known);
        }
        if full {
            // A new coordinator names no one who died with the old one.
            let stays = |node: &NodeId| members.iter().any(|member| member.node == *node);
            let known = self.replica.members().keys().copied();
            let lost: Vec<_> = known.filter(|node| !stays(node)).collect();
            self.relay_lost(&lost);
            self.owner.members_gone(&lost, &mut self.out);
        }
        self.relay_lost(gone);
        self.owner.members_gone(gone, &mut self.out);
        self.replica.apply_members(members, gone, full);
        let members_now = self.replica.members();
        self.signs_of_life.retain(|node, _| members_now.contains_key(node));
        if let Some(own) = self.replica.members().get(&self.me) {
            self.order = own.order;
        }
        self.pages_members(members, gone, full);
    }

    /// Decisions of an earlier coordinator that arrive after a later one's first word. They give
    /// nothing any more, but a topic that one of them takes away was taken away: others may act on
    /// it already. Who governs learns of it, for this node may be the only one that knows.
    fn given_away_before(&mut self, by: Fence, routes: &[Route]) {
        let newer = |route: &Route| {
            self.replica.route(&route.topic).is_none_or(|known| known.fence < route.fence)
        };
        let takes = |route: &&Route| {
            route.owner != self.me
                && route.fence.fence <= by
                && self.owner.outranked_by(route)
                && newer(route)
        };
        let taken: Vec<_> = routes.iter().filter(takes).cloned().collect();
        if taken.is_empty() {
            return;
        }
        self.routes_changed(&taken, &[], false);
        if let Some(coordinator) = self.coordinator {
            self.report(coordinator, self.known);
        }
    }

    fn assign(&mut self, routes: &[Route], dropped: &[String], full: bool) {
        self.routes_changed(routes, dropped, full);
        if full {
            self.table_came();
        }
    }

    fn routes_changed(&mut self, routes: &[Route], dropped: &[String], full: bool) {
        for topic in dropped {
            self.owner.give_up(topic, &mut self.out);
        }
        for route in routes {
            self.owner.follow(route, &mut self.out);
        }
        if full {
            self.owner.keep_only(routes, &mut self.out);
        }
        let (owner, pages) = (&self.owner, &self.pages);
        let concerns = |route: &Route| owner.owns(&route.topic) || pages.wants(&route.topic);
        self.replica.apply_routes(routes, dropped, full, concerns);
        self.pages_routes(routes, dropped, full);
    }
}

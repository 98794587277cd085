//! Topics come and go: taken, handed over, given up, each by the exact decision.

use litemap::LiteMap;
use motet_protocol::fault::planted;
use motet_protocol::transport::TransportOp;
use motet_protocol::{NodeId, Position, RouteFence};

use super::Owner;
use super::topic::{Owned, Phase};
use crate::frame::Frame;
use crate::name::shard_of;
use crate::node::Out;
use crate::table::{Route, RouteState};

/// Releases kept for decisions that are still on their way; the oldest make room.
const EARLY_RELEASES_MAX: usize = 1_000;

impl<P: Clone> Owner<P> {
    /// Follows a decided route: takes the topic, keeps it, hands it over, or gives it up.
    pub(crate) fn follow(&mut self, route: &Route, out: &mut Out<P>) {
        if route.owner == self.me {
            return self.take(route, out);
        }
        let asked = route.handoff_from == Some(self.me) && !planted("skip-released");
        match self.topics.get(&route.topic) {
            Some(owned) if route.fence > owned.fence => {
                if asked {
                    self.hand_over(route, out);
                } else if !owned.goes_on(route) {
                    self.give_up(&route.topic, out);
                }
            }
            Some(_) => {}
            None if asked => match self.given_up.get_mut(&route.topic) {
                Some(waiting) => *waiting = Some((route.owner, route.fence)),
                // It was released before: the owner must not wait for what has happened.
                None => tell_released(&route.topic, route.owner, route.fence, out),
            },
            None => {}
        }
    }

    fn take(&mut self, route: &Route, out: &mut Out<P>) {
        let topic = &route.topic;
        let early = self.take_early_release(topic, route.fence);
        let waits_for = route
            .handoff_from
            .filter(|from| *from != self.me && early.is_none() && !planted("ignore-handoff"));
        let since = early.flatten();
        if let Some(owned) = self.topics.get_mut(topic) {
            if route.fence < owned.fence {
                return;
            }
            let renewed = route.fence > owned.fence;
            owned.fence = route.fence;
            match owned.phase {
                Phase::AwaitingRelease { .. } | Phase::Passing { .. } => match waits_for {
                    None => self.subscribe(topic, since, out),
                    Some(from) => {
                        owned.phase = Phase::AwaitingRelease { from };
                        self.confirm(topic);
                    }
                },
                Phase::Failed(_) | Phase::Releasing { .. } if renewed => {
                    // Somebody wants it tried again, whatever the transport was refused before.
                    if self.refused.take().is_some() {
                        out.transport(TransportOp::Retry);
                    }
                    self.subscribe(topic, since, out)
                }
                _ => self.confirm(topic),
            }
            return;
        }
        let mut owned = Owned::new(route.fence, shard_of(topic), self.limits);
        if let Some(from) = waits_for {
            owned.phase = Phase::AwaitingRelease { from };
        }
        self.topics.insert(topic.clone(), owned);
        if waits_for.is_some() {
            self.confirm(topic);
        } else {
            self.subscribe(topic, since, out);
        }
    }

    /// Inbox and announce channel have no mutual order: the release may come before the decision.
    fn take_early_release(&mut self, topic: &str, fence: RouteFence) -> Option<Option<Position>> {
        let found = self.early_releases.iter().position(|(t, f, _)| t == topic && *f == fence)?;
        self.early_releases.remove(found).map(|(_, _, position)| position)
    }

    fn hand_over(&mut self, route: &Route, out: &mut Out<P>) {
        let Some(owned) = self.topics.get_mut(&route.topic) else { return };
        if route.state == RouteState::Assigned {
            // What waits is posted under the present fence before the new owner hears of anything.
            self.batches.hurry(owned.shard);
        } else {
            // It was decided before this node heard of it: pages know the new fence by now.
            self.batches.discard_topic(owned.shard, &route.topic);
        }
        let (to, fence) = (route.owner, route.fence);
        let before = owned.phase.clone();
        owned.phase = match before {
            Phase::AwaitingRelease { from } | Phase::Passing { from, .. } => {
                Phase::Passing { from, to, fence }
            }
            _ => Phase::Releasing { to, fence },
        };
        let holds = !owned.is_waiting() && !matches!(before, Phase::Releasing { .. });
        self.refuse_joins(&route.topic, out);
        if holds {
            out.transport(TransportOp::Unsubscribe { topic: route.topic.clone() });
            if planted("release-before-unsubscribe") {
                self.released_at_server(&route.topic, out);
            }
        }
    }

    /// Nodes are gone, and with them what they held: a release that was to be passed on is passed
    /// on. Whoever awaits one itself is told by the coordinator, which knows of earlier holders.
    pub(crate) fn members_gone(&mut self, gone: &[NodeId], out: &mut Out<P>) {
        let freed = |owned: &Owned<P>| match owned.phase {
            Phase::Passing { from, .. } => gone.contains(&from),
            _ => false,
        };
        let freed = self.topics.iter().filter(|(_, owned)| freed(owned));
        let freed: Vec<_> = freed.map(|(topic, owned)| (topic.clone(), owned.fence)).collect();
        for (topic, fence) in freed {
            self.released(&topic, fence, None, out);
        }
    }

    /// The server subscription is gone: the new owner may begin.
    pub(super) fn released_at_server(&mut self, topic: &str, out: &mut Out<P>) {
        let Some(owned) = self.topics.remove(topic) else { return };
        let Phase::Releasing { to, fence } = owned.phase else { return };
        out.send(
            to,
            Frame::Released { topic: topic.to_owned(), fence, position: owned.history_position() },
        );
    }

    /// Gives a topic up at once: dropped, or decided away without a handoff.
    pub(crate) fn give_up(&mut self, topic: &str, out: &mut Out<P>) {
        self.refuse_joins(topic, out);
        let Some(owned) = self.topics.remove(topic) else { return };
        self.batches.discard_topic(owned.shard, topic);
        if !owned.is_waiting() {
            let waiting = match owned.phase {
                Phase::Releasing { to, fence } => Some((to, fence)),
                _ => None,
            };
            self.given_up.insert(topic.to_owned(), waiting);
            out.transport(TransportOp::Unsubscribe { topic: topic.to_owned() });
        }
    }

    /// The server has confirmed that a topic that was given up is not subscribed any more.
    pub(super) fn given_up_at_server(&mut self, topic: &str, out: &mut Out<P>) {
        if let Some(Some((to, fence))) = self.given_up.remove(topic) {
            tell_released(topic, to, fence, out);
        }
    }

    /// The connection is lost, and with it every subscription.
    pub(super) fn all_given_up_at_server(&mut self, out: &mut Out<P>) {
        for (topic, waiting) in core::mem::take(&mut self.given_up) {
            if let Some((to, fence)) = waiting {
                tell_released(&topic, to, fence, out);
            }
        }
    }

    /// Gives up every topic that the confirmed table does not leave to this node.
    pub(crate) fn keep_only(&mut self, routes: &[Route], out: &mut Out<P>) {
        // One by one: `collect` would bring a sort of its own into the module.
        let mut table = LiteMap::new_vec();
        for route in routes {
            table.insert(route.topic.as_str(), route);
        }
        let stands = |(topic, owned): &(&String, &Owned<P>)| {
            table.get(topic.as_str()).is_some_and(|route| {
                route.owner == self.me
                    || route.handoff_from == Some(self.me)
                    || owned.goes_on(route)
            })
        };
        let lost = self.topics.iter().filter(|entry| !stands(entry));
        let lost: Vec<_> = lost.map(|(topic, _)| topic.clone()).collect();
        lost.iter().for_each(|topic| self.give_up(topic, out));
    }

    /// Gives up everything.
    pub(crate) fn end(&mut self, out: &mut Out<P>) {
        self.keep_only(&[], out);
    }

    /// The old owner has unsubscribed. Only the exact decision counts.
    pub(crate) fn released(
        &mut self,
        topic: &str,
        fence: RouteFence,
        position: Option<Position>,
        out: &mut Out<P>,
    ) {
        if self.topics.get(topic).is_none_or(|owned| owned.fence < fence) {
            if self.early_releases.len() == EARLY_RELEASES_MAX {
                self.early_releases.pop_front();
            }
            self.early_releases.push_back((topic.to_owned(), fence, position));
            return;
        }
        let Some(owned) = self.topics.get_mut(topic) else { return };
        if owned.fence != fence {
            return;
        }
        match owned.phase {
            Phase::AwaitingRelease { .. } => self.subscribe(topic, position, out),
            Phase::Passing { .. } => self.pass_on(topic, position, out),
            _ => {}
        }
    }

    fn pass_on(&mut self, topic: &str, position: Option<Position>, out: &mut Out<P>) {
        let Some(owned) = self.topics.remove(topic) else { return };
        if let Phase::Passing { to, fence, .. } = owned.phase {
            out.send(to, Frame::Released { topic: topic.to_owned(), fence, position });
        }
    }
}

/// Tells the new owner that it may begin; where this one stopped is not known any more.
fn tell_released<P: Clone>(topic: &str, to: NodeId, fence: RouteFence, out: &mut Out<P>) {
    out.send(to, Frame::Released { topic: topic.to_owned(), fence, position: None });
}

//! The pages attached to a node: what they want, and what they are told.

use litemap::LiteMap;
use motet_protocol::transport::TransportOp;
use motet_protocol::{CallId, ClientId, Error, ErrorCode, Instant, NodeId, RouteFence, TabId};

use super::api::{NodePacket, ToNodePacket};
use super::locks::Purpose;
use super::{Node, Role};
use crate::frame::{Frame, Heard, JoinFrame, JoinedFrame, MessageHead, ToNode, ToPage};
use crate::name::{TOPICS_PER_PAGE_MAX, check_topic};
use crate::packet::Packet;
use crate::table::{Member, Route, RouteState};

struct Page {
    visible: bool,
    /// It was asked for a token and has not said a word since.
    silent: bool,
    topics: LiteMap<String, ()>,
}

/// Attached pages.
#[derive(Default)]
pub(super) struct Pages {
    pages: LiteMap<ClientId, Page>,
    wanted: LiteMap<String, u32>,
    /// Who asked for a page's ring of a topic.
    ring_askers: LiteMap<String, NodeId>,
}

impl Pages {
    pub(super) fn wanted(&self) -> Vec<String> {
        self.wanted.keys().cloned().collect()
    }

    pub(super) fn wants(&self, topic: &str) -> bool {
        self.wanted.contains_key(topic)
    }

    pub(super) fn ids(&self) -> Vec<ClientId> {
        self.pages.keys().copied().collect()
    }

    /// The page to ask for a token: one that answers, a visible one, if any is.
    pub(super) fn best(&self) -> Option<ClientId> {
        let best = self.pages.iter().min_by_key(|(_, page)| (page.silent, !page.visible));
        best.map(|(client, _)| *client)
    }

    pub(super) fn note_silent(&mut self, client: ClientId, silent: bool) {
        if let Some(page) = self.pages.get_mut(&client) {
            page.silent = silent;
        }
    }

    pub(super) fn is_silent(&self, client: ClientId) -> bool {
        self.pages.get(&client).is_none_or(|page| page.silent)
    }
}

impl<P: Clone> Node<P> {
    pub(super) fn port(&mut self, client: ClientId, packet: &ToNodePacket<P>, now: Instant) {
        self.pages.note_silent(client, false);
        self.relay.heard_from_page(client);
        for frame in &packet.frames {
            self.port_frame(client, frame, packet, now);
        }
    }

    fn port_frame(
        &mut self,
        client: ClientId,
        frame: &ToNode,
        packet: &ToNodePacket<P>,
        now: Instant,
    ) {
        if let ToNode::Attach { client: named, tab, visible, build } = frame {
            return if *named == client {
                self.attach(client, *tab, *visible, build)
            } else {
                self.bad_frame()
            };
        }
        if matches!(frame, ToNode::Bye) {
            // Also from a page that was taken for dead: its node must not live on without it.
            return self.page_says_bye(client, now);
        }
        if !self.pages.pages.contains_key(&client) {
            if self.closing != Some(client) {
                self.out.page(client, ToPage::Detached);
            }
            return self.bad_frame();
        }
        match frame {
            ToNode::Attach { .. } | ToNode::Bye => {}
            ToNode::Subscribe { topics } => {
                topics.iter().for_each(|topic| self.page_subscribes(client, topic))
            }
            ToNode::Unsubscribe { topics } => {
                topics.iter().for_each(|topic| self.page_unsubscribes(client, topic))
            }
            ToNode::Join(join) => self.page_joins(client, join),
            ToNode::Publish(publish) => self.page_publishes(client, publish, packet, now),
            ToNode::Visible { visible } => self.page_visible(client, *visible),
            ToNode::Nudge => self.out.transport(TransportOp::Nudge),
            ToNode::Token { topic, token } => self.token_given(topic.clone(), token.clone()),
            ToNode::Retry => self.retry(),
            ToNode::Ring { topic, fence, epoch, messages } => {
                if let Some(asker) = self.pages.ring_askers.remove(topic) {
                    self.out.send_with(asker, |to| Frame::Ring {
                        topic: topic.clone(),
                        fence: *fence,
                        epoch: epoch.clone(),
                        messages: copy_messages(messages, packet, to),
                    });
                }
            }
            ToNode::Ping => self.answer_ping(client, now),
        }
    }

    fn answer_ping(&mut self, client: ClientId, now: Instant) {
        let ago_ms = |at: Instant| u32::try_from((now - at).as_millis()).unwrap_or(u32::MAX);
        let others = self.signs_of_life.iter();
        let others = others.map(|(node, at)| Heard { node: *node, ago_ms: ago_ms(*at) });
        let heard = others.chain([Heard { node: self.me, ago_ms: 0 }]).collect();
        self.out.page(client, ToPage::Pong { node: self.me, heard });
    }

    fn attach(&mut self, client: ClientId, tab: TabId, visible: bool, build: &str) {
        // A page that comes again has forgotten what it wanted before.
        let known = self.pages.pages.remove(&client);
        self.locks.release(|purpose| purpose == Purpose::PageEnd(client), &mut self.out);
        if self.pages.pages.is_empty() {
            self.tab = tab;
        }
        self.pages.pages.insert(client, Page { visible, silent: false, topics: LiteMap::new() });
        if let Some(known) = known {
            known.topics.keys().for_each(|topic| self.want_less(topic));
            self.relay_page_gone(client);
        }
        self.stay();
        if self.config.shared {
            self.locks.request(Purpose::PageEnd(client), false, self.me, &mut self.out);
        }
        self.out.page(client, ToPage::Attached { node: self.me, build: self.config.build.clone() });
        if build != self.config.build {
            self.out.page(client, ToPage::Report { error: Error::new(ErrorCode::BuildSkew) });
        }
        let members = self.replica.members().values().cloned().collect();
        let routes = self.replica.routes().values().cloned().collect();
        self.out.page(client, ToPage::Coordinator { node: self.coordinator, fence: self.known });
        self.out.page(client, ToPage::Members { members, gone: Vec::new(), full: true });
        self.out.page(
            client,
            ToPage::Routes { fence: self.known, routes, dropped: Vec::new(), full: true },
        );
        self.out.page(
            client,
            ToPage::Transport { status: self.transport, error: None, terminal: false },
        );
        self.judge_visibility();
    }

    /// A page came back while the node was leaving.
    fn stay(&mut self) {
        if !core::mem::take(&mut self.leaving) {
            return;
        }
        self.leave_by = None;
        self.closing = None;
        self.queue_for_office();
        if let Some(coordinator) = self.coordinator {
            self.report(coordinator, self.known);
        }
    }

    fn page_subscribes(&mut self, client: ClientId, topic: &str) {
        let Some(page) = self.pages.pages.get_mut(&client) else { return };
        if check_topic(topic).is_err() || page.topics.len() >= TOPICS_PER_PAGE_MAX {
            return self.bad_frame();
        }
        if page.topics.insert(topic.to_owned(), ()).is_some() {
            return;
        }
        let count = self.pages.wanted.entry(topic.to_owned()).or_default();
        *count += 1;
        let first = *count == 1;
        let failed = self
            .replica
            .route(topic)
            .is_some_and(|route| matches!(route.state, RouteState::Failed(_)));
        if (first && self.want_removed.remove(topic).is_none()) || failed {
            self.want_added.insert(topic.to_owned(), ());
        }
    }

    fn page_unsubscribes(&mut self, client: ClientId, topic: &str) {
        let Some(page) = self.pages.pages.get_mut(&client) else { return };
        if page.topics.remove(topic).is_some() {
            self.want_less(topic);
        }
    }

    fn want_less(&mut self, topic: &str) {
        let Some(count) = self.pages.wanted.get_mut(topic) else { return };
        *count -= 1;
        if *count == 0 {
            self.pages.wanted.remove(topic);
            if self.want_added.remove(topic).is_none() {
                self.want_removed.insert(topic.to_owned(), ());
            }
        }
    }

    fn page_joins(&mut self, client: ClientId, join: &JoinFrame) {
        let join = JoinFrame { client, ..join.clone() };
        match self.replica.route(&join.topic) {
            Some(route) if self.coordinator.is_some() => {
                self.out.send(route.owner, Frame::Join(join))
            }
            _ => self.out.page(client, ToPage::NotOwner { topic: join.topic, call: join.call }),
        }
    }

    fn page_visible(&mut self, client: ClientId, visible: bool) {
        if let Some(page) = self.pages.pages.get_mut(&client) {
            page.visible = visible;
        }
        self.judge_visibility();
    }

    fn judge_visibility(&mut self) {
        self.visible = self.pages.pages.values().any(|page| page.visible);
    }

    /// A page asks to try again what the server refused for good.
    fn retry(&mut self) {
        self.owner.admitted();
        // A connection that nothing wants forgets its refusal by being closed.
        if self.wants_connection() {
            self.out.transport(TransportOp::Retry);
        }
        for route in self.replica.routes().values() {
            if matches!(route.state, RouteState::Failed(_)) && self.pages.wants(&route.topic) {
                self.want_added.insert(route.topic.clone(), ());
            }
        }
    }

    /// A page is gone without a word.
    pub(super) fn page_gone(&mut self, client: ClientId) {
        let Some(page) = self.pages.pages.remove(&client) else { return };
        self.locks.release(|purpose| purpose == Purpose::PageEnd(client), &mut self.out);
        for topic in page.topics.keys() {
            self.want_less(topic);
        }
        self.relay_page_gone(client);
        self.judge_visibility();
    }

    /// A page leaves in order. After the last one the node hands its topics over and ends.
    fn page_says_bye(&mut self, client: ClientId, now: Instant) {
        self.page_gone(client);
        if !self.pages.pages.is_empty() {
            self.out.page(client, ToPage::Closed);
            return;
        }
        self.closing = Some(client);
        self.leaving = true;
        if let Some(coordinator) = self.coordinator {
            self.tell_wants(coordinator);
        }
        let alone = match &self.role {
            Role::Governing(coordinator) => coordinator.alone(),
            Role::Joining { .. } => self.coordinator.is_none(),
            _ => false,
        };
        if alone {
            self.owner.end(&mut self.out);
        }
        // Who governs next moves the topics: this node reports itself leaving to it.
        self.step_down(now);
        self.locks.release(|purpose| purpose == Purpose::Office, &mut self.out);
        if let Some(coordinator) = self.coordinator {
            self.out.send(coordinator, Frame::Leaving { node: self.me, graceful: true });
        }
    }

    /// The owner's answer for one of this node's pages.
    pub(super) fn joined(&mut self, joined: &JoinedFrame, packet: &NodePacket<P>) {
        if self.pages.pages.contains_key(&joined.client) {
            self.out.page_with(joined.client, |to| {
                let messages = copy_messages(&joined.messages, packet, to);
                ToPage::Joined(JoinedFrame { messages, ..joined.clone() })
            });
        }
    }

    pub(super) fn pages_not_owner(&mut self, client: ClientId, topic: &str, call: CallId) {
        if self.pages.pages.contains_key(&client) {
            self.out.page(client, ToPage::NotOwner { topic: topic.to_owned(), call });
        }
    }

    pub(super) fn ring_wanted(
        &mut self,
        from: NodeId,
        topic: &str,
        fence: RouteFence,
        client: ClientId,
    ) {
        if self.pages.pages.get(&client).is_some_and(|page| page.topics.contains_key(topic)) {
            self.pages.ring_askers.insert(topic.to_owned(), from);
            self.out.page(client, ToPage::RingWanted { topic: topic.to_owned(), fence });
        }
    }

    fn every_page(&mut self, frame: &ToPage) {
        for client in self.pages.ids() {
            self.out.page(client, frame.clone());
        }
    }

    pub(super) fn pages_coordinator(&mut self) {
        self.every_page(&ToPage::Coordinator { node: self.coordinator, fence: self.known });
    }

    pub(super) fn pages_members(&mut self, members: &[Member], gone: &[NodeId], full: bool) {
        self.every_page(&ToPage::Members { members: members.to_vec(), gone: gone.to_vec(), full });
    }

    pub(super) fn pages_routes(&mut self, routes: &[Route], dropped: &[String], full: bool) {
        let (fence, routes, dropped) = (self.known, routes.to_vec(), dropped.to_vec());
        self.every_page(&ToPage::Routes { fence, routes, dropped, full });
    }

    pub(super) fn pages_transport(&mut self, error: Option<Error>, terminal: bool) {
        self.every_page(&ToPage::Transport { status: self.transport, error, terminal });
    }
}

/// Copies messages with their payloads from one packet to another; those whose slot is not there
/// are left out, which the reader sees as a hole.
fn copy_messages<P: Clone, F, G>(
    heads: &[MessageHead],
    from: &Packet<F, P>,
    to: &mut Packet<G, P>,
) -> Vec<MessageHead> {
    let copy = |head: &MessageHead| {
        let payload = from.payload(head.slot)?.clone();
        Some(MessageHead { slot: to.attach(payload), ..head.clone() })
    };
    heads.iter().filter_map(copy).collect()
}

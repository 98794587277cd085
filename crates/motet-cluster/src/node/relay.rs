//! Publications on their way to the node that sends them, and tokens on theirs to the transport.

use core::time::Duration;

use litemap::LiteMap;
use motet_protocol::transport::{PublishRequest, TransportOp};
use motet_protocol::{CallId, ClientId, Error, ErrorCode, Instant, NodeId};

use super::Node;
use super::api::{NodePacket, ToNodePacket};
use crate::frame::{Frame, PublishFrame, ToPage};
use crate::packet::Packet;
use crate::table::{RouteState, TransportStatus};

/// Publications that a node has under way at once; more are refused.
const PUBLISHES_MAX: usize = 1_000;
/// A page that does not answer a token request in this time has no token.
const TOKEN_WAIT: Duration = Duration::from_secs(10);
/// A page that says nothing at all so long after it was asked does not run.
const TOKEN_SILENCE: Duration = Duration::from_secs(2);
/// Answers are awaited a little longer than the caller has, so that its own timeout decides.
const ANSWER_SLACK: Duration = Duration::from_millis(500);

struct Relayed {
    client: ClientId,
    target: NodeId,
    until: Instant,
}

struct Sending {
    origin: NodeId,
    until: Instant,
}

struct TokenCall {
    page: ClientId,
    /// When the page must have said something, or is asked again.
    check_at: Instant,
    /// It has said something since it was asked last.
    heard: bool,
    until: Instant,
}

/// Calls under way.
#[derive(Default)]
pub(super) struct Relay {
    /// From this node's pages, to whichever node sends them.
    relayed: LiteMap<CallId, Relayed>,
    /// Through this node's own connection.
    sending: LiteMap<CallId, Sending>,
    /// Tokens asked for, by topic; `None` is the connection's.
    tokens: LiteMap<Option<String>, TokenCall>,
    /// A token is needed, and there is no page that would say a word.
    tokenless: bool,
}

impl Relay {
    /// Whether a publication needs this node's connection.
    pub(super) fn sends(&self) -> bool {
        !self.sending.is_empty()
    }

    pub(super) fn tokenless(&self) -> bool {
        self.tokenless
    }

    pub(super) fn heard_from_page(&mut self, client: ClientId) {
        self.tokenless = false;
        for (_, call) in self.tokens.iter_mut().filter(|(_, call)| call.page == client) {
            call.heard = true;
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let relayed = self.relayed.values().map(|call| call.until);
        let sending = self.sending.values().map(|call| call.until);
        let tokens = self.tokens.values().map(|call| call.check_at.min(call.until));
        relayed.chain(sending).chain(tokens).min()
    }
}

impl<P: Clone> Node<P> {
    pub(super) fn page_publishes(
        &mut self,
        client: ClientId,
        publish: &PublishFrame,
        packet: &ToNodePacket<P>,
        now: Instant,
    ) {
        let refusal = if self.relay.relayed.len() >= PUBLISHES_MAX {
            Some(ErrorCode::Backpressure)
        } else if packet.payload(publish.slot).is_none() {
            Some(ErrorCode::BadFrame)
        } else {
            None
        };
        if let Some(code) = refusal {
            return self.answer_page(client, publish.call, Some(code.into()), true);
        }
        let target = self.publisher_for(&publish.topic);
        let until = now + Duration::from_millis(publish.remaining_ms.into()) + ANSWER_SLACK;
        self.relay.relayed.insert(publish.call, Relayed { client, target, until });
        self.out.send_with(target, |to| Frame::Publish(copy_publish(publish, packet, to)));
    }

    /// The topic's owner, else a connected node, else this one (B12).
    fn publisher_for(&self, topic: &str) -> NodeId {
        let usable = |node: &NodeId| self.replica.members().contains_key(node);
        if let Some(route) = self.replica.route(topic)
            && !matches!(route.state, RouteState::Failed(_))
            && usable(&route.owner)
        {
            return route.owner;
        }
        if self.transport == TransportStatus::Connected {
            return self.me;
        }
        let connected = self
            .replica
            .members()
            .values()
            .find(|m| m.transport == TransportStatus::Connected && !m.leaving);
        connected.map_or(self.me, |member| member.node)
    }

    /// Sends a publication for a page of `origin`.
    pub(super) fn publish_for(
        &mut self,
        origin: NodeId,
        publish: &PublishFrame,
        packet: &NodePacket<P>,
        now: Instant,
    ) {
        let Some(payload) = packet.payload(publish.slot) else { return self.bad_frame() };
        if self.relay.sending.len() >= PUBLISHES_MAX {
            let error = Some(ErrorCode::ResourceBusy.into());
            return self.out.send(origin, Frame::Published { call: publish.call, error });
        }
        let remaining = Duration::from_millis(publish.remaining_ms.into());
        let until = now + remaining + ANSWER_SLACK;
        self.relay.sending.insert(publish.call, Sending { origin, until });
        self.hold_connection();
        self.out.transport(TransportOp::Publish(PublishRequest {
            call: publish.call,
            topic: publish.topic.clone(),
            payload: payload.clone(),
            idempotency_key: publish.idempotency_key.clone(),
            message_id: publish.message_id.clone(),
            timestamp_ms: publish.timestamp_ms,
            remaining,
        }));
    }

    /// This node's transport has the outcome.
    pub(super) fn published_here(&mut self, call: CallId, error: Option<Error>) {
        if let Some(sending) = self.relay.sending.remove(&call) {
            self.out.send(sending.origin, Frame::Published { call, error });
        }
    }

    /// The node that sent it has the outcome.
    pub(super) fn published_there(&mut self, from: NodeId, call: CallId, error: Option<Error>) {
        if self.relay.relayed.get(&call).is_some_and(|relayed| relayed.target == from)
            && let Some(relayed) = self.relay.relayed.remove(&call)
        {
            let idempotent = self.deduplicates(from);
            self.answer_page(relayed.client, call, error, idempotent);
        }
    }

    fn deduplicates(&self, target: NodeId) -> bool {
        target == self.me && self.features.idempotency
            || self.replica.members().get(&target).is_some_and(|member| member.idempotent)
    }

    fn answer_page(
        &mut self,
        client: ClientId,
        call: CallId,
        error: Option<Error>,
        idempotent: bool,
    ) {
        self.out.page(client, ToPage::Published { call, error, idempotent });
    }

    /// Nodes are gone: nobody will answer what was given to them. Called before their rows go.
    pub(super) fn relay_lost(&mut self, gone: &[NodeId]) {
        let lost = self.relay.relayed.iter().filter(|(_, relayed)| gone.contains(&relayed.target));
        let lost: Vec<_> =
            lost.map(|(call, relayed)| (*call, relayed.client, relayed.target)).collect();
        for (call, client, target) in lost {
            self.relay.relayed.remove(&call);
            let idempotent = self.deduplicates(target);
            self.answer_page(client, call, Some(ErrorCode::OutcomeUnknown.into()), idempotent);
        }
    }

    pub(super) fn relay_page_gone(&mut self, client: ClientId) {
        self.relay.relayed.retain(|_, relayed| relayed.client != client);
        let asked = self.relay.tokens.iter().filter(|(_, call)| call.page == client);
        let asked: Vec<_> = asked.map(|(topic, _)| topic.clone()).collect();
        for topic in asked {
            self.relay.tokens.remove(&topic);
            self.token_wanted(topic);
        }
    }

    pub(super) fn relay_tick(&mut self, now: Instant) {
        self.relay.relayed.retain(|_, call| call.until > now);
        self.relay.sending.retain(|_, call| call.until > now);
        let late = self.relay.tokens.iter().filter(|(_, call)| call.until <= now);
        let late: Vec<_> = late.map(|(topic, _)| topic.clone()).collect();
        for topic in late {
            self.token_given(topic, None);
        }
        let due = self.relay.tokens.iter().filter(|(_, call)| call.check_at <= now);
        let due: Vec<_> = due.map(|(topic, call)| (topic.clone(), call.page, call.heard)).collect();
        for (topic, page, heard) in due {
            if let Some(call) = self.relay.tokens.get_mut(&topic) {
                (call.heard, call.check_at) = (false, now + TOKEN_SILENCE);
            }
            if heard {
                // A token may take its time, or the page has stopped since: it says which.
                self.out.page(page, ToPage::TokenWanted { topic });
            } else {
                self.page_is_silent(topic, page);
            }
        }
    }

    /// The page that was asked does not run: another one is asked, and when none does, the
    /// coordinator gives this node's topics to one whose page does.
    fn page_is_silent(&mut self, topic: Option<String>, page: ClientId) {
        self.pages.note_silent(page, true);
        let other = self.pages.best().filter(|other| !self.pages.is_silent(*other));
        if other.is_some() {
            self.relay.tokens.remove(&topic);
            return self.token_wanted(topic);
        }
        self.relay.tokenless = true;
    }

    /// The transport needs a token: one page is asked, once at a time.
    pub(super) fn token_wanted(&mut self, topic: Option<String>) {
        if self.relay.tokens.contains_key(&topic) {
            return;
        }
        match self.pages.best() {
            Some(client) => {
                let now = self.clock.now();
                let (check_at, until) = (now + TOKEN_SILENCE, now + TOKEN_WAIT);
                let call = TokenCall { page: client, check_at, heard: false, until };
                self.relay.tokens.insert(topic.clone(), call);
                self.out.page(client, ToPage::TokenWanted { topic });
            }
            None => {
                self.relay.tokenless = true;
                self.out.transport(TransportOp::Token { topic, token: None });
            }
        }
    }

    pub(super) fn token_given(&mut self, topic: Option<String>, token: Option<String>) {
        self.relay.tokens.remove(&topic);
        self.out.transport(TransportOp::Token { topic, token });
    }
}

fn copy_publish<P: Clone>(
    publish: &PublishFrame,
    from: &ToNodePacket<P>,
    to: &mut Packet<Frame, P>,
) -> PublishFrame {
    let payload = from.payload(publish.slot).expect("the slot was checked").clone();
    PublishFrame { slot: to.attach(payload), ..publish.clone() }
}

//! The topics a node owns: their server subscriptions, their live messages, and those who join.

mod batch;
mod catch_up;
mod handoff;
mod ring;
mod topic;

use core::time::Duration;
use std::collections::VecDeque;

use litemap::LiteMap;
use motet_protocol::fault::planted;
use motet_protocol::transport::{HistoryPage, Publication, TransportOp};
use motet_protocol::{CallId, Error, Instant, NodeId, Position, Rng, RouteFence};

use crate::frame::{Frame, JoinFrame, MessageHead, ReportedRoute};
use crate::node::Out;
use crate::owner::batch::Batches;
pub(crate) use crate::owner::batch::head_of;
use crate::owner::catch_up::Fetch;
use crate::owner::topic::{Owned, Phase};
use crate::packet::Packet;
use crate::table::{Route, RouteState};

/// Joins that wait for one topic; more are refused (their pages ask again).
const JOINS_MAX: usize = 1_000;

/// What the owner part has to tell the coordinator: how far a route has come.
pub(crate) type Confirmation = (String, RouteFence, RouteState);

/// Sizes that bound what an owner keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnerLimits {
    pub(crate) ring_messages: usize,
    pub(crate) ring_bytes: usize,
    pub(crate) batch_window: Duration,
}

/// The owner part of a node.
pub(crate) struct Owner<P> {
    me: NodeId,
    limits: OwnerLimits,
    rng: Rng,
    topics: LiteMap<String, Owned<P>>,
    /// Given up, and not yet confirmed by the server; with who waits for that, and by which decision.
    given_up: LiteMap<String, Option<(NodeId, RouteFence)>>,
    fetches: LiteMap<CallId, Fetch>,
    batches: Batches<P>,
    confirmations: Vec<Confirmation>,
    /// How often a subscription has stood.
    subscriptions: u64,
    early_releases: VecDeque<(String, RouteFence, Option<Position>)>,
    /// Why the server refused the connection for good.
    refused: Option<Error>,
    /// After a stall nothing is broadcast until the cluster has confirmed the routes.
    paused: bool,
}

impl<P: Clone> Owner<P> {
    pub(crate) fn new(me: NodeId, limits: OwnerLimits, rng: Rng) -> Self {
        Self {
            me,
            limits,
            rng,
            topics: LiteMap::new(),
            given_up: LiteMap::new(),
            fetches: LiteMap::new(),
            batches: Batches::new(me, limits.batch_window),
            confirmations: Vec::new(),
            subscriptions: 0,
            early_releases: VecDeque::new(),
            refused: None,
            paused: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    pub(crate) fn owns(&self, topic: &str) -> bool {
        self.topics.contains_key(topic)
    }

    /// Whether it owns the topic and knows of no later decision that gives it away.
    pub(crate) fn keeps(&self, topic: &str) -> bool {
        self.topics.get(topic).is_some_and(|owned| !owned.is_leaving())
    }

    /// Whether it owns the topic under an older decision than this one.
    pub(crate) fn outranked_by(&self, route: &Route) -> bool {
        self.topics.get(&route.topic).is_some_and(|owned| owned.fence < route.fence)
    }

    /// Whether a server connection is wanted: a topic that only awaits its release needs none yet,
    /// one that was given up needs it until the server has confirmed that.
    pub(crate) fn wants_connection(&self) -> bool {
        !self.given_up.is_empty() || self.topics.values().any(|owned| !owned.is_waiting())
    }

    pub(crate) fn take_confirmations(&mut self) -> Vec<Confirmation> {
        core::mem::take(&mut self.confirmations)
    }

    /// What a new coordinator must know. Topics being given away are reported too: their fence is
    /// a floor, and the one they go to may be gone.
    pub(crate) fn report(&self) -> Vec<ReportedRoute> {
        let row = |(topic, owned): (&String, &Owned<P>)| ReportedRoute {
            topic: topic.clone(),
            owner: self.me,
            fence: owned.fence,
            state: Some(owned.route_state()),
        };
        self.topics.iter().map(row).collect()
    }

    fn subscribe(&mut self, topic: &str, since: Option<Position>, out: &mut Out<P>) {
        let Some(owned) = self.topics.get_mut(topic) else { return };
        // A refused transport keeps the wish and stays silent until a new token or a retry.
        owned.phase = self.refused.clone().map_or(Phase::Subscribing, Phase::Failed);
        let since = since.or_else(|| owned.recovery_start());
        let topic = topic.to_owned();
        self.confirm(&topic);
        out.transport(TransportOp::Open);
        out.transport(TransportOp::Subscribe { topic, since });
    }

    fn confirm(&mut self, topic: &str) {
        if let Some(owned) = self.topics.get(topic) {
            self.confirmations.push((topic.to_owned(), owned.fence, owned.route_state()));
        }
    }

    /// The server subscription stands, for the first time or again.
    pub(crate) fn subscribed(
        &mut self,
        topic: &str,
        position: Option<Position>,
        recovered: bool,
        publications: Vec<Publication<P>>,
        out: &mut Out<P>,
    ) {
        let Some(owned) = self.topics.get_mut(topic) else { return };
        if owned.is_waiting() || owned.is_leaving() {
            return;
        }
        self.subscriptions += 1;
        let fresh = owned.stand(self.subscriptions, position, recovered, publications);
        if !self.paused {
            for message in &fresh {
                self.batches.message(owned.shard, topic, owned.fence, owned.epoch(), message);
            }
        }
        self.confirm(topic);
        self.post_head(topic);
        self.serve(topic, out);
    }

    fn post_head(&mut self, topic: &str) {
        if let Some(owned) = self.topics.get(topic)
            && owned.phase == Phase::Live
            && !self.paused
            && let Some(position) = owned.position()
        {
            let (fence, history) = (owned.fence, owned.history);
            let frame = Frame::Head { topic: topic.to_owned(), fence, position, history };
            self.batches.frame(owned.shard, frame);
        }
    }

    /// What a page kept arrives: it takes the offsets below the first live one.
    pub(crate) fn ring_arrived(
        &mut self,
        topic: &str,
        fence: RouteFence,
        messages: &[MessageHead],
        packet: &Packet<Frame, P>,
    ) {
        if let Some(owned) = self.topics.get_mut(topic)
            && owned.fence == fence
        {
            owned.seed_ring(messages, packet);
        }
    }

    /// A live message from the server.
    pub(crate) fn publication(&mut self, topic: &str, publication: Publication<P>) {
        let Some(owned) = self.topics.get_mut(topic) else { return };
        if let Some(message) = owned.append(publication)
            && !self.paused
        {
            self.batches.message(owned.shard, topic, owned.fence, owned.epoch(), &message);
        }
    }

    /// The server subscription is gone, asked for or not.
    pub(crate) fn unsubscribed(
        &mut self,
        topic: &str,
        error: Option<Error>,
        terminal: bool,
        out: &mut Out<P>,
    ) {
        self.given_up_at_server(topic, out);
        let Some(owned) = self.topics.get_mut(topic) else { return };
        match (&owned.phase, error) {
            (Phase::Releasing { .. }, _) => self.released_at_server(topic, out),
            (Phase::AwaitingRelease { .. } | Phase::Passing { .. }, _) | (_, None) => {}
            (_, Some(error)) => {
                owned.phase = if terminal { Phase::Failed(error) } else { Phase::Subscribing };
                self.confirm(topic);
            }
        }
    }

    /// The connection is lost; the transport subscribes again by itself unless it is for good.
    pub(crate) fn disconnected(&mut self, error: &Error, terminal: bool, out: &mut Out<P>) {
        self.refused = terminal.then(|| error.clone());
        self.all_given_up_at_server(out);
        let topics: Vec<_> = self.topics.keys().cloned().collect();
        for topic in topics {
            let Some(owned) = self.topics.get_mut(&topic) else { continue };
            match owned.phase {
                Phase::Releasing { .. } => self.released_at_server(&topic, out),
                Phase::AwaitingRelease { .. } | Phase::Passing { .. } | Phase::Failed(_) => {}
                Phase::Subscribing | Phase::Live => {
                    owned.phase =
                        if terminal { Phase::Failed(error.clone()) } else { Phase::Subscribing };
                    self.confirm(&topic);
                }
            }
        }
    }

    /// Whether the server has refused the connection for good.
    pub(crate) const fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// A connection is being tried, or stands: no refusal is in force.
    pub(crate) fn admitted(&mut self) {
        self.refused = None;
    }

    /// A page asks for its place.
    pub(crate) fn join(&mut self, node: NodeId, join: &JoinFrame, out: &mut Out<P>) {
        let topic = join.topic.clone();
        let refused = match self.topics.get_mut(&topic) {
            Some(owned) if !owned.is_leaving() => !owned.enqueue(node, join, JOINS_MAX),
            _ => true,
        };
        if refused {
            out.send(node, Frame::NotOwner { topic, client: join.client, call: join.call });
        } else {
            if join.position.is_some() {
                self.name_recovery_start(&topic, out);
            }
            self.serve(&topic, out);
        }
    }

    /// Pages say what they miss while the connection is still being made: with that the server
    /// sends it together with the subscription, and not in answer to one more question.
    fn name_recovery_start(&mut self, topic: &str, out: &mut Out<P>) {
        if let Some(owned) = self.topics.get(topic)
            && owned.phase == Phase::Subscribing
            && owned.position().is_none()
        {
            let (topic, since) = (topic.to_owned(), owned.recovery_start());
            out.transport(TransportOp::Subscribe { topic, since });
        }
    }

    fn refuse_joins(&mut self, topic: &str, out: &mut Out<P>) {
        let Some(owned) = self.topics.get_mut(topic) else { return };
        for waiting in core::mem::take(&mut owned.joins) {
            let (client, call) = (waiting.join.client, waiting.join.call);
            out.send(waiting.node, Frame::NotOwner { topic: topic.to_owned(), client, call });
        }
    }

    /// Answers who can be answered and fetches for the others.
    fn serve(&mut self, topic: &str, out: &mut Out<P>) {
        let Some(owned) = self.topics.get_mut(topic) else { return };
        if self.paused || owned.phase != Phase::Live {
            return;
        }
        owned.ask_for_ring(topic, out);
        owned.answer_from_ring(topic, out);
        if owned.fetch.is_none()
            && let Some((fetch, request)) = owned.next_fetch(topic, &mut self.rng)
        {
            owned.fetch = Some(request.call);
            self.fetches.insert(request.call, fetch);
            out.transport(TransportOp::History(request));
        }
    }

    /// A page of history, or why there is none.
    pub(crate) fn history(
        &mut self,
        call: CallId,
        result: Result<HistoryPage<P>, Error>,
        out: &mut Out<P>,
    ) {
        let Some(fetch) = self.fetches.remove(&call) else { return };
        let topic = fetch.topic.clone();
        let Some(owned) = self.topics.get_mut(&topic) else { return };
        if owned.fetch != Some(call) {
            return;
        }
        owned.fetch = None;
        owned.fetched(&fetch, result, out);
        self.serve(&topic, out);
    }

    /// After a stall: broadcast nothing more, not even what is waiting.
    pub(crate) fn pause(&mut self) {
        if !planted("broadcast-while-revalidating") {
            self.paused = true;
            self.batches.discard();
        }
    }

    /// The routes stand: say where the topics are, so that pages that missed something ask.
    pub(crate) fn resume(&mut self, out: &mut Out<P>) {
        if !core::mem::take(&mut self.paused) {
            return;
        }
        let topics: Vec<_> = self.topics.keys().cloned().collect();
        for topic in topics {
            self.post_head(&topic);
            self.serve(&topic, out);
        }
    }

    pub(crate) fn post_due(&mut self, now: Instant, out: &mut Out<P>) {
        while let Some((shard, packet)) = self.batches.due(now) {
            out.data(shard, packet);
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.batches.next_timeout()
    }
}

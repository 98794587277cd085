//! What a client shows of itself. Reading changes nothing.

use core::time::Duration;

use motet_protocol::{Fence, Instant, NodeId, Position};

use super::Client;
use super::api::{ClientIdentity, ClientStatus, HandlerId, PendingPublish, SubscriptionState};
use super::replica::{KnownMember, KnownRoute};
use super::topic::Topic;

/// What happened since the client was made. Counts only grow, but for those
/// that are of now or of the present node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Messages handed to handlers.
    pub delivered: u64,
    /// Messages dropped because their position was passed.
    pub repeats: u64,
    /// Messages dropped because their id was seen before.
    pub id_repeats: u64,
    /// Gaps told.
    pub gaps: u64,
    /// Questions sent to owners.
    pub joins: u64,
    /// Frames dropped because they were malformed, foreign or not allowed for their sender.
    pub bad_frames: u64,
    /// The same of the page's present node, as it told last.
    pub node_bad_frames: u64,
    /// Frames dropped because something newer was known.
    pub stale_frames: u64,
    /// Publications settled.
    pub settled: u64,
    /// Answers to publications that had settled.
    pub late_publish_answers: u64,
    /// Nodes started after the first.
    pub node_restarts: u64,
    /// Payload bytes kept for late handlers, now.
    pub ring_bytes: u64,
}

impl ClientCounters {
    pub(super) const ZERO: Self = Self {
        delivered: 0,
        repeats: 0,
        id_repeats: 0,
        gaps: 0,
        joins: 0,
        bad_frames: 0,
        node_bad_frames: 0,
        stale_frames: 0,
        settled: 0,
        late_publish_answers: 0,
        node_restarts: 0,
        ring_bytes: 0,
    };
}

/// What a topic is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicPhase {
    /// The owner has not answered yet.
    Joining,
    /// Messages are delivered as they come.
    Live,
    /// Something is missing, or may be, and is being asked for.
    CatchingUp,
}

/// A subscribed topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionView<'a> {
    /// The topic.
    pub topic: &'a str,
    /// What the application was told.
    pub state: &'a SubscriptionState,
    /// What it is doing.
    pub phase: TopicPhase,
    /// The last message delivered or covered by a gap.
    pub position: Option<&'a Position>,
    /// Its handlers; none while it lingers.
    pub handlers: usize,
    /// Messages held behind a hole.
    pub held: usize,
    /// Messages kept for late handlers.
    pub kept: usize,
}

fn view<P: Clone>(topic: &Topic<P>) -> SubscriptionView<'_> {
    SubscriptionView {
        topic: &topic.name,
        state: topic.state(),
        phase: match topic.position {
            None => TopicPhase::Joining,
            Some(_) if topic.is_live() => TopicPhase::Live,
            Some(_) => TopicPhase::CatchingUp,
        },
        position: topic.position.as_ref(),
        handlers: topic.handlers.len(),
        held: topic.held.len(),
        kept: topic.ring.len(),
    }
}

impl<P: Clone> Client<P> {
    /// The page and its place in the cluster.
    #[must_use]
    pub const fn identity(&self) -> ClientIdentity {
        self.env.identity
    }

    /// The client's state, as it was told last.
    #[must_use]
    pub const fn status(&self) -> &ClientStatus {
        &self.status
    }

    /// The coordinator, as the page's node knows it.
    #[must_use]
    pub const fn coordinator(&self) -> Option<NodeId> {
        self.coordinator
    }

    /// The highest fence the page's node has told.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        self.replica.fence()
    }

    /// Subscribed topics, by name.
    pub fn subscriptions(&self) -> impl Iterator<Item = SubscriptionView<'_>> {
        self.topics.values().map(view)
    }

    /// One subscribed topic.
    #[must_use]
    pub fn subscription(&self, topic: &str) -> Option<SubscriptionView<'_>> {
        self.topics.get(topic).map(view)
    }

    /// The handlers of a topic, in the order in which they came.
    pub fn handlers(&self, topic: &str) -> impl Iterator<Item = HandlerId> {
        self.topics.get(topic).into_iter().flat_map(|topic| topic.handlers.iter().map(|h| h.id))
    }

    /// The cluster's members, in the order of their registration.
    #[must_use]
    pub fn members(&self) -> &[KnownMember] {
        self.replica.members()
    }

    /// How long ago the page's node heard of a member, as far as it has told. `now` is the driver's
    /// monotonic clock.
    #[must_use]
    pub fn silence_of(&self, known: &KnownMember, now: Instant) -> Option<Duration> {
        let mut clock = self.clock;
        clock.advance(now, self.next_timeout());
        known.silence_until(clock.now())
    }

    /// The routes known, by topic.
    pub fn routes(&self) -> impl Iterator<Item = &KnownRoute> {
        self.replica.routes()
    }

    /// Publications that wait, by topic, in the order in which they will be sent.
    #[must_use]
    pub fn pending_publishes(&self) -> Vec<PendingPublish> {
        self.publications.pending(self.env.now)
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> ClientCounters {
        ClientCounters { ring_bytes: self.env.ring_bytes as u64, ..self.env.counters }
    }
}

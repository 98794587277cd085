//! One owned topic.

use motet_protocol::transport::Publication;
use motet_protocol::{CallId, Error, NodeId, Offset, Position, RouteFence, StreamEpoch};

use super::OwnerLimits;
use super::ring::Ring;
use crate::frame::{Frame, GapReason, JoinFrame, MessageHead};
use crate::node::Out;
use crate::packet::Packet;
use crate::table::{Route, RouteState};

/// Where an owned topic stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// `from` still holds the server subscription.
    AwaitingRelease { from: NodeId },
    /// Given away again while `from` still holds the server subscription: its release is passed on.
    Passing { from: NodeId, to: NodeId, fence: RouteFence },
    /// The transport was asked.
    Subscribing,
    /// The server subscription stands.
    Live,
    /// The transport was asked to unsubscribe, then the topic goes to `to`.
    Releasing { to: NodeId, fence: RouteFence },
    /// The server refused it for good.
    Failed(Error),
}

/// A page's question that is not answered yet.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) node: NodeId,
    pub(super) join: JoinFrame,
    /// It waited already when the question on its way was put: the answer is for it too. One that
    /// joined later may want more than was asked for.
    pub(super) asked: bool,
    /// History was asked for its replay; what there is must do.
    pub(super) tail_fetched: bool,
    /// The server was asked which stream is the present one, because the page knows another: the
    /// connection may be dead without a word, and the page be right.
    pub(super) stream_asked: bool,
    /// Why history before its position cannot be had.
    pub(super) lost: Option<GapReason>,
}

pub(super) struct Owned<P> {
    pub(super) fence: RouteFence,
    pub(super) shard: u8,
    pub(super) phase: Phase,
    pub(super) ring: Ring<P>,
    pub(super) history: bool,
    pub(super) joins: Vec<Waiting>,
    pub(super) fetch: Option<CallId>,
    /// History requests in a row that brought no answer.
    pub(super) fetch_failures: u32,
    /// A page was asked for what it kept of the messages before this stream.
    ring_asked: bool,
    top: Option<Position>,
    /// Number of the subscription that stood last.
    subscription: u64,
    ring_messages: usize,
}

impl<P: Clone> Owned<P> {
    pub(super) fn new(fence: RouteFence, shard: u8, limits: OwnerLimits) -> Self {
        Self {
            fence,
            shard,
            phase: Phase::Subscribing,
            ring: Ring::new(limits.ring_messages, limits.ring_bytes),
            history: false,
            joins: Vec::new(),
            fetch: None,
            fetch_failures: 0,
            ring_asked: false,
            top: None,
            subscription: 0,
            ring_messages: limits.ring_messages,
        }
    }

    pub(super) fn route_state(&self) -> RouteState {
        match &self.phase {
            Phase::AwaitingRelease { .. } | Phase::Passing { .. } | Phase::Subscribing => {
                RouteState::Subscribing
            }
            Phase::Live | Phase::Releasing { .. } => RouteState::Subscribed,
            Phase::Failed(error) => RouteState::Failed(error.clone()),
        }
    }

    /// Nothing was asked of the server yet.
    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::AwaitingRelease { .. } | Phase::Passing { .. })
    }

    /// On its way to another owner.
    pub(super) const fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Releasing { .. } | Phase::Passing { .. })
    }

    /// Whether a handoff that this node is part of goes on although the topic was decided anew: the
    /// next owner waits for somebody who waits for this node.
    pub(super) fn goes_on(&self, route: &Route) -> bool {
        match self.phase {
            Phase::Releasing { .. } => true,
            Phase::Passing { .. } => route.handoff_from.is_some(),
            _ => false,
        }
    }

    pub(super) fn position(&self) -> Option<Position> {
        self.top.clone()
    }

    /// The position, when it means something to another owner.
    pub(super) fn history_position(&self) -> Option<Position> {
        self.top.clone().filter(|_| self.history)
    }

    /// The stream epoch of a topic that has stood at least once.
    pub(super) fn epoch(&self) -> &StreamEpoch {
        &self.top.as_ref().expect("messages come only after the subscription stood").epoch
    }

    /// Where the server should recover from: the lowest position a waiting page named.
    pub(super) fn recovery_start(&self) -> Option<Position> {
        let own = self.history_position();
        let named = self.joins.iter().filter_map(|waiting| waiting.join.position.clone());
        own.or_else(|| named.min_by_key(|position| position.offset))
    }

    /// Takes a page's question; a newer one of the same page replaces the older.
    pub(super) fn enqueue(&mut self, node: NodeId, join: &JoinFrame, joins_max: usize) -> bool {
        self.joins.retain(|waiting| waiting.join.client != join.client);
        if self.joins.len() >= joins_max {
            return false;
        }
        let mut join = join.clone();
        join.replay = join.replay.min(u32::try_from(self.ring_messages).unwrap_or(u32::MAX));
        self.joins.push(Waiting {
            node,
            join,
            asked: false,
            tail_fetched: false,
            stream_asked: false,
            lost: None,
        });
        true
    }

    /// The subscription stands at `position`. Returns the messages that continue what pages have:
    /// they are broadcast; whatever else was missed, pages ask for.
    /// `number` is the owner's own count of subscriptions: no stream is counted twice under it.
    pub(super) fn stand(
        &mut self,
        number: u64,
        position: Option<Position>,
        recovered: bool,
        publications: Vec<Publication<P>>,
    ) -> Vec<Publication<P>> {
        self.phase = Phase::Live;
        self.history = position.is_some();
        self.subscription = number;
        let new_top = position.unwrap_or_else(|| self.counted_position());
        let continues = self.history
            && recovered
            && self.top.as_ref().is_some_and(|top| {
                top.epoch == new_top.epoch
                    && publications.first().map_or(new_top.offset, |first| first.offset - 1)
                        <= top.offset
            });
        let old_top = self.top.replace(new_top).map_or(0, |top| top.offset);
        if !continues {
            self.ring.clear();
            self.ring_asked = false;
        }
        let fresh: Vec<_> =
            publications.into_iter().filter(|m| !continues || m.offset > old_top).collect();
        fresh.iter().cloned().for_each(|message| self.ring.push(message));
        let top = self.top.as_ref().map_or(0, |top| top.offset);
        if !self.ring.ends_at(top) {
            self.ring.clear();
        }
        if continues { fresh } else { Vec::new() }
    }

    /// Without history the owner counts: each subscription is a stream of its own. Counting starts
    /// above a full ring, so that messages pages kept can take the offsets below.
    fn counted_position(&self) -> Position {
        let mut text = String::from("~");
        for number in [
            self.fence.fence.incarnation,
            self.fence.fence.epoch,
            self.fence.generation.get(),
            self.subscription,
        ] {
            text.push_str(&NodeId::from_bits(number).to_hex());
        }
        Position::new(StreamEpoch::new(text), self.ring_messages as Offset)
    }

    /// Whether `epoch` was counted by this owner: then only the connection was lost.
    pub(super) fn counted_here(&self, epoch: &StreamEpoch) -> bool {
        let own = self.counted_position();
        let prefix = own.epoch.as_str().len() - 16;
        epoch.as_str().get(..prefix) == own.epoch.as_str().get(..prefix)
    }

    /// Appends a live message; `None` when it is a repeat or comes while the topic does not stand.
    pub(super) fn append(&mut self, mut message: Publication<P>) -> Option<Publication<P>> {
        let top = self.top.as_mut().filter(|_| self.phase == Phase::Live)?;
        if !self.history {
            message.offset = top.offset + 1;
        } else if message.offset <= top.offset {
            return None;
        }
        top.offset = message.offset;
        self.ring.push(message.clone());
        Some(message)
    }

    /// Without server history, what a page kept of an earlier stream serves late joiners. It is
    /// asked before its answer takes it to the new stream.
    pub(super) fn ask_for_ring(&mut self, topic: &str, out: &mut Out<P>) {
        if self.history || self.ring_asked {
            return;
        }
        let Some(best) = self.furthest_of_earlier_streams() else { return };
        let (topic, client, fence) = (topic.to_owned(), best.join.client, self.fence);
        out.send(best.node, Frame::RingWanted { topic, fence, client });
        self.ring_asked = true;
    }

    /// Of the pages that wait, the one that has seen most. Counted streams are named so that a later
    /// one compares greater; offsets say something only within one.
    fn furthest_of_earlier_streams(&self) -> Option<&Waiting> {
        let at = |waiting: &&Waiting| {
            let at = waiting.join.position.as_ref()?;
            Some((at.epoch.as_str().to_owned(), at.offset))
        };
        let now = self.epoch();
        let earlier = self
            .joins
            .iter()
            .filter(|waiting| waiting.join.position.as_ref().is_some_and(|at| at.epoch != *now));
        earlier.max_by_key(at)
    }

    pub(super) fn seed_ring(&mut self, heads: &[MessageHead], packet: &Packet<Frame, P>) {
        if self.history || self.phase != Phase::Live {
            return;
        }
        // Who has kept nothing leaves the question to the next one.
        self.ring_asked = !heads.is_empty();
        let base = self.ring_messages as Offset;
        let newest = &heads[heads.len().saturating_sub(self.ring_messages)..];
        let first = base + 1 - newest.len() as Offset;
        let kept = newest.iter().zip(first..).filter_map(|(head, offset)| {
            Some(Publication {
                offset,
                message_id: head.message_id.clone(),
                timestamp_ms: head.timestamp_ms,
                size: head.size,
                payload: packet.payload(head.slot)?.clone(),
            })
        });
        let kept = kept.collect();
        let top = self.top.as_ref().map_or(base, |top| top.offset);
        self.ring.prepend(kept, top);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use motet_protocol::{ClientId, Fence, Generation};

    use super::*;

    #[test]
    fn of_the_pages_that_wait_the_one_in_the_latest_stream_has_seen_most() {
        let limits =
            OwnerLimits { ring_messages: 100, ring_bytes: 1_000, batch_window: Duration::ZERO };
        let fence = RouteFence { fence: Fence::default(), generation: Generation::FIRST };
        let mut owned: Owned<u64> = Owned::new(fence, 0, limits);
        owned.stand(1, None, false, Vec::new());
        let present = owned.epoch().as_str().to_owned();
        let places = [("~1", 900), ("~2", 120), ("~2", 130), ("~2", 110), (&present, 950)];
        for (n, (epoch, offset)) in (1..).zip(places) {
            let (client, call) = (ClientId::from_bits(n), CallId::from_bits(n));
            let position = Some(Position::new(StreamEpoch::new(epoch), offset));
            let join = JoinFrame { topic: "t".into(), client, call, position, replay: 0 };
            assert!(owned.enqueue(NodeId::from_bits(n), &join, 10));
        }
        let best = owned.furthest_of_earlier_streams().map(|waiting| waiting.join.client);
        assert_eq!(best, Some(ClientId::from_bits(3)));
    }
}

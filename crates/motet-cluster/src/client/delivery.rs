//! What reaches a topic, and what of it reaches the handlers: in order, nothing twice, and every
//! hole either filled or told.

use motet_protocol::fault::planted;
use motet_protocol::{NodeId, Offset, Position, RouteFence, StreamEpoch};

use super::api::{ClientOutput, Gap, SubscriptionState};
use super::outbox::Env;
use super::ring::Message;
use super::topic::Topic;
use crate::frame::{GapReason, JoinedFrame, MessageHead};

/// Answers of a lower fence than Data named, after which the answering owner is believed: nothing
/// but a foreign frame can have named the higher one.
const STALE_ANSWERS_MAX: u32 = 5;

/// Resolves the payloads of a frame. None when the frame is not well formed: the offsets must be
/// ascending without holes and every slot filled.
pub(super) fn messages<P: Clone>(
    heads: Vec<MessageHead>,
    payloads: &[P],
) -> Option<Vec<Message<P>>> {
    let mut previous: Option<Offset> = None;
    let mut messages = Vec::with_capacity(heads.len());
    for head in heads {
        let follows = previous.is_none_or(|offset| offset.checked_add(1) == Some(head.offset));
        if !follows || head.offset == 0 {
            return None;
        }
        previous = Some(head.offset);
        messages.push(Message {
            offset: head.offset,
            size: head.size,
            message_id: head.message_id,
            timestamp_ms: head.timestamp_ms,
            payload: payloads.get(head.slot as usize)?.clone(),
        });
    }
    Some(messages)
}

impl<P: Clone> Topic<P> {
    /// Live messages from the data channel.
    pub(super) fn on_data(
        &mut self,
        env: &mut Env<P>,
        from: NodeId,
        fence: RouteFence,
        epoch: &StreamEpoch,
        messages: Vec<Message<P>>,
    ) {
        if planted("ignore-route-fence-on-data") && self.fence.is_some_and(|known| fence < known) {
            let before = messages.first().map(|first| first.offset - 1);
            self.position = before.map(|offset| Position::new(epoch.clone(), offset));
        }
        if !self.admit(env, from, fence, epoch) {
            return;
        }
        for message in messages {
            match &self.position {
                Some(at) if at.epoch == *epoch && message.offset <= at.offset => {
                    env.counters.repeats += 1;
                    if planted("deliver-repeats") {
                        self.deliver(env, message, None);
                    }
                }
                Some(at)
                    if at.epoch == *epoch
                        && (message.offset == at.offset + 1 || planted("skip-hole-check")) =>
                {
                    self.deliver(env, message, None);
                }
                _ => {
                    env.counters.repeats += u64::from(!self.held.hold(epoch, message));
                }
            }
        }
        self.settle(env);
        if self.held.len() > env.config.hole_messages {
            self.give_up(env);
        }
    }

    /// The owner says where the topic stands.
    pub(super) fn on_head(
        &mut self,
        env: &mut Env<P>,
        from: NodeId,
        fence: RouteFence,
        position: Position,
        history: bool,
    ) {
        if !self.admit(env, from, fence, &position.epoch) {
            return;
        }
        self.history = history;
        self.ahead = Some(position);
        self.ahead_asked = false;
        self.settle(env);
    }

    /// Whether a frame of the data channel counts: of the present owner, or of a newer decision,
    /// which is then adopted.
    fn admit(
        &mut self,
        env: &mut Env<P>,
        from: NodeId,
        fence: RouteFence,
        epoch: &StreamEpoch,
    ) -> bool {
        let checked = !planted("ignore-route-fence-on-data");
        if checked && self.fence.is_some_and(|known| fence < known) {
            env.counters.stale_frames += 1;
            if self.told == Some((fence, from)) {
                // The owner that the node names contradicts what Data has named.
                self.doubt(env);
            }
            return false;
        }
        if checked && self.fence == Some(fence) && self.owner.is_some_and(|owner| owner != from) {
            env.counters.bad_frames += 1;
            return false;
        }
        if self.fence != Some(fence) {
            self.fence = Some(fence);
            self.owner = Some(from);
        }
        if self.left.as_ref() == Some(epoch) {
            // A straggler, posted before the epoch changed; should the server have gone back to
            // it, the owner's answer says so.
            env.counters.stale_frames += 1;
            self.doubt(env);
            return false;
        }
        true
    }

    /// The owner's answer. `messages` are the resolved ones of `frame`.
    pub(super) fn on_joined(
        &mut self,
        env: &mut Env<P>,
        frame: &JoinedFrame,
        messages: Vec<Message<P>>,
    ) {
        if !self.awaits(frame.call) {
            env.counters.stale_frames += 1;
            return;
        }
        let refused = self.join.map_or(0, |join| join.refused);
        let stale = self.fence.is_some_and(|known| frame.fence < known);
        if stale && refused < STALE_ANSWERS_MAX {
            env.counters.stale_frames += 1;
            self.join_refused(env);
            return;
        }
        let ends = messages.last().is_none_or(|last| last.offset == frame.position.offset);
        if !ends || frame.replayed as usize > messages.len() {
            env.counters.bad_frames += 1;
            self.join_refused(env);
            return;
        }
        if self.fence != Some(frame.fence) {
            self.fence = Some(frame.fence);
            self.owner = self.told.filter(|told| told.0 == frame.fence).map(|told| told.1);
        }
        self.history = frame.history;
        let was = self.position.clone();
        let whole = self.place(env, frame, messages.len());
        self.accept(env, frame, messages);
        if was.is_none()
            && let Some(position) = self.position.clone()
        {
            self.set_state(env, SubscriptionState::Ready(position));
        }
        if whole && !frame.more {
            // What was known when the question was asked and is of another epoch than the answer
            // is older than the answer.
            self.held.drop_asked_but(&frame.position.epoch);
            if self.ahead_asked {
                self.ahead = self.ahead.take().filter(|at| at.epoch == frame.position.epoch);
            }
        }
        self.deliver_held(env);
        let progress = self.position != was;
        if progress {
            // What is still missing has its full time again.
            self.hole_since = None;
        }
        if whole && frame.more {
            self.join_goes_on(env);
        } else if whole && (progress || !self.is_incomplete()) {
            self.end_join(env);
        } else {
            self.join_refused(env);
        }
        self.settle(env);
    }

    /// Delivers what of an answer's messages is new.
    fn accept(&mut self, env: &mut Env<P>, frame: &JoinedFrame, messages: Vec<Message<P>>) {
        let replayed = if self.join.is_some_and(|join| join.first) { frame.replayed } else { 0 };
        for (index, message) in messages.into_iter().enumerate() {
            let at = self.position.as_ref().map_or(0, |position| position.offset);
            if message.offset <= at {
                env.counters.repeats += 1;
            } else if message.offset == at + 1 {
                let ago = u64::from(replayed).saturating_sub(index as u64);
                // Of a tail in several parts the newest are in the last one.
                let ago = if frame.more { ago.min(1) } else { ago };
                self.deliver(env, message, (ago > 0).then_some(ago));
            } else {
                self.held.hold(&frame.position.epoch, message);
            }
        }
    }

    /// Moves the position to where the answer's messages begin, telling what cannot be had. False
    /// when the answer does not reach back far enough and does not say why.
    fn place(&mut self, env: &mut Env<P>, frame: &JoinedFrame, messages: usize) -> bool {
        let before = frame.position.offset - messages as Offset;
        let start = Position::new(frame.position.epoch.clone(), before);
        let Some(at) = self.position.clone() else {
            self.position = Some(start);
            return true;
        };
        if at.epoch != start.epoch {
            let reason = frame.missing.unwrap_or(if frame.history {
                GapReason::StreamReset
            } else {
                GapReason::OwnerChanged
            });
            self.enter(env, start, reason);
            return true;
        }
        if before <= at.offset {
            return true;
        }
        match frame.missing {
            Some(reason) => {
                self.skip_to(env, start, reason);
                true
            }
            None => {
                self.ahead = Some(frame.position.clone());
                false
            }
        }
    }

    /// Goes on in another epoch; how much of the old one is missing is not known.
    fn enter(&mut self, env: &mut Env<P>, start: Position, reason: GapReason) {
        let Some(from) = self.position.take() else { return };
        if !planted("forget-gap-on-reset") {
            self.tell_gap(env, from.clone(), None, reason);
        }
        self.held.switch(&from.epoch, &start.epoch);
        self.left = Some(from.epoch);
        self.position = Some(start);
    }

    /// Goes on further ahead in the same epoch.
    fn skip_to(&mut self, env: &mut Env<P>, to: Position, reason: GapReason) {
        if let Some(from) = self.position.replace(to.clone()) {
            self.tell_gap(env, from, Some(to), reason);
        }
    }

    fn tell_gap(&self, env: &mut Env<P>, from: Position, to: Option<Position>, reason: GapReason) {
        env.counters.gaps += 1;
        let gap = Gap { from, to, reason };
        env.outbox.push(ClientOutput::Gap { topic: self.name.clone(), gap });
    }

    /// Delivers what is held and continues, and asks for what is still missing.
    fn settle(&mut self, env: &mut Env<P>) {
        self.deliver_held(env);
        if self.is_incomplete() {
            self.hole_since.get_or_insert(env.now);
            self.want_join(env);
            if let Some(end) = self.hole_end(env) {
                env.wake_at(end);
            }
        } else {
            self.hole_since = None;
            if self.position.is_some() {
                self.ahead = None;
            }
        }
        self.refresh_state(env);
    }

    /// Something is known to exist that was not delivered.
    fn is_incomplete(&self) -> bool {
        let behind = match (&self.position, &self.ahead) {
            (Some(at), Some(ahead)) => at.epoch != ahead.epoch || at.offset < ahead.offset,
            (None, _) | (_, None) => false,
        };
        behind || !self.held.is_empty()
    }

    fn deliver_held(&mut self, env: &mut Env<P>) {
        while let Some(position) = &self.position
            && let Some(message) = self.held.take_next(position)
        {
            self.deliver(env, message, None);
        }
    }

    /// Time is up for a hole, when it is.
    pub(super) fn expire_hole(&mut self, env: &mut Env<P>) {
        if self.hole_end(env).is_some_and(|end| env.now >= end) {
            self.give_up(env);
        }
    }

    /// Tells what is missing and goes on with what is held.
    fn give_up(&mut self, env: &mut Env<P>) {
        let reason = GapReason::RepairTimeout;
        while let Some(start) = self.resume_at() {
            match &self.position {
                None => {
                    // The promise begins here; what is held of earlier epochs lies before it.
                    self.held.keep_only(&start.epoch);
                    self.position = Some(start.clone());
                    self.set_state(env, SubscriptionState::Ready(start));
                }
                Some(at) if at.epoch == start.epoch => self.skip_to(env, start, reason),
                Some(_) => self.enter(env, start, reason),
            }
            self.deliver_held(env);
        }
        self.ahead = None;
        self.hole_since = None;
        // Going on was a guess, and only the owner's word is sure: asked from the new place.
        self.join_anew(env);
        self.refresh_state(env);
    }

    /// The next place from which there is something to go on with. What became of the place before
    /// it only the owner could say.
    fn resume_at(&self) -> Option<Position> {
        let Some(at) = &self.position else {
            let (epoch, first) = self.held.newest()?;
            return Some(Position::new(epoch, first - 1));
        };
        if let Some(first) = self.held.first_in(&at.epoch) {
            return Some(Position::new(at.epoch.clone(), first - 1));
        }
        if let Some((epoch, first)) = self.held.newest() {
            return Some(Position::new(epoch, first - 1));
        }
        let further = |ahead: &Position| ahead.epoch != at.epoch || ahead.offset > at.offset;
        self.ahead.clone().filter(further)
    }
}

//! A subscription's last step: judge the recovery, answer, hand over what came in the meantime.

use std::sync::Arc;

use motet_protocol::Instant;

use super::channel::{self, Channel};
use super::connect::whole_seconds;
use super::{Hub, SessionId};
use crate::broker::{BrokerOp, HistoryPage};
use crate::message::{
    ErrorReply, Publication, Push, PushEvent, Reply, ReplyBody, ServerErrorCode, StreamPosition,
    SubscribePush, SubscribeResult,
};
use crate::payload::Payload;
use crate::server::{
    ChannelName, Origin, RecoveryMode, Step, Subscribing, SubscriptionState, Waiting,
};

/// What a recovery came to.
struct Recovery<P> {
    recovered: bool,
    publications: Vec<Publication<P>>,
    /// The position that the reply names.
    position: StreamPosition,
}

/// What a subscription came to.
struct Outcome<P> {
    result: SubscribeResult<P>,
    /// The place from which deliveries go on, where it is watched.
    place: Option<StreamPosition>,
}

impl<P: Payload> Hub<P> {
    /// All answers are in; `page` is the stream where the subscription has a place in one.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        id: SessionId,
        channel: &Arc<str>,
        page: Option<HistoryPage<P>>,
    ) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(sub) = session.subs.get(channel) else { return };
        let SubscriptionState::Subscribing(subscribing) = &sub.state else { return };
        let origin = subscribing.origin;
        if origin == Origin::Connect {
            return self.settle_for_connect(now, id, channel, page);
        }
        let outcome = match self.conclude(now, id, channel, page, &mut 0) {
            Ok(outcome) => outcome,
            Err(code) => return self.subscription_failed(now, id, channel, code.into()),
        };
        if let Origin::Command(command) = origin {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.waiting = None;
            }
            self.answer(id, command, ReplyBody::Subscribe(Box::new(outcome.result)));
        } else {
            let push = SubscribePush {
                recoverable: outcome.result.recoverable,
                epoch: outcome.result.epoch,
                offset: outcome.result.offset,
                positioned: outcome.result.positioned,
                data: outcome.result.data,
            };
            let event = PushEvent::Subscribe(push);
            self.send(id, Reply::push(Push { channel: channel.to_string(), event }));
        }
        self.go_live(now, id, channel, outcome.place);
        self.next_command(now, id);
    }

    /// One server-side subscription of a connect command is ready. When all are, the reply goes
    /// out before anything of their channels.
    fn settle_for_connect(
        &mut self,
        now: Instant,
        id: SessionId,
        channel: &Arc<str>,
        page: Option<HistoryPage<P>>,
    ) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(Waiting { step: Step::ConnectSubscriptions(progress), .. }) = &mut session.waiting
        else {
            return;
        };
        progress.ready.push((channel.clone(), page));
        if progress.ready.len() < progress.wanted {
            return;
        }
        let Some(Waiting { step: Step::ConnectSubscriptions(mut progress), .. }) =
            session.waiting.take()
        else {
            return;
        };
        let mut places = Vec::with_capacity(progress.ready.len());
        // All their publications are in one reply.
        let mut bytes = 0;
        for (channel, page) in progress.ready.drain(..) {
            if let Ok(outcome) = self.conclude(now, id, &channel, page, &mut bytes) {
                progress.result.subs.insert(channel.to_string(), outcome.result);
                places.push((channel, outcome.place));
            }
        }
        self.connected(now, id, progress);
        for (channel, place) in places {
            self.go_live(now, id, &channel, place);
        }
        self.next_command(now, id);
    }

    /// Judges the recovery and makes the subscription live. It stays on its way when it is
    /// refused. `bytes` counts the publications of the reply.
    fn conclude(
        &mut self,
        now: Instant,
        id: SessionId,
        channel: &Arc<str>,
        page: Option<HistoryPage<P>>,
        bytes: &mut usize,
    ) -> Result<Outcome<P>, ServerErrorCode> {
        let bytes_max = self.options.recovery_bytes_max;
        let name = ChannelName::parse(channel);
        let namespace = self.options.namespaces.find(&name);
        let mode = namespace.map(|namespace| namespace.recovery_mode).unwrap_or_default();
        let grace = self.options.expired_sub_close_delay;
        let sub = self.sessions.get_mut(&id).and_then(|session| session.subs.get_mut(channel));
        let sub = sub.ok_or(ServerErrorCode::INTERNAL)?;
        let SubscriptionState::Subscribing(subscribing) = &sub.state else {
            return Err(ServerErrorCode::INTERNAL);
        };
        let mut result = SubscribeResult {
            recoverable: sub.traits.recoverable,
            positioned: sub.traits.positioned,
            data: sub.traits.data.clone(),
            expires: sub.closes_at.is_some(),
            ttl: sub.closes_at.map_or(0, |at| whole_seconds(at - now)),
            ..SubscribeResult::default()
        };
        let mut place = None;
        if let Some(page) = page {
            let top = page.top.clone();
            let recovery = recover(subscribing, mode, page).within(bytes, bytes_max, &top);
            place = Some(top);
            result.was_recovering = subscribing.recover_from.is_some();
            result.recovered = recovery.recovered;
            if result.was_recovering && !result.recovered && subscribing.reject_unrecovered {
                return Err(ServerErrorCode::UNRECOVERABLE_POSITION);
            }
            result.publications = recovery.publications;
            result.epoch = recovery.position.epoch;
            result.offset = recovery.position.offset;
        }
        sub.closes_at = sub.closes_at.map(|at| at + grace);
        sub.state = SubscriptionState::Live;
        Ok(Outcome { result, place })
    }

    /// Joins the channel's deliveries, presence and announcements.
    fn go_live(
        &mut self,
        now: Instant,
        id: SessionId,
        channel: &Arc<str>,
        place: Option<StreamPosition>,
    ) {
        let Some(session) = self.sessions.get(&id) else { return };
        let Some(sub) = session.subs.get(channel) else { return };
        let (presence, announced) = (sub.traits.presence, sub.traits.announced);
        let hears = sub.traits.hears_announcements;
        let info = session.channel_info(channel);
        let Some(entry) = self.channels.get_mut(channel) else { return };
        if hears {
            channel::insert(&mut entry.audience, id);
        }
        match place {
            None => channel::insert(&mut entry.live, id),
            Some(place) => {
                entry.positioned += 1;
                let kept_back = entry.arriving.remove(&id).unwrap_or_default();
                if !self.hand_over(id, channel, place, kept_back) {
                    return self.lost_place(id, channel);
                }
                self.arm_position_check(now, channel);
            }
        }
        if presence {
            self.tell(channel, BrokerOp::AddPresence(Box::new(info.clone())));
        }
        if announced {
            self.tell(channel, BrokerOp::Join(Box::new(info)));
        }
    }

    /// Sends what came while the subscription was made, from `place` on. False when something is
    /// missing.
    fn hand_over(
        &mut self,
        id: SessionId,
        channel: &Arc<str>,
        mut place: StreamPosition,
        kept_back: Vec<Publication<P>>,
    ) -> bool {
        for publication in kept_back {
            if publication.epoch != place.epoch || publication.offset > place.offset + 1 {
                return false;
            }
            if publication.offset == place.offset + 1 {
                place.offset += 1;
                let push = super::fanout::exact_push(channel, publication);
                self.send(id, Reply::push(push));
            }
        }
        let Some(entry) = self.channels.get_mut(channel) else { return false };
        join_at(entry, id, place)
    }

    /// A subscription on its way cannot be made.
    pub(super) fn subscription_failed(
        &mut self,
        now: Instant,
        id: SessionId,
        channel: &Arc<str>,
        error: ErrorReply,
    ) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(sub) = session.subs.get(channel) else { return };
        let SubscriptionState::Subscribing(subscribing) = &sub.state else { return };
        let origin = subscribing.origin;
        self.leave(id, channel);
        match origin {
            Origin::Command(command) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.waiting = None;
                }
                self.send(id, Reply::error(command, error));
                self.next_command(now, id);
            }
            Origin::Connect => self.connect_failed(now, id, error),
            Origin::Api => {}
        }
    }
}

impl<P: Payload> Recovery<P> {
    /// A recovery that would make its reply too large is none. One that comes first is part of it
    /// in any case: its page was read with the same limit.
    fn within(mut self, bytes: &mut usize, bytes_max: usize, top: &StreamPosition) -> Self {
        let sizes = self.publications.iter().map(|publication| publication.encoded_size_max(0));
        let size: usize = sizes.sum();
        if *bytes > 0 && *bytes + size > bytes_max {
            self = Self { recovered: false, publications: Vec::new(), position: top.clone() };
        } else {
            *bytes += size;
        }
        self
    }
}

/// Compares what was asked for with what the stream still has.
fn recover<P>(subscribing: &Subscribing, mode: RecoveryMode, page: HistoryPage<P>) -> Recovery<P> {
    let HistoryPage { publications, top } = page;
    let none = |top| Recovery { recovered: false, publications: Vec::new(), position: top };
    let Some(from) = &subscribing.recover_from else { return none(top) };
    let same_life = from.epoch.is_empty() || from.epoch == top.epoch;
    let first = publications.first().map(|p| p.offset);
    let last = publications.last().map(|p| p.offset);
    match mode {
        RecoveryMode::Stream => {
            let complete = match (first, last) {
                (Some(first), Some(last)) => first == from.offset + 1 && last == top.offset,
                _ => from.offset == top.offset,
            };
            if !same_life || !complete {
                return none(top);
            }
            // The client gets to the top by taking the publications one by one.
            let position = StreamPosition { offset: from.offset, epoch: top.epoch };
            Recovery { recovered: true, publications, position }
        }
        RecoveryMode::Cache => {
            let known = !from.epoch.is_empty() && same_life && from.offset == top.offset;
            if known {
                return Recovery { recovered: true, publications: Vec::new(), position: top };
            }
            let newest_is_there = top.offset > 0 && last == Some(top.offset);
            Recovery { recovered: newest_is_there, publications, position: top }
        }
    }
}

/// Puts a connection whose place is `place` among the channel's subscribers. False when this hub
/// was told more than the connection has been given.
fn join_at<P>(entry: &mut Channel<P>, id: SessionId, place: StreamPosition) -> bool {
    match &entry.top {
        Some(top) if top.epoch == place.epoch && top.offset > place.offset => return false,
        Some(top) if top.epoch == place.epoch && top.offset < place.offset => {
            entry.ahead.insert(id, place.offset);
            return true;
        }
        Some(top) if top.epoch == place.epoch => {}
        // Nobody is owed anything of another life: whoever was in it learns of the new one with
        // its first publication, or with the next position check.
        Some(_) if entry.positioned > 1 => {
            entry.ahead.insert(id, place.offset);
            return true;
        }
        _ => entry.top = Some(place),
    }
    channel::insert(&mut entry.live, id);
    true
}

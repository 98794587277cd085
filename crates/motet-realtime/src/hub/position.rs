//! Watched places in streams: the periodic check, and what happens when one is lost.

use core::time::Duration;
use std::sync::Arc;

use motet_protocol::Instant;

use super::timer::Timer;
use super::{Hub, SessionId, Waiter};
use crate::broker::{BrokerOp, HistoryQuery};
use crate::message::{
    DisconnectCode, Push, PushEvent, Reply, StreamPosition, Unsubscribe, UnsubscribeCode,
};
use crate::payload::Payload;
use crate::server::ChannelName;

/// How long a publication may be on its way from the broker before it counts as missed.
const IN_FLIGHT_MAX: Duration = Duration::from_secs(1);

impl<P: Payload> Hub<P> {
    /// The server no longer knows what a subscriber has: it starts anew.
    pub(super) fn lost_place(&mut self, id: SessionId, channel: &Arc<str>) {
        let server_side = self
            .sessions
            .get(&id)
            .and_then(|session| session.subs.get(channel))
            .is_some_and(|sub| sub.traits.server_side || !sub.is_live());
        if server_side {
            self.disconnect(id, DisconnectCode::INSUFFICIENT_STATE);
        } else {
            self.end_subscription(id, channel, UnsubscribeCode::INSUFFICIENT_STATE);
        }
    }

    /// Ends a subscription and tells the client why.
    pub(super) fn end_subscription(
        &mut self,
        id: SessionId,
        channel: &Arc<str>,
        code: UnsubscribeCode,
    ) {
        self.leave(id, channel);
        let event = PushEvent::Unsubscribe(code.into());
        self.send(id, Reply::push(Push { channel: channel.to_string(), event }));
    }

    /// A subscriber's encoding has no form for what the channel carries. Its other subscriptions
    /// are none the worse for it.
    pub(super) fn end_unfit(&mut self, id: SessionId, channel: &str) {
        let channel = self.channel_key(channel);
        let subscribed =
            self.sessions.get(&id).is_some_and(|session| session.is_subscribed(&channel));
        if subscribed {
            self.leave(id, &channel);
            let reason = "a payload is not JSON: connect with Protobuf".to_owned();
            let unsubscribe = Unsubscribe { code: UnsubscribeCode::SERVER, reason };
            let event = PushEvent::Unsubscribe(unsubscribe);
            self.send(id, Reply::push(Push { channel: channel.to_string(), event }));
            self.arm(id);
        }
    }

    pub(super) fn arm_position_check(&mut self, now: Instant, channel: &Arc<str>) {
        let due = now + self.options.channel_position_check_delay;
        let Some(entry) = self.channels.get_mut(channel) else { return };
        if entry.check.due.is_none() {
            entry.check.due = Some(due);
            self.timers.insert((due, Timer::Position(channel.clone())));
        }
    }

    pub(super) fn check_position(&mut self, channel: &Arc<str>) {
        let Some(entry) = self.channels.get_mut(channel) else { return };
        entry.check.due = None;
        if entry.positioned == 0 {
            return;
        }
        let Some(namespace) = self.options.namespaces.find(&ChannelName::parse(channel)) else {
            return;
        };
        let retention = namespace.retention(self.options.history_meta_ttl);
        let request = BrokerOp::History(HistoryQuery::POSITION, retention);
        self.ask(channel, request, Waiter::Position(channel.clone()));
    }

    /// Compares the broker's position with what this hub was told. What was missed at two looks is
    /// missed for good.
    pub(super) fn compare_position(
        &mut self,
        now: Instant,
        channel: &Arc<str>,
        top: Option<StreamPosition>,
    ) {
        let Some(entry) = self.channels.get_mut(channel) else { return };
        let reached = |wanted: &StreamPosition| {
            entry
                .top
                .as_ref()
                .is_some_and(|top| top.epoch == wanted.epoch && top.offset >= wanted.offset)
        };
        let missed = entry.check.suspect.take().is_some_and(|suspect| !reached(&suspect));
        let behind = top.filter(|top| !reached(top));
        let delay = if behind.is_some() && !missed {
            IN_FLIGHT_MAX
        } else {
            self.options.channel_position_check_delay
        };
        if missed {
            entry.top = None;
            self.watched_lost_place(channel);
        } else {
            entry.check.suspect = behind;
        }
        let Some(entry) = self.channels.get_mut(channel) else { return };
        if entry.positioned > 0 && entry.check.due.is_none() {
            entry.check.due = Some(now + delay);
            self.timers.insert((now + delay, Timer::Position(channel.clone())));
        }
    }
}

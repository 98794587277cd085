//! What is due when: pings, pongs, expiries, deadlines, position checks.

use std::sync::Arc;

use motet_protocol::Instant;

use super::{ApiCallId, Hub, Output, SessionId};
use crate::message::{DisconnectCode, Reply, ServerErrorCode, UnsubscribeCode};
use crate::payload::Payload;
use crate::server::{Phase, Step, SubscriptionState};

/// Whose timer it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Session(SessionId),
    Position(Arc<str>),
    Api(ApiCallId),
}

impl<P: Payload> Hub<P> {
    /// Keeps a session's one entry in the timers up to date.
    pub(super) fn arm(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let next = session.next_timeout();
        if next == session.armed {
            return;
        }
        if let Some(armed) = core::mem::replace(&mut session.armed, next) {
            self.timers.remove(&(armed, Timer::Session(id)));
        }
        if let Some(next) = next {
            self.timers.insert((next, Timer::Session(id)));
        }
    }

    pub(super) fn take_timeout(&mut self, now: Instant) {
        while self.timers.first().is_some_and(|(due, _)| *due <= now) {
            let Some((_, timer)) = self.timers.pop_first() else { return };
            match timer {
                Timer::Position(channel) => self.check_position(&channel),
                Timer::Api(call) => self.api_timed_out(call),
                Timer::Session(id) => {
                    if let Some(session) = self.sessions.get_mut(&id) {
                        session.armed = None;
                    }
                    self.session_due(now, id);
                    self.arm(id);
                }
            }
        }
    }

    fn session_due(&mut self, now: Instant, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let stale = match session.phase {
            Phase::Fresh { stale_at }
            | Phase::Connecting { stale_at }
            | Phase::Refused { stale_at } => stale_at <= now,
            Phase::Connected => false,
        };
        if stale {
            return self.disconnect(id, DisconnectCode::STALE);
        }
        if due(session.closes_at) {
            return self.disconnect(id, DisconnectCode::CONNECTION_EXPIRED);
        }
        if due(session.pong_due) {
            return self.disconnect(id, DisconnectCode::NO_PONG);
        }
        if due(session.next_ping) {
            self.ping(now, id);
        }
        self.subscriptions_due(now, id);
        let Some(session) = self.sessions.get(&id) else { return };
        if due(session.waiting.as_ref().map(|waiting| waiting.deadline)) {
            self.operation_timed_out(now, id);
        }
    }

    fn ping(&mut self, now: Instant, id: SessionId) {
        let (interval, timeout) = (self.options.ping_interval, self.options.pong_timeout);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.next_ping = Some(now + interval);
        if !timeout.is_zero() {
            session.pong_due = Some(now + timeout);
        }
        if session.frame_pings {
            self.outputs.push_back(Output::FramePing(id));
        } else {
            self.send(id, Reply::ping());
        }
    }

    pub(super) fn use_frame_pings(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.frame_pings = true;
        }
    }

    /// Unlike a message, a pong frame may come unasked (RFC 6455, 5.5.3).
    pub(super) fn take_frame_pong(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(&id).filter(|session| session.frame_pings) {
            session.pong_due = None;
            self.arm(id);
        }
    }

    pub(super) fn take_pong(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.pong_due.take().is_none() {
            self.disconnect_bad_request(id);
        }
    }

    fn subscriptions_due(&mut self, now: Instant, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        let due: Vec<_> = session
            .subs
            .iter()
            .filter(|(_, sub)| sub.next_timeout().is_some_and(|at| at <= now))
            .map(|(channel, sub)| (channel.clone(), sub.is_live(), sub.traits.server_side))
            .collect();
        for (channel, live, server_side) in due {
            match (live, server_side) {
                (false, _) => {
                    let error = ServerErrorCode::INTERNAL.into();
                    self.subscription_failed(now, id, &channel, error);
                }
                (true, false) => {
                    self.end_subscription(id, &channel, UnsubscribeCode::EXPIRED);
                }
                (true, true) => {
                    self.disconnect(id, DisconnectCode::SUBSCRIPTION_EXPIRED);
                }
            }
        }
    }

    /// The broker or the token check did not answer the session's current command in time.
    fn operation_timed_out(&mut self, now: Instant, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(waiting) = session.waiting.take() else { return };
        self.pending.remove(&waiting.op);
        let command = match waiting.step {
            Step::ConnectToken { command, .. }
            | Step::SubscribeToken { command, .. }
            | Step::RefreshToken { command }
            | Step::SubRefreshToken { command, .. }
            | Step::Publish { command }
            | Step::History { command, .. }
            | Step::Presence { command }
            | Step::PresenceStats { command } => command,
            Step::ConnectSubscriptions(progress) => {
                self.leave_all(id);
                progress.command
            }
            // The subscription has a deadline of its own and answers the command.
            step @ Step::Subscribe => {
                session.waiting = Some(crate::server::Waiting {
                    deadline: now + self.options.operation_timeout,
                    step,
                    ..waiting
                });
                return;
            }
        };
        self.refuse(id, command, ServerErrorCode::INTERNAL);
        self.next_command(now, id);
    }

    /// Whether a subscription still waits for this answer.
    pub(super) fn awaits(
        &self,
        id: SessionId,
        channel: &Arc<str>,
        op: crate::broker::OpId,
    ) -> bool {
        let sub = self.sessions.get(&id).and_then(|session| session.subs.get(channel));
        sub.is_some_and(|sub| match &sub.state {
            SubscriptionState::Subscribing(subscribing) => subscribing.op == op,
            SubscriptionState::Live => false,
        })
    }
}

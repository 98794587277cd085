//! Answers of the broker and of the token check find whoever waits for them.

use std::sync::Arc;

use motet_protocol::Instant;

use super::{Hub, SessionId, Waiter};
use crate::broker::{Answer, BrokerError, BrokerEvent, OpId};
use crate::message::{PresenceResult, PresenceStatsResult, PushEvent, ReplyBody, ServerErrorCode};
use crate::payload::Payload;
use crate::server::{Step, TokenClaims, TokenError};

impl<P: Payload> Hub<P> {
    pub(super) fn take_broker_event(&mut self, now: Instant, event: BrokerEvent<P>) {
        match event {
            BrokerEvent::Publication { channel, publication } => {
                self.deliver(&channel, *publication);
            }
            BrokerEvent::Join { channel, info } => self.announce(&channel, info, PushEvent::Join),
            BrokerEvent::Leave { channel, info } => {
                self.announce(&channel, info, PushEvent::Leave);
            }
            BrokerEvent::Answer(op, answer) => self.take_answer(now, op, answer),
        }
    }

    fn take_answer(&mut self, now: Instant, op: OpId, answer: Result<Answer<P>, BrokerError>) {
        let published = match &answer {
            Ok(Answer::Published(published)) => Some(published),
            _ => None,
        };
        self.report(op, published);
        match self.pending.remove(&op) {
            Some(Waiter::Command(id)) => self.command_answered(now, id, op, answer),
            Some(Waiter::Subscription(id, channel)) => {
                self.subscription_answered(now, id, &channel, op, answer);
            }
            Some(Waiter::Api(call, part)) => self.api_answered(call, part, answer),
            Some(Waiter::Position(channel)) => {
                let top = match answer {
                    Ok(Answer::History(page)) => Some(page.top),
                    _ => None,
                };
                self.compare_position(now, &channel, top);
            }
            None => {}
        }
    }

    fn subscription_answered(
        &mut self,
        now: Instant,
        id: SessionId,
        channel: &Arc<str>,
        op: OpId,
        answer: Result<Answer<P>, BrokerError>,
    ) {
        if !self.awaits(id, channel, op) {
            return;
        }
        match answer {
            Ok(Answer::History(page)) => self.settle(now, id, channel, Some(page)),
            Ok(_) => self.attached(now, id, channel),
            Err(_) => {
                self.subscription_failed(now, id, channel, ServerErrorCode::INTERNAL.into());
            }
        }
        self.arm(id);
    }

    /// The step of a session's current command, if it waits for this answer.
    fn take_step(&mut self, id: SessionId, op: OpId) -> Option<Step<P>> {
        let session = self.sessions.get_mut(&id)?;
        session.waiting.take_if(|waiting| waiting.op == op).map(|waiting| waiting.step)
    }

    fn command_answered(
        &mut self,
        now: Instant,
        id: SessionId,
        op: OpId,
        answer: Result<Answer<P>, BrokerError>,
    ) {
        let Some(step) = self.take_step(id, op) else { return };
        match (step, answer) {
            (Step::Publish { command }, answer) => {
                self.published(id, command, answer.map(|_| ()));
            }
            (Step::History { command, request }, Ok(Answer::History(page))) => {
                self.history_read(id, command, request.since.as_ref(), page);
            }
            (Step::Presence { command }, Ok(Answer::Presence(presence))) => {
                self.answer(id, command, ReplyBody::Presence(PresenceResult { presence }));
            }
            (
                Step::PresenceStats { command },
                Ok(Answer::PresenceStats { num_clients, num_users }),
            ) => {
                let stats = PresenceStatsResult { num_clients, num_users };
                self.answer(id, command, ReplyBody::PresenceStats(stats));
            }
            (
                Step::History { command, .. }
                | Step::Presence { command }
                | Step::PresenceStats { command },
                _,
            ) => self.refuse(id, command, ServerErrorCode::INTERNAL),
            _ => {}
        }
        self.next_command(now, id);
    }

    pub(super) fn take_verdict(
        &mut self,
        now: Instant,
        op: OpId,
        verdict: Result<TokenClaims<P>, TokenError>,
    ) {
        let Some(Waiter::Command(id)) = self.pending.remove(&op) else { return };
        let Some(step) = self.take_step(id, op) else { return };
        let connection = |verdict| match verdict {
            Ok(TokenClaims::Connection(claims)) => Ok(*claims),
            Ok(TokenClaims::Subscription(_)) => Err(TokenError::Invalid),
            Err(error) => Err(error),
        };
        let subscription = |verdict| match verdict {
            Ok(TokenClaims::Subscription(claims)) => Ok(*claims),
            Ok(TokenClaims::Connection(_)) => Err(TokenError::Invalid),
            Err(error) => Err(error),
        };
        match step {
            Step::ConnectToken { command, request } => {
                self.connect_verified(now, id, command, *request, connection(verdict));
            }
            Step::RefreshToken { command } => {
                self.refresh_verified(now, id, command, connection(verdict));
            }
            Step::SubscribeToken { command, request } => {
                self.subscribe_verified(now, id, command, &request, subscription(verdict));
            }
            Step::SubRefreshToken { command, channel } => {
                self.sub_refresh_verified(now, id, command, &channel, subscription(verdict));
            }
            _ => {}
        }
        self.next_command(now, id);
    }
}

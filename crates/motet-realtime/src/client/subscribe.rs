//! Subscribing, unsubscribing, and the races between the two.
//!
//! One rule keeps them apart: after an unsubscribe command nothing about its topic is sent before
//! the server has confirmed it. So a reply, a push or an error about an earlier subscription can
//! never be taken for one about the present subscription.

use motet_protocol::transport::TransportEvent;
use motet_protocol::{Error, ErrorCode, Instant, Position};

use super::call::Purpose;
use super::subscription::{Afterwards, Phase, Refresh, Subscription, hand_out_all};
use super::{Client, TopicTokens, refusal};
use crate::message::{
    ErrorReply, Request, ServerErrorCode, SubscribeRequest, SubscribeResult, Unsubscribe,
    UnsubscribeCode, UnsubscribeRequest, Verdict,
};
use crate::pattern::is_pattern;

impl<P: Clone> Client<P> {
    /// The node wants a topic.
    pub(super) fn want(&mut self, now: Instant, topic: String, since: Option<Position>) {
        if let Some(subscription) = self.topics.get_mut(&topic) {
            match &mut subscription.phase {
                Phase::Leaving { then: then @ Afterwards::Forget, .. } => {
                    *then = Afterwards::SubscribeAnew;
                    subscription.restart(since);
                }
                Phase::Waiting | Phase::AwaitingToken { .. } | Phase::BackingOff { .. }
                    if subscription.position.is_none() =>
                {
                    subscription.restart(since);
                }
                _ => {}
            }
            return;
        }
        if self.topics.len() >= self.config.topics_max {
            let error = Some(ErrorCode::Backpressure.into());
            return self.event(TransportEvent::Unsubscribed { topic, error, terminal: true });
        }
        let subscription = Subscription::new(since, self.config.backoff);
        self.topics.insert(topic.clone(), subscription);
        self.subscribe(now, &topic);
    }

    /// The node gives a topic up.
    pub(super) fn give_up(&mut self, now: Instant, topic: String) {
        let Some(phase) = self.topics.get(&topic).map(|subscription| subscription.phase) else {
            return self.gave_up(topic);
        };
        match phase {
            // Said once, when the server has confirmed it: only then is the topic free.
            Phase::Leaving { id, .. } => {
                if let Some(subscription) = self.topics.get_mut(&topic) {
                    subscription.phase = Phase::Leaving { id, then: Afterwards::Forget };
                }
            }
            Phase::Subscribing { id } if self.unsent(id) => {
                self.topics.remove(&topic);
                self.gave_up(topic);
            }
            Phase::Subscribing { .. } => self.leave(now, &topic, Afterwards::Forget),
            Phase::Live => self.leave(now, &topic, Afterwards::Forget),
            Phase::Waiting | Phase::AwaitingToken { .. } | Phase::BackingOff { .. } => {
                self.topics.remove(&topic);
                self.gave_up(topic);
            }
        }
    }

    fn gave_up(&mut self, topic: String) {
        self.event(TransportEvent::Unsubscribed { topic, error: None, terminal: true });
    }

    /// Takes back a command that was not handed to the socket yet.
    fn unsent(&mut self, id: u32) -> bool {
        let Some(at) = self.pending.iter().position(|command| command.id == id) else {
            return false;
        };
        self.pending.remove(at);
        self.calls.take(id);
        true
    }

    pub(super) fn leave(&mut self, now: Instant, topic: &str, then: Afterwards) {
        let request = UnsubscribeRequest { channel: topic.to_owned() };
        let purpose = Purpose::Unsubscribe(topic.to_owned());
        let id = self.send(now, purpose, Request::Unsubscribe(request));
        if let Some(subscription) = self.topics.get_mut(topic) {
            subscription.phase = Phase::Leaving { id, then };
            subscription.refresh = Refresh::None;
        }
    }

    /// Sends whatever waits for the connection.
    pub(super) fn subscribe_waiting(&mut self, now: Instant) {
        let waiting = self.topics.iter().filter(|(_, s)| s.phase == Phase::Waiting);
        let waiting: Vec<_> = waiting.map(|(topic, _)| topic.clone()).collect();
        for topic in waiting {
            self.subscribe(now, &topic);
        }
    }

    /// Subscribes as far as connection and token allow.
    pub(super) fn subscribe(&mut self, now: Instant, topic: &str) {
        let (talking, connected) = (self.is_talking(), self.is_connected());
        let Some(subscription) = self.topics.get_mut(topic) else { return };
        subscription.phase = Phase::Waiting;
        // Whether the server knows patterns is known only once it has answered the connect.
        if !talking || (is_pattern(topic) && !connected) {
            return;
        }
        if is_pattern(topic) && !self.features.wildcards {
            return self.refuse(topic, ErrorCode::WildcardUnsupported.into());
        }
        let token_needed = match self.config.topic_tokens {
            TopicTokens::Never => false,
            TopicTokens::Private => topic.starts_with('$'),
            TopicTokens::Always => true,
        };
        if subscription.token.is_none() && (token_needed || subscription.token_seen) {
            subscription.phase = Phase::AwaitingToken { until: now + self.config.token_timeout };
            self.watch_topic(topic);
            return self.event(TransportEvent::TokenWanted { topic: Some(topic.to_owned()) });
        }
        let recover = subscription.position.as_ref().filter(|_| subscription.recoverable);
        let request = SubscribeRequest {
            channel: topic.to_owned(),
            token: subscription.token.clone().unwrap_or_default(),
            recover: recover.is_some(),
            epoch: recover.map_or_else(String::new, |from| from.epoch.as_str().to_owned()),
            offset: recover.map_or(0, |from| from.offset),
            positioned: true,
            recoverable: true,
            ..SubscribeRequest::default()
        };
        subscription.recovering = request.recover;
        let purpose = Purpose::Subscribe(topic.to_owned());
        let id = self.send(now, purpose, Request::Subscribe(Box::new(request)));
        if let Some(subscription) = self.topics.get_mut(topic) {
            subscription.phase = Phase::Subscribing { id };
        }
    }

    /// The server confirms a subscription.
    pub(super) fn subscribed(
        &mut self,
        now: Instant,
        topic: String,
        id: u32,
        result: SubscribeResult<P>,
        bytes: u32,
    ) {
        let Some(subscription) = self.topics.get_mut(&topic) else { return };
        if subscription.phase != (Phase::Subscribing { id }) {
            return;
        }
        let recovered = subscription.stand(&result);
        subscription.retry.succeeded(now);
        if result.expires && result.ttl > 0 {
            subscription.refresh = Refresh::At(Self::expiry(now, result.ttl));
        }
        let position = subscription.position.clone();
        let publications = hand_out_all(result.publications, position.is_some(), bytes);
        self.watch_topic(&topic);
        self.event(TransportEvent::Subscribed { topic, position, recovered, publications });
    }

    /// The server refuses a subscription.
    pub(super) fn subscribe_refused(
        &mut self,
        now: Instant,
        topic: &str,
        id: u32,
        refusal: ErrorReply,
    ) {
        let Some(subscription) = self.topics.get_mut(topic) else { return };
        if subscription.phase != (Phase::Subscribing { id }) {
            return;
        }
        match refusal.code {
            // An unsubscribe of an earlier subscription got lost: make the server forget it.
            ServerErrorCode::ALREADY_SUBSCRIBED => {
                return self.leave(now, topic, Afterwards::Repair);
            }
            ServerErrorCode::UNRECOVERABLE_POSITION => {
                subscription.restart(None);
                return self.back_off(now, topic, refusal::subscribe(refusal));
            }
            ServerErrorCode::TOKEN_EXPIRED => subscription.token = None,
            _ => {}
        }
        let verdict = refusal.verdict();
        let error = refusal::subscribe(refusal);
        match verdict {
            Verdict::Retry => self.back_off(now, topic, error),
            Verdict::Terminal => self.refuse(topic, error),
        }
    }

    /// Forgets a topic that the server refuses for good.
    pub(super) fn refuse(&mut self, topic: &str, error: Error) {
        if self.topics.remove(topic).is_some() {
            let (topic, error) = (topic.to_owned(), Some(error));
            self.event(TransportEvent::Unsubscribed { topic, error, terminal: true });
        }
    }

    /// Tries a topic again after a moment, and says so.
    pub(super) fn back_off(&mut self, now: Instant, topic: &str, error: Error) {
        self.delay(now, topic);
        let (topic, error) = (topic.to_owned(), Some(error));
        self.event(TransportEvent::Unsubscribed { topic, error, terminal: false });
    }

    fn delay(&mut self, now: Instant, topic: &str) {
        if let Some(subscription) = self.topics.get_mut(topic) {
            let until = subscription.retry.after_failure(now, &mut self.rng);
            subscription.phase = Phase::BackingOff { until };
            subscription.refresh = Refresh::None;
            self.watch_topic(topic);
        }
    }

    /// The server confirms, or refuses, an unsubscribe: either way there is no subscription.
    pub(super) fn left(&mut self, now: Instant, topic: &str, left: u32) {
        let Some(subscription) = self.topics.get(topic) else { return };
        let Phase::Leaving { id, then } = subscription.phase else { return };
        if id != left {
            return;
        }
        match then {
            Afterwards::Forget => {
                self.topics.remove(topic);
                self.gave_up(topic.to_owned());
            }
            Afterwards::SubscribeAnew => {
                self.gave_up(topic.to_owned());
                self.subscribe(now, topic);
            }
            Afterwards::Repair => self.delay(now, topic),
        }
    }

    /// The server ends a subscription. While one is being left or made, this is about an earlier
    /// one: the reply to a subscribe precedes everything else about it.
    pub(super) fn unsubscribed(&mut self, now: Instant, topic: &str, push: Unsubscribe) {
        let Some(subscription) = self.topics.get_mut(topic) else { return };
        if subscription.phase != Phase::Live {
            return;
        }
        match push.code {
            UnsubscribeCode::EXPIRED => subscription.token = None,
            UnsubscribeCode::STATE_INVALIDATED => subscription.invalidate(),
            _ => {}
        }
        let verdict = push.code.verdict();
        let error = refusal::unsubscribed(push);
        match verdict {
            Verdict::Retry => self.back_off(now, topic, error),
            Verdict::Terminal => self.refuse(topic, error),
        }
    }

    /// The application's answer for a topic.
    pub(super) fn topic_token_given(&mut self, now: Instant, topic: &str, token: Option<String>) {
        let Some(subscription) = self.topics.get_mut(topic) else { return };
        let given = token.is_some();
        if given {
            subscription.token = token;
            subscription.token_seen = true;
        }
        match (subscription.phase, subscription.refresh) {
            (Phase::AwaitingToken { .. }, _) if given => self.subscribe(now, topic),
            (Phase::AwaitingToken { .. }, _) => {
                self.back_off(now, topic, ErrorCode::TokenUnavailable.into());
            }
            (Phase::Live, Refresh::AwaitingToken { .. }) if given => self.sub_refresh(now, topic),
            (Phase::Live, Refresh::AwaitingToken { .. }) => self.sub_refresh_later(now, topic),
            _ => {}
        }
    }

    /// Everything that waits for its next attempt is tried now.
    pub(super) fn retry_topics_now(&mut self, now: Instant) {
        let mut due = Vec::new();
        for (topic, subscription) in &mut self.topics {
            subscription.retry.reset();
            if matches!(subscription.phase, Phase::BackingOff { .. }) {
                due.push(topic.clone());
            }
        }
        for topic in due {
            self.subscribe(now, &topic);
        }
    }

    /// Makes sure that the client is called when a subscription needs something.
    pub(super) fn watch_topic(&mut self, topic: &str) {
        if let Some(due) = self.topics.get(topic).and_then(Subscription::due) {
            self.topics_due = Some(self.topics_due.map_or(due, |earliest| earliest.min(due)));
        }
    }
}

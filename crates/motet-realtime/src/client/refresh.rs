//! Keeping tokens fresh: the connection's and those of subscriptions.
//!
//! Each has exactly one refresh state, so a refresh can neither be started twice nor outlive what
//! it was for.

use core::time::Duration;

use motet_protocol::transport::TransportEvent;
use motet_protocol::{ErrorCode, Instant};

use super::call::Purpose;
use super::link::{Link, Next};
use super::subscription::{Afterwards, Phase, Refresh};
use super::{Client, refusal};
use crate::message::{
    ErrorReply, RefreshRequest, Request, ServerErrorCode, SubRefreshRequest, SubRefreshResult,
    Verdict,
};

/// Shortest delay before a failed refresh is tried again; the longest is twice that.
const RETRY_MIN: Duration = Duration::from_secs(5);

impl<P: Clone> Client<P> {
    pub(super) fn expiry(now: Instant, ttl_s: u32) -> Instant {
        now + Duration::from_secs(ttl_s.into())
    }

    /// The server says when the connection expires.
    pub(super) fn schedule_refresh(&mut self, now: Instant, expires: bool, ttl_s: u32) {
        self.refresh = if expires && ttl_s > 0 {
            Refresh::At(Self::expiry(now, ttl_s))
        } else {
            Refresh::None
        };
    }

    /// The application's answer for the connection.
    pub(super) fn token_given(&mut self, now: Instant, token: Option<String>) {
        let given = token.is_some();
        if given {
            self.token = token;
            self.token_seen = true;
        }
        match (&mut self.link, self.refresh) {
            (Link::AwaitingToken { .. }, _) if given => self.open_socket(now),
            (Link::AwaitingToken { .. }, _) => {
                self.lose(now, ErrorCode::TokenUnavailable.into(), Verdict::Retry);
            }
            (Link::Refused, _) if given => {
                self.retry.reset();
                self.attempt(now);
            }
            (Link::Closing { then: then @ Next::Refused, .. }, _) if given => {
                *then = Next::Attempt { at: now };
            }
            (Link::Connected { .. }, Refresh::AwaitingToken { .. }) if given => self.refresh(now),
            (Link::Connected { .. }, Refresh::AwaitingToken { .. }) => self.refresh_later(now),
            _ => {}
        }
    }

    fn refresh(&mut self, now: Instant) {
        let request = RefreshRequest { token: self.token.clone().unwrap_or_default() };
        let id = self.send(now, Purpose::Refresh, Request::Refresh(request));
        self.refresh = Refresh::InFlight { id };
    }

    fn retry_at(&mut self, now: Instant) -> Instant {
        now + RETRY_MIN + self.rng.jitter(RETRY_MIN)
    }

    /// Asks for a token again, well before the server's patience ends.
    pub(super) fn refresh_later(&mut self, now: Instant) {
        self.refresh = Refresh::At(self.retry_at(now));
    }

    pub(super) fn refresh_refused(&mut self, now: Instant, refusal: ErrorReply) {
        match refusal.verdict() {
            Verdict::Retry => self.refresh_later(now),
            Verdict::Terminal => self.lose(now, refusal::connect(refusal), Verdict::Terminal),
        }
    }

    /// The time of the connection's refresh state has come.
    pub(super) fn refresh_due(&mut self, now: Instant) {
        match self.refresh {
            Refresh::At(_) => {
                self.refresh = Refresh::AwaitingToken { until: now + self.config.token_timeout };
                self.event(TransportEvent::TokenWanted { topic: None });
            }
            Refresh::AwaitingToken { .. } => self.refresh_later(now),
            Refresh::None | Refresh::InFlight { .. } => {}
        }
    }

    pub(super) fn sub_refresh(&mut self, now: Instant, topic: &str) {
        let Some(subscription) = self.topics.get(topic) else { return };
        let request = SubRefreshRequest {
            channel: topic.to_owned(),
            token: subscription.token.clone().unwrap_or_default(),
            kind: 0,
        };
        let purpose = Purpose::SubRefresh(topic.to_owned());
        let id = self.send(now, purpose, Request::SubRefresh(request));
        if let Some(subscription) = self.topics.get_mut(topic) {
            subscription.refresh = Refresh::InFlight { id };
        }
    }

    pub(super) fn sub_refresh_later(&mut self, now: Instant, topic: &str) {
        let at = self.retry_at(now);
        if let Some(subscription) = self.topics.get_mut(topic)
            && subscription.phase == Phase::Live
        {
            subscription.refresh = Refresh::At(at);
            self.watch_topic(topic);
        }
    }

    pub(super) fn sub_refreshed(
        &mut self,
        now: Instant,
        topic: &str,
        id: u32,
        result: SubRefreshResult,
    ) {
        let Some(subscription) = self.topics.get_mut(topic) else { return };
        if subscription.refresh != (Refresh::InFlight { id }) {
            return;
        }
        subscription.refresh = if result.expires && result.ttl > 0 {
            Refresh::At(Self::expiry(now, result.ttl))
        } else {
            Refresh::None
        };
        self.watch_topic(topic);
    }

    /// A refused refresh means that the token is wrong or the subscription is gone: subscribe
    /// anew, with a new token, and let the server decide on that.
    pub(super) fn sub_refresh_refused(
        &mut self,
        now: Instant,
        topic: &str,
        id: u32,
        refusal: &ErrorReply,
    ) {
        let Some(subscription) = self.topics.get_mut(topic) else { return };
        if subscription.refresh != (Refresh::InFlight { id }) {
            return;
        }
        if refusal.code == ServerErrorCode::TOKEN_EXPIRED || refusal.verdict() == Verdict::Retry {
            return self.sub_refresh_later(now, topic);
        }
        subscription.token = None;
        self.leave(now, topic, Afterwards::Repair);
    }

    /// The time of a subscription's refresh state has come.
    pub(super) fn sub_refresh_due(&mut self, now: Instant, topic: &str) {
        let Some(subscription) = self.topics.get_mut(topic) else { return };
        match subscription.refresh {
            Refresh::At(_) => {
                let until = now + self.config.token_timeout;
                subscription.refresh = Refresh::AwaitingToken { until };
                self.watch_topic(topic);
                self.event(TransportEvent::TokenWanted { topic: Some(topic.to_owned()) });
            }
            Refresh::AwaitingToken { .. } => self.sub_refresh_later(now, topic),
            Refresh::None | Refresh::InFlight { .. } => {}
        }
    }
}

//! Prolonging connections and subscriptions with new tokens.

use std::sync::Arc;

use motet_protocol::Instant;

use super::connect::whole_seconds;
use super::{Hub, SessionId};
use crate::message::{
    DisconnectCode, RefreshResult, ReplyBody, ServerErrorCode, SubRefreshRequest, SubRefreshResult,
};
use crate::payload::Payload;
use crate::server::{ConnectionClaims, Step, SubscriptionClaims, TokenError, TokenKind};

impl<P: Payload> Hub<P> {
    pub(super) fn refresh(&mut self, now: Instant, id: SessionId, command: u32, token: String) {
        if token.is_empty() {
            return self.disconnect_bad_request(id);
        }
        self.verify(now, id, TokenKind::Connection, token, Step::RefreshToken { command });
    }

    pub(super) fn refresh_verified(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        verdict: Result<ConnectionClaims<P>, TokenError>,
    ) {
        let mut claims = match verdict {
            Ok(claims) => claims,
            Err(TokenError::Expired) => {
                return self.disconnect(id, DisconnectCode::CONNECTION_EXPIRED);
            }
            Err(TokenError::Invalid) => {
                return self.disconnect(id, DisconnectCode::INVALID_TOKEN);
            }
            Err(TokenError::KeysUnavailable) => {
                return self.refuse(id, command, ServerErrorCode::INTERNAL);
            }
        };
        self.add_personal_channel(&claims.user, &mut claims.subs);
        let grace = self.options.expired_close_delay;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if claims.user != session.user {
            return self.disconnect(id, DisconnectCode::INVALID_TOKEN);
        }
        let has = |channel: &String| session.subs.contains_key(channel.as_str());
        if !claims.subs.keys().all(has) {
            return self.disconnect(id, DisconnectCode::INSUFFICIENT_STATE);
        }
        let expires_in = claims.expires_in.filter(|_| !self.options.insecure);
        session.closes_at = expires_in.map(|ttl| now + ttl + grace);
        let result = RefreshResult {
            client: session.client.clone(),
            version: self.options.version.clone(),
            expires: expires_in.is_some(),
            ttl: expires_in.map_or(0, whole_seconds),
        };
        self.answer(id, command, ReplyBody::Refresh(result));
    }

    pub(super) fn sub_refresh(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        request: SubRefreshRequest,
    ) {
        if request.channel.is_empty() {
            return self.disconnect_bad_request(id);
        }
        let Some(session) = self.sessions.get(&id) else { return };
        if !session.is_subscribed(&request.channel) || request.kind != 0 {
            return self.refuse(id, command, ServerErrorCode::PERMISSION_DENIED);
        }
        if request.token.is_empty() {
            return self.disconnect_bad_request(id);
        }
        let channel = self.channel_key(&request.channel);
        let step = Step::SubRefreshToken { command, channel };
        self.verify(now, id, TokenKind::Subscription, request.token, step);
    }

    pub(super) fn sub_refresh_verified(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        channel: &Arc<str>,
        verdict: Result<SubscriptionClaims<P>, TokenError>,
    ) {
        let claims = match verdict {
            Ok(claims) if self.is_for(&claims, id, channel) => claims,
            Ok(_) | Err(TokenError::Invalid) => {
                return self.disconnect(id, DisconnectCode::INVALID_TOKEN);
            }
            Err(TokenError::Expired) => {
                return self.disconnect(id, DisconnectCode::SUBSCRIPTION_EXPIRED);
            }
            Err(TokenError::KeysUnavailable) => {
                return self.refuse(id, command, ServerErrorCode::INTERNAL);
            }
        };
        let grace = self.options.expired_sub_close_delay;
        let session = self.sessions.get_mut(&id);
        let Some(sub) = session.and_then(|session| session.subs.get_mut(channel)) else {
            return self.refuse(id, command, ServerErrorCode::PERMISSION_DENIED);
        };
        sub.closes_at = claims.expires_in.map(|ttl| now + ttl + grace);
        let result = SubRefreshResult {
            expires: claims.expires_in.is_some(),
            ttl: claims.expires_in.map_or(0, whole_seconds),
        };
        self.answer(id, command, ReplyBody::SubRefresh(result));
    }
}

//! The way into a channel: checks, the broker, the stream's position, the first deliveries.

use std::sync::Arc;

use motet_protocol::Instant;

use super::channel::Channel;
use super::{Hub, SessionId, Waiter};
use crate::broker::{BrokerOp, HistoryQuery};
use crate::message::{
    DisconnectCode, SUBSCRIBE_FLAG_REJECT_UNRECOVERED, ServerErrorCode, StreamPosition,
    SubscribeRequest,
};
use crate::pattern;
use crate::payload::Payload;
use crate::server::{
    ChannelName, Namespace, Origin, RecoveryMode, Right, ServerSubscription, Step, Subscribing,
    Subscription, SubscriptionClaims, SubscriptionOverride, SubscriptionState, TokenError,
    TokenKind, Traits, may_subscribe,
};

/// Delta formats a client may name. They are negotiated away: publications go out whole.
const KNOWN_DELTA_FORMATS: [&str; 2] = ["", "fossil"];

/// A subscription about to be made.
pub(super) struct NewSubscription<P> {
    pub(super) traits: Traits<P>,
    pub(super) origin: Origin,
    pub(super) recover_from: Option<StreamPosition>,
    pub(super) reject_unrecovered: bool,
    pub(super) closes_at: Option<Instant>,
}

impl<P: Payload> NewSubscription<P> {
    fn new(
        namespace: &Namespace,
        overrides: SubscriptionOverride,
        request: &SubscribeRequest<P>,
        origin: Origin,
        may_see_presence: bool,
    ) -> Self {
        let keeps_stream = namespace.history_enabled();
        let recoverable = keeps_stream
            && (overrides.force_recovery.unwrap_or(namespace.force_recovery)
                || namespace.allow_recovery && request.recoverable);
        let watched = overrides.force_positioning.unwrap_or(namespace.force_positioning)
            || namespace.allow_positioning && request.positioned;
        let announced = overrides.join_leave.unwrap_or(namespace.join_leave);
        let forced = overrides.force_push_join_leave.unwrap_or(namespace.force_push_join_leave);
        let recover = recoverable && request.recover;
        Self {
            traits: Traits {
                server_side: origin != Origin::Api && !matches!(origin, Origin::Command(_)),
                pattern: false,
                positioned: recoverable || keeps_stream && watched,
                recoverable,
                presence: overrides.presence.unwrap_or(namespace.presence),
                announced,
                hears_announcements: announced
                    && (forced || request.join_leave && may_see_presence),
                info: None,
                data: None,
            },
            origin,
            recover_from: recover
                .then(|| StreamPosition { offset: request.offset, epoch: request.epoch.clone() }),
            reject_unrecovered: request.flag & SUBSCRIBE_FLAG_REJECT_UNRECOVERED != 0,
            closes_at: None,
        }
    }

    /// A subscription that the server makes for a client.
    pub(super) fn by_server(
        namespace: &Namespace,
        sub: ServerSubscription<P>,
        request: &SubscribeRequest<P>,
        origin: Origin,
    ) -> Self {
        let mut new = Self::new(namespace, sub.overrides, request, origin, false);
        new.traits.server_side = true;
        new.traits.info = sub.info;
        new.traits.data = sub.data;
        // A connect command is not refused over one channel: the client is told instead.
        new.reject_unrecovered = false;
        new
    }

    /// A subscription to a pattern has no place of its own in any stream.
    fn to_pattern(origin: Origin) -> Self {
        Self {
            traits: Traits {
                server_side: false,
                pattern: true,
                positioned: false,
                recoverable: false,
                presence: false,
                announced: false,
                hears_announcements: false,
                info: None,
                data: None,
            },
            origin,
            recover_from: None,
            reject_unrecovered: false,
            closes_at: None,
        }
    }
}

impl<P: Payload> Hub<P> {
    pub(super) fn subscribe(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        mut request: Box<SubscribeRequest<P>>,
    ) {
        if request.channel.is_empty() || !KNOWN_DELTA_FORMATS.contains(&request.delta.as_str()) {
            return self.disconnect_bad_request(id);
        }
        if let Err(code) = self.may_begin(id, &request) {
            return self.refuse(id, command, code);
        }
        let token = core::mem::take(&mut request.token);
        if !token.is_empty() {
            let step = Step::SubscribeToken { command, request };
            return self.verify(now, id, TokenKind::Subscription, token, step);
        }
        self.subscribe_allowed(now, id, command, &request, None);
    }

    fn may_begin(
        &self,
        id: SessionId,
        request: &SubscribeRequest<P>,
    ) -> Result<(), ServerErrorCode> {
        let Some(session) = self.sessions.get(&id) else { return Err(ServerErrorCode::INTERNAL) };
        let channel = request.channel.as_str();
        let is_pattern = session.features.wildcards && pattern::is_pattern(channel);
        if !is_pattern && !self.is_name_acceptable(channel)
            || channel.len() > self.options.channel_max_length
            || request.tags_filter
        {
            return Err(ServerErrorCode::BAD_REQUEST);
        }
        if session.subs.contains_key(channel) {
            return Err(ServerErrorCode::ALREADY_SUBSCRIBED);
        }
        if session.subs.len() >= self.options.channel_limit {
            return Err(ServerErrorCode::LIMIT_EXCEEDED);
        }
        if self.options.namespaces.find(&ChannelName::parse(channel)).is_none() {
            return Err(ServerErrorCode::UNKNOWN_CHANNEL);
        }
        if request.kind != 0 {
            return Err(ServerErrorCode::PERMISSION_DENIED);
        }
        Ok(())
    }

    /// Printable ASCII of the allowed length, without the characters that patterns are made of.
    pub(super) fn is_name_acceptable(&self, channel: &str) -> bool {
        !channel.is_empty()
            && channel.len() <= self.options.channel_max_length
            && channel.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
            && !channel.contains('*')
    }

    pub(super) fn subscribe_verified(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        request: &SubscribeRequest<P>,
        verdict: Result<SubscriptionClaims<P>, TokenError>,
    ) {
        match verdict {
            Ok(claims) if self.is_for(&claims, id, &request.channel) => {
                self.subscribe_allowed(now, id, command, request, Some(claims));
            }
            Ok(_) => self.disconnect(id, DisconnectCode::INVALID_TOKEN),
            Err(error) => self.refuse(id, command, Self::subscribe_refusal(error)),
        }
    }

    const fn subscribe_refusal(error: TokenError) -> ServerErrorCode {
        match error {
            TokenError::Invalid => ServerErrorCode::PERMISSION_DENIED,
            TokenError::Expired => ServerErrorCode::TOKEN_EXPIRED,
            TokenError::KeysUnavailable => ServerErrorCode::INTERNAL,
        }
    }

    /// Whether a token was made for this connection and channel.
    pub(super) fn is_for(
        &self,
        claims: &SubscriptionClaims<P>,
        id: SessionId,
        channel: &str,
    ) -> bool {
        self.sessions.get(&id).is_some_and(|session| {
            claims.user == session.user
                && claims.channel == channel
                && claims.client.as_ref().is_none_or(|client| *client == session.client)
        })
    }

    fn subscribe_allowed(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        request: &SubscribeRequest<P>,
        claims: Option<SubscriptionClaims<P>>,
    ) {
        let Some(session) = self.sessions.get(&id) else { return };
        let name = ChannelName::parse(&request.channel);
        let Some(namespace) = self.options.namespaces.find(&name) else { return };
        let insecure = self.options.insecure;
        if claims.is_none() && !insecure && !may_subscribe(namespace, &name, &session.user) {
            return self.refuse(id, command, ServerErrorCode::PERMISSION_DENIED);
        }
        let origin = Origin::Command(command);
        let mut new = if pattern::is_pattern(&request.channel) {
            NewSubscription::to_pattern(origin)
        } else {
            let may_see = insecure || Right::Presence.granted(namespace, &session.user, true);
            let overrides = claims.as_ref().map(|claims| claims.overrides).unwrap_or_default();
            NewSubscription::new(namespace, overrides, request, origin, may_see)
        };
        if let Some(claims) = claims {
            new.closes_at = claims.expires_in.map(|ttl| now + ttl);
            new.traits.info = claims.info;
        }
        let channel = self.channel_key(&request.channel);
        let op = self.draw_op();
        self.wait(now, id, op, Step::Subscribe);
        self.start_subscription(now, id, channel, new);
    }

    /// Enters the channel; the broker's answers carry it on.
    pub(super) fn start_subscription(
        &mut self,
        now: Instant,
        id: SessionId,
        channel: Arc<str>,
        new: NewSubscription<P>,
    ) {
        if !self.channels.contains_key(&channel) {
            self.patterns += usize::from(new.traits.pattern);
            self.channels.insert(channel.clone(), Channel::new());
        }
        let entry = self.channels.get_mut(&channel).expect("just made sure of it");
        entry.subscriptions += 1;
        if new.traits.positioned {
            // From before the broker is asked until after the reply, publications are kept back.
            entry.arriving.insert(id, Vec::new());
        }
        let waiter = Waiter::Subscription(id, channel.clone());
        let op = self.ask(&channel, BrokerOp::Subscribe, waiter);
        let deadline = now + self.options.operation_timeout;
        let NewSubscription { traits, origin, recover_from, reject_unrecovered, closes_at } = new;
        let subscribing = Subscribing { origin, op, deadline, recover_from, reject_unrecovered };
        let state = SubscriptionState::Subscribing(Box::new(subscribing));
        let session = self.sessions.get_mut(&id).expect("only called for a live session");
        session.subs.insert(channel, Subscription { traits, state, closes_at });
        self.arm(id);
    }

    /// The broker delivers the channel now. Reads the stream if the subscription needs a place in
    /// it.
    pub(super) fn attached(&mut self, now: Instant, id: SessionId, channel: &Arc<str>) {
        let name = ChannelName::parse(channel);
        let Some(namespace) = self.options.namespaces.find(&name) else { return };
        let retention = namespace.retention(self.options.history_meta_ttl);
        let mode = namespace.recovery_mode;
        let limit = self.options.recovery_max_publication_limit;
        let bytes_max = Some(self.options.recovery_bytes_max);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(sub) = session.subs.get_mut(channel) else { return };
        let SubscriptionState::Subscribing(subscribing) = &sub.state else { return };
        if !sub.traits.positioned {
            return self.settle(now, id, channel, None);
        }
        let query = match (&subscribing.recover_from, mode) {
            (None, _) => HistoryQuery::POSITION,
            (Some(from), RecoveryMode::Stream) => {
                let since = Some(from.offset);
                HistoryQuery { since, limit: Some(limit), reverse: false, bytes_max }
            }
            (Some(_), RecoveryMode::Cache) => {
                HistoryQuery { since: None, limit: Some(1), reverse: true, bytes_max }
            }
        };
        let waiter = Waiter::Subscription(id, channel.clone());
        let op = self.ask(channel, BrokerOp::History(query, retention), waiter);
        let session = self.sessions.get_mut(&id).expect("checked above");
        if let Some(Subscription { state: SubscriptionState::Subscribing(subscribing), .. }) =
            session.subs.get_mut(channel)
        {
            subscribing.op = op;
        }
    }

    pub(super) fn unsubscribe(&mut self, id: SessionId, command: u32, channel: &str) {
        if channel.is_empty() {
            return self.disconnect_bad_request(id);
        }
        let channel = self.channel_key(channel);
        let server_side = self
            .sessions
            .get(&id)
            .and_then(|session| session.subs.get(&channel))
            .is_some_and(|sub| sub.traits.server_side);
        if !server_side {
            self.leave(id, &channel);
        }
        self.answer(id, command, crate::message::ReplyBody::Unsubscribe);
    }
}

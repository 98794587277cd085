//! The connect command: who is it, what is it subscribed to by the server, when is it pinged.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use motet_protocol::{Instant, Rng};

use super::subscribe::NewSubscription;
use super::{Hub, SessionId};
use crate::message::{
    ConnectRequest, ConnectResult, DisconnectCode, ErrorReply, ReplyBody, ServerErrorCode,
    SubscribeRequest,
};
use crate::payload::Payload;
use crate::server::{
    ChannelName, ConnectProgress, ConnectionClaims, Origin, Phase, ServerSubscription, Step,
    TokenError, TokenKind,
};

impl<P: Payload> Hub<P> {
    pub(super) fn connect(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        mut request: Box<ConnectRequest<P>>,
    ) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Phase::Fresh { stale_at } = session.phase {
            session.phase = Phase::Connecting { stale_at };
        }
        let token = core::mem::take(&mut request.token);
        if !token.is_empty() {
            let step = Step::ConnectToken { command, request };
            return self.verify(now, id, TokenKind::Connection, token, step);
        }
        if self.options.insecure || self.options.allow_anonymous_connect_without_token {
            return self.identify(now, id, command, *request, ConnectionClaims::user(""));
        }
        self.refuse(id, command, ServerErrorCode::UNAUTHORIZED);
    }

    pub(super) fn connect_verified(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        request: ConnectRequest<P>,
        verdict: Result<ConnectionClaims<P>, TokenError>,
    ) {
        match verdict {
            Ok(claims)
                if claims.user.is_empty() && self.options.disallow_anonymous_connection_tokens =>
            {
                self.disconnect(id, DisconnectCode::PERMISSION_DENIED);
            }
            Ok(claims) => self.identify(now, id, command, request, claims),
            Err(TokenError::Expired) => self.refuse(id, command, ServerErrorCode::TOKEN_EXPIRED),
            Err(TokenError::Invalid) => self.disconnect(id, DisconnectCode::INVALID_TOKEN),
            Err(TokenError::KeysUnavailable) => {
                self.refuse(id, command, ServerErrorCode::INTERNAL);
            }
        }
    }

    /// The user is known: makes the server-side subscriptions, then answers.
    fn identify(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        request: ConnectRequest<P>,
        mut claims: ConnectionClaims<P>,
    ) {
        let limit = self.options.user_connection_limit;
        let connections = self.users.get(&claims.user).map_or(0, BTreeSet::len);
        if limit > 0 && !claims.user.is_empty() && connections >= limit {
            return self.disconnect(id, DisconnectCode::CONNECTION_LIMIT);
        }
        self.add_personal_channel(&claims.user, &mut claims.subs);
        if claims.subs.len() > self.options.channel_limit {
            return self.disconnect(id, DisconnectCode::CHANNEL_LIMIT);
        }
        let result = self.introduce(now, id, &request, &mut claims);
        let progress =
            ConnectProgress { command, result, wanted: claims.subs.len(), ready: Vec::new() };
        if claims.subs.is_empty() {
            return self.connected(now, id, progress);
        }
        let op = self.draw_op();
        self.wait(now, id, op, Step::ConnectSubscriptions(progress));
        self.subscribe_by_server(now, id, claims.subs, request.subs);
    }

    pub(super) fn add_personal_channel(
        &self,
        user: &str,
        subs: &mut BTreeMap<String, ServerSubscription<P>>,
    ) {
        let Some(namespace) = &self.options.personal_channel_namespace else { return };
        if user.is_empty() {
            return;
        }
        let channel =
            if namespace.is_empty() { format!("#{user}") } else { format!("{namespace}:#{user}") };
        subs.entry(channel).or_default();
    }

    /// Notes who the connection is and prepares the connect result.
    fn introduce(
        &mut self,
        now: Instant,
        id: SessionId,
        request: &ConnectRequest<P>,
        claims: &mut ConnectionClaims<P>,
    ) -> Box<ConnectResult<P>> {
        let client = draw_uuid(&mut self.rng);
        let motet = request.motet.map(|wanted| wanted.intersection(self.options.features));
        let expires_in = claims.expires_in.filter(|_| !self.options.insecure);
        let session = self.sessions.get_mut(&id).expect("only called for a live session");
        session.client.clone_from(&client);
        session.user.clone_from(&claims.user);
        session.info = claims.info.take();
        session.features = motet.unwrap_or_default();
        session.closes_at = expires_in.map(|ttl| now + ttl + self.options.expired_close_delay);
        self.users.entry(claims.user.clone()).or_default().insert(id);
        let ping = self.options.ping_interval;
        // A client that answers frames need not know of them.
        let tells_of_pings = !ping.is_zero() && !session.frame_pings;
        Box::new(ConnectResult {
            client,
            version: self.options.version.clone(),
            expires: expires_in.is_some(),
            ttl: expires_in.map_or(0, whole_seconds),
            ping: if tells_of_pings { whole_seconds(ping) } else { 0 },
            pong: tells_of_pings && !self.options.pong_timeout.is_zero(),
            motet,
            ..ConnectResult::default()
        })
    }

    fn subscribe_by_server(
        &mut self,
        now: Instant,
        id: SessionId,
        subs: BTreeMap<String, ServerSubscription<P>>,
        mut recover: BTreeMap<String, SubscribeRequest<P>>,
    ) {
        for (channel, sub) in subs {
            let request = recover.remove(&channel).unwrap_or_default();
            let found = self.options.namespaces.find(&ChannelName::parse(&channel));
            let Some(namespace) = found.filter(|_| self.is_name_acceptable(&channel)) else {
                return self.connect_failed(now, id, ServerErrorCode::UNKNOWN_CHANNEL.into());
            };
            let new = NewSubscription::by_server(namespace, sub, &request, Origin::Connect);
            self.start_subscription(now, id, Arc::from(channel), new);
            if !self.sessions.contains_key(&id) {
                return;
            }
        }
    }

    /// A server-side subscription of a connect command could not be made.
    pub(super) fn connect_failed(&mut self, now: Instant, id: SessionId, error: ErrorReply) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(Step::ConnectSubscriptions(progress)) =
            session.waiting.take().map(|waiting| waiting.step)
        else {
            return;
        };
        self.refuse(id, progress.command, error);
        self.leave_all(id);
        self.next_command(now, id);
    }

    /// Everything is in place: answers and begins to ping.
    pub(super) fn connected(&mut self, now: Instant, id: SessionId, progress: ConnectProgress<P>) {
        let interval = self.options.ping_interval;
        let first_ping = interval / 2 + self.rng.jitter(interval / 2);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.phase = Phase::Connected;
        session.next_ping = (!interval.is_zero()).then_some(now + first_ping);
        self.answer(id, progress.command, ReplyBody::Connect(progress.result));
    }
}

/// Whole seconds for the wire; at least one, because 0 means "never" there.
pub(super) fn whole_seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).max(1)
}

/// A random UUID (version 4).
fn draw_uuid(rng: &mut Rng) -> String {
    let (high, low) = (rng.u64(), rng.u64());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | (low >> 48) & 0x3fff,
        low & 0xffff_ffff_ffff,
    )
}

//! Calls of the server's API, carried out.

use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::Arc;

use motet_protocol::Instant;

use super::connect::whole_seconds;
use super::publish::KEY_LENGTH_MAX;
use super::read::is_same_life;
use super::subscribe::NewSubscription;
use super::timer::Timer;
use super::{
    ApiCallId, ApiError, ApiErrorCode, ApiPublish, ApiRequest, ApiResult, ApiSubscribe, Hub,
    HubStats, Output, SessionId, Waiter,
};
use crate::broker::{Answer, BrokerError, BrokerOp, Idempotency, PublishOptions, Retention};
use crate::message::{
    DisconnectCode, Publication, Push, PushEvent, RefreshPush, Reply, StreamPosition,
    SubscribeRequest, UnsubscribeCode,
};
use crate::payload::Payload;
use crate::server::{ChannelName, Namespace, Origin, Phase};

/// A call that waits for the broker.
pub(super) struct ApiCall<P> {
    kind: Kind,
    deadline: Instant,
    parts: Vec<Option<Result<ApiResult<P>, ApiError>>>,
    /// Parts that have no result yet. Looking for them after each result would cost the square of
    /// their number.
    missing: usize,
}

enum Kind {
    Single,
    Broadcast,
    History(Option<StreamPosition>),
}

/// Channels in one broadcast. A hub does nothing else while it hands them to the broker.
const BROADCAST_CHANNELS_MAX: usize = 10_000;

impl<P: Payload> Hub<P> {
    pub(super) fn take_api_call(&mut self, now: Instant, call: ApiCallId, request: ApiRequest<P>) {
        let done = match request {
            ApiRequest::Publish(publish, channel) => {
                let channels = core::slice::from_ref(&channel);
                return self.api_publish(now, call, Kind::Single, &publish, channels);
            }
            ApiRequest::Broadcast(publish, channels) => {
                return self.api_publish(now, call, Kind::Broadcast, &publish, &channels);
            }
            ApiRequest::Presence(channel) => {
                return self.api_presence(now, call, &channel, BrokerOp::Presence);
            }
            ApiRequest::PresenceStats(channel) => {
                return self.api_presence(now, call, &channel, BrokerOp::PresenceStats);
            }
            ApiRequest::History { channel, limit, since, reverse } => {
                return self.api_history(now, call, &channel, limit, since, reverse);
            }
            ApiRequest::HistoryRemove(channel) => {
                return self.api_history_remove(now, call, &channel);
            }
            ApiRequest::Subscribe(request) => self.api_subscribe(now, *request),
            ApiRequest::Unsubscribe { user, channel, client } => {
                self.api_unsubscribe(&user, &channel, &client)
            }
            ApiRequest::Disconnect { user, client, keep, disconnect } => {
                for id in self.connections_of(&user, &client) {
                    let kept = self.sessions.get(&id).is_some_and(|s| keep.contains(&s.client));
                    if !kept {
                        self.disconnect_because(id, disconnect.clone());
                    }
                }
                Ok(ApiResult::Done)
            }
            ApiRequest::Refresh { user, client, expired, expires_in } => {
                self.api_refresh(now, &user, &client, expired, expires_in)
            }
            ApiRequest::Channels => Ok(self.list_channels()),
            ApiRequest::Info => Ok(ApiResult::Info(self.stats())),
        };
        self.outputs.push_back(Output::ApiReply(call, done));
    }

    /// Numbers about this hub.
    #[must_use]
    pub fn stats(&self) -> HubStats {
        HubStats {
            clients: self.users.values().map(BTreeSet::len).sum(),
            users: self.users.len(),
            channels: self.channels.len(),
            subscriptions: self.channels.values().map(|channel| channel.subscriptions).sum(),
        }
    }

    fn begin(&mut self, now: Instant, call: ApiCallId, kind: Kind, parts: usize) {
        let deadline = now + self.options.operation_timeout;
        self.timers.insert((deadline, Timer::Api(call)));
        let missing = parts;
        let parts = (0..parts).map(|_| None).collect();
        self.api_calls.insert(call, ApiCall { kind, deadline, parts, missing });
    }

    fn namespace_for_api(&self, channel: &str) -> Result<&Namespace, ApiError> {
        if !self.is_name_acceptable(channel) {
            return Err(ApiErrorCode::BadRequest.into());
        }
        let found = self.options.namespaces.find(&ChannelName::parse(channel));
        found.ok_or_else(|| ApiErrorCode::UnknownChannel.into())
    }

    fn api_publish(
        &mut self,
        now: Instant,
        call: ApiCallId,
        kind: Kind,
        publish: &ApiPublish<P>,
        channels: &[String],
    ) {
        if let Err(error) = check_publish(publish, channels) {
            self.outputs.push_back(Output::ApiReply(call, Err(error)));
            return;
        }
        self.begin(now, call, kind, channels.len());
        for (part, channel) in channels.iter().enumerate() {
            self.publish_part(call, part, publish, channel);
        }
    }

    fn publish_part(
        &mut self,
        call: ApiCallId,
        part: usize,
        publish: &ApiPublish<P>,
        channel: &str,
    ) {
        let retention = match self.namespace_for_api(channel) {
            Ok(_) if publish.skip_history => Retention::NONE,
            Ok(namespace) => namespace.retention(self.options.history_meta_ttl),
            Err(error) => return self.part_done(call, part, Err(error)),
        };
        // As in the ecosystem, a repeated key is answered with the first outcome whatever the
        // payload: backends often put the time of sending into it.
        let idempotency = (!publish.idempotency_key.is_empty()).then(|| Idempotency {
            key: format!("server/{}", publish.idempotency_key),
            fingerprint: None,
        });
        let publication =
            Publication { tags: publish.tags.clone(), ..Publication::new(publish.data.clone()) };
        let options = PublishOptions { retention, idempotency, version: publish.version.clone() };
        let channel = self.channel_key(channel);
        self.hand_to_broker(&channel, publication, options, Waiter::Api(call, part));
    }

    fn api_presence(&mut self, now: Instant, call: ApiCallId, channel: &str, request: BrokerOp<P>) {
        self.begin(now, call, Kind::Single, 1);
        match self.namespace_for_api(channel) {
            Ok(namespace) if namespace.presence => {
                let channel = self.channel_key(channel);
                self.ask(&channel, request, Waiter::Api(call, 0));
            }
            Ok(_) => self.part_done(call, 0, Err(ApiErrorCode::NotAvailable.into())),
            Err(error) => self.part_done(call, 0, Err(error)),
        }
    }

    fn api_history(
        &mut self,
        now: Instant,
        call: ApiCallId,
        channel: &str,
        limit: i32,
        since: Option<StreamPosition>,
        reverse: bool,
    ) {
        let request = self.namespace_for_api(channel).and_then(|namespace| {
            let query = self.history_query(namespace, limit, since.as_ref(), reverse);
            let retention = namespace.retention(self.options.history_meta_ttl);
            match query {
                Ok(query) => Ok(BrokerOp::History(query, retention)),
                Err(crate::message::ServerErrorCode::NOT_AVAILABLE) => {
                    Err(ApiErrorCode::NotAvailable.into())
                }
                Err(_) => Err(ApiErrorCode::BadRequest.into()),
            }
        });
        self.begin(now, call, Kind::History(since), 1);
        match request {
            Ok(request) => {
                let channel = self.channel_key(channel);
                self.ask(&channel, request, Waiter::Api(call, 0));
            }
            Err(error) => self.part_done(call, 0, Err(error)),
        }
    }

    fn api_history_remove(&mut self, now: Instant, call: ApiCallId, channel: &str) {
        self.begin(now, call, Kind::Single, 1);
        match self.namespace_for_api(channel) {
            Ok(namespace) if namespace.history_enabled() => {
                let channel = self.channel_key(channel);
                self.ask(&channel, BrokerOp::RemoveHistory, Waiter::Api(call, 0));
            }
            Ok(_) => self.part_done(call, 0, Err(ApiErrorCode::NotAvailable.into())),
            Err(error) => self.part_done(call, 0, Err(error)),
        }
    }

    /// Connected sessions of a user, or the one among them with this client id.
    fn connections_of(&self, user: &str, client: &str) -> Vec<SessionId> {
        let Some(sessions) = self.users.get(user) else { return Vec::new() };
        let wanted = |id: &&SessionId| {
            self.sessions.get(id).is_some_and(|session| {
                session.phase == Phase::Connected && (client.is_empty() || session.client == client)
            })
        };
        sessions.iter().filter(wanted).copied().collect()
    }

    fn api_subscribe(
        &mut self,
        now: Instant,
        request: ApiSubscribe<P>,
    ) -> Result<ApiResult<P>, ApiError> {
        self.namespace_for_api(&request.channel)?;
        let recover = request.recover_since.unwrap_or_default();
        let wish = SubscribeRequest {
            recover: !recover.epoch.is_empty() || recover.offset > 0,
            offset: recover.offset,
            epoch: recover.epoch,
            ..SubscribeRequest::default()
        };
        let channel = self.channel_key(&request.channel);
        for id in self.connections_of(&request.user, &request.client) {
            let session = &self.sessions[&id];
            let full = session.subs.len() >= self.options.channel_limit;
            if session.subs.contains_key(&channel) || full {
                continue;
            }
            let namespace = self.namespace_for_api(&channel)?;
            let sub = request.subscription.clone();
            let mut new = NewSubscription::by_server(namespace, sub, &wish, Origin::Api);
            new.closes_at = request.expires_in.map(|ttl| now + ttl);
            self.start_subscription(now, id, channel.clone(), new);
        }
        Ok(ApiResult::Done)
    }

    fn api_unsubscribe(
        &mut self,
        user: &str,
        channel: &str,
        client: &str,
    ) -> Result<ApiResult<P>, ApiError> {
        if !channel.is_empty() {
            self.namespace_for_api(channel)?;
        }
        for id in self.connections_of(user, client) {
            let subs = &self.sessions[&id].subs;
            let channels: Vec<Arc<str>> = subs
                .iter()
                .filter(|(name, sub)| {
                    sub.is_live() && (channel.is_empty() || name.as_ref() == channel)
                })
                .map(|(name, _)| name.clone())
                .collect();
            for channel in channels {
                self.end_subscription(id, &channel, UnsubscribeCode::SERVER);
            }
            self.arm(id);
        }
        Ok(ApiResult::Done)
    }

    fn api_refresh(
        &mut self,
        now: Instant,
        user: &str,
        client: &str,
        expired: bool,
        expires_in: Option<Duration>,
    ) -> Result<ApiResult<P>, ApiError> {
        for id in self.connections_of(user, client) {
            if expired {
                self.disconnect(id, DisconnectCode::CONNECTION_EXPIRED);
                continue;
            }
            let grace = self.options.expired_close_delay;
            if let Some(session) = self.sessions.get_mut(&id) {
                session.closes_at = expires_in.map(|ttl| now + ttl + grace);
            }
            let push = RefreshPush {
                expires: expires_in.is_some(),
                ttl: expires_in.map_or(0, whole_seconds),
            };
            let event = PushEvent::Refresh(push);
            self.send(id, Reply::push(Push { channel: String::new(), event }));
            self.arm(id);
        }
        Ok(ApiResult::Done)
    }

    fn list_channels(&self) -> ApiResult<P> {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let channels = self.channels.iter();
        ApiResult::Channels(
            channels.map(|(name, entry)| (name.to_string(), count(entry.subscriptions))).collect(),
        )
    }

    pub(super) fn api_answered(
        &mut self,
        call: ApiCallId,
        part: usize,
        answer: Result<Answer<P>, BrokerError>,
    ) {
        let result = match answer {
            Ok(Answer::Done) => Ok(ApiResult::Done),
            Ok(Answer::Published(published)) => Ok(ApiResult::Published(published.position)),
            Ok(Answer::History(page)) => Ok(ApiResult::History(page)),
            Ok(Answer::Presence(presence)) => Ok(ApiResult::Presence(presence)),
            Ok(Answer::PresenceStats { num_clients, num_users }) => {
                Ok(ApiResult::PresenceStats { num_clients, num_users })
            }
            Err(error) => Err(error.into()),
        };
        self.part_done(call, part, result);
    }

    fn part_done(&mut self, call: ApiCallId, part: usize, result: Result<ApiResult<P>, ApiError>) {
        let Some(entry) = self.api_calls.get_mut(&call) else { return };
        let earlier = entry.parts[part].replace(result);
        assert!(earlier.is_none(), "each part of a call has one result");
        entry.missing -= 1;
        if entry.missing > 0 {
            return;
        }
        let Some(entry) = self.api_calls.remove(&call) else { return };
        self.timers.remove(&(entry.deadline, Timer::Api(call)));
        let result = entry.result();
        self.outputs.push_back(Output::ApiReply(call, result));
    }

    /// The broker did not answer in time.
    pub(super) fn api_timed_out(&mut self, call: ApiCallId) {
        if self.api_calls.remove(&call).is_some() {
            let error = Err(ApiErrorCode::Internal.into());
            self.outputs.push_back(Output::ApiReply(call, error));
        }
    }
}

fn check_publish<P>(publish: &ApiPublish<P>, channels: &[String]) -> Result<(), ApiError> {
    if channels.is_empty() || channels.len() > BROADCAST_CHANNELS_MAX {
        let limit = format!("a broadcast has 1 to {BROADCAST_CHANNELS_MAX} channels");
        return Err(ApiError::bad_request(&limit));
    }
    if publish.idempotency_key.len() > KEY_LENGTH_MAX {
        let limit = format!("idempotency_key must not exceed {KEY_LENGTH_MAX} bytes");
        return Err(ApiError::bad_request(&limit));
    }
    Ok(())
}

impl<P> ApiCall<P> {
    fn result(self) -> Result<ApiResult<P>, ApiError> {
        let mut parts = self.parts.into_iter().flatten();
        match self.kind {
            Kind::Broadcast => {
                let position = |part| match part {
                    Ok(ApiResult::Published(position)) => Ok(position),
                    Ok(_) => Err(ApiErrorCode::Internal.into()),
                    Err(error) => Err(error),
                };
                Ok(ApiResult::Broadcast(parts.map(position).collect()))
            }
            Kind::Single => parts.next().unwrap_or(Err(ApiErrorCode::Internal.into())),
            Kind::History(since) => match parts.next() {
                Some(Ok(ApiResult::History(page))) if !is_same_life(since.as_ref(), &page.top) => {
                    Err(ApiErrorCode::UnrecoverablePosition.into())
                }
                Some(result) => result,
                None => Err(ApiErrorCode::Internal.into()),
            },
        }
    }
}

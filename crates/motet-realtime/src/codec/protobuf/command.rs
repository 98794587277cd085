//! Commands as Protobuf.

use bytes::Bytes;

use super::wire::{
    Channel, Command, ConnectRequest, Data, Empty, Features, HistoryRequest, PublishExtension,
    PublishRequest, RefreshRequest, RpcRequest, StreamPosition, SubRefreshRequest,
    SubscribeRequest,
};
use super::{Source, field};
use crate::codec::DecodeError;
use crate::message::{self, Request};

impl Command {
    pub(super) fn encode(message: &message::Command<Bytes>) -> Self {
        let mut wire = Self { id: message.id, ..Self::default() };
        let Some(request) = &message.request else { return wire };
        match request {
            Request::Connect(request) => wire.connect = Some(ConnectRequest::encode(request)),
            Request::Subscribe(request) => {
                wire.subscribe = Some(SubscribeRequest::encode(request));
            }
            Request::Unsubscribe(request) => {
                wire.unsubscribe = Some(Channel { channel: request.channel.clone() });
            }
            Request::Publish(request) => wire.publish = Some(PublishRequest::encode(request)),
            Request::Presence(request) => {
                wire.presence = Some(Channel { channel: request.channel.clone() });
            }
            Request::PresenceStats(request) => {
                wire.presence_stats = Some(Channel { channel: request.channel.clone() });
            }
            Request::History(request) => wire.history = Some(HistoryRequest::encode(request)),
            Request::Ping => wire.ping = Some(Empty {}),
            Request::Send(request) => wire.send = Some(Data { data: request.data.clone() }),
            Request::Rpc(request) => {
                let method = request.method.clone();
                wire.rpc = Some(RpcRequest { data: request.data.clone(), method });
            }
            Request::Refresh(request) => {
                wire.refresh = Some(RefreshRequest { token: request.token.clone() });
            }
            Request::SubRefresh(request) => {
                wire.sub_refresh = Some(SubRefreshRequest {
                    channel: request.channel.clone(),
                    token: request.token.clone(),
                    kind: request.kind,
                });
            }
        }
        wire
    }

    /// A command asks for one thing: a second would be lost without a word.
    pub(super) fn decode(self, source: Source) -> Result<message::Command<Bytes>, DecodeError> {
        let id = self.id;
        let requests = [
            self.connect.map(|wire| Request::Connect(Box::new(wire.decode(source)))),
            self.subscribe.map(|wire| Request::Subscribe(Box::new(wire.decode(source)))),
            self.unsubscribe.map(|wire| {
                Request::Unsubscribe(message::UnsubscribeRequest { channel: wire.channel })
            }),
            self.publish.map(|wire| Request::Publish(wire.decode(source))),
            self.presence
                .map(|wire| Request::Presence(message::PresenceRequest { channel: wire.channel })),
            self.presence_stats.map(|wire| {
                let channel = wire.channel;
                Request::PresenceStats(message::PresenceStatsRequest { channel })
            }),
            self.history.map(|wire| Request::History(wire.decode())),
            self.ping.map(|_| Request::Ping),
            self.send.map(|wire| {
                Request::Send(message::SendRequest { data: source.payload(wire.data) })
            }),
            self.rpc.map(|wire| {
                let data = source.payload(wire.data);
                Request::Rpc(message::RpcRequest { data, method: wire.method })
            }),
            self.refresh
                .map(|wire| Request::Refresh(message::RefreshRequest { token: wire.token })),
            self.sub_refresh.map(|wire| {
                Request::SubRefresh(message::SubRefreshRequest {
                    channel: wire.channel,
                    token: wire.token,
                    kind: wire.kind,
                })
            }),
        ];
        let mut requests = requests.into_iter().flatten();
        let request = requests.next();
        match requests.next() {
            None => Ok(message::Command { id, request }),
            Some(_) => Err(DecodeError::SeveralRequests),
        }
    }
}

impl ConnectRequest {
    fn encode(message: &message::ConnectRequest<Bytes>) -> Self {
        Self {
            token: message.token.clone(),
            data: field(message.data.as_ref()),
            subs: message
                .subs
                .iter()
                .map(|(channel, request)| (channel.clone(), SubscribeRequest::encode(request)))
                .collect(),
            name: message.name.clone(),
            version: message.version.clone(),
            headers: message.headers.clone(),
            flag: message.flag,
            motet: message.motet.map(Features::encode),
        }
    }

    fn decode(self, source: Source) -> message::ConnectRequest<Bytes> {
        message::ConnectRequest {
            token: self.token,
            data: source.optional(self.data),
            subs: self
                .subs
                .into_iter()
                .map(|(channel, wire)| (channel, wire.decode(source)))
                .collect(),
            name: self.name,
            version: self.version,
            headers: self.headers,
            flag: self.flag,
            motet: self.motet.map(Features::decode),
        }
    }
}

impl SubscribeRequest {
    fn encode(message: &message::SubscribeRequest<Bytes>) -> Self {
        Self {
            channel: message.channel.clone(),
            token: message.token.clone(),
            recover: message.recover,
            epoch: message.epoch.clone(),
            offset: message.offset,
            data: field(message.data.as_ref()),
            positioned: message.positioned,
            recoverable: message.recoverable,
            join_leave: message.join_leave,
            delta: message.delta.clone(),
            tags_filter: message.tags_filter.then_some(Empty {}),
            flag: message.flag,
            kind: message.kind,
        }
    }

    fn decode(self, source: Source) -> message::SubscribeRequest<Bytes> {
        message::SubscribeRequest {
            channel: self.channel,
            token: self.token,
            recover: self.recover,
            epoch: self.epoch,
            offset: self.offset,
            data: source.optional(self.data),
            positioned: self.positioned,
            recoverable: self.recoverable,
            join_leave: self.join_leave,
            delta: self.delta,
            tags_filter: self.tags_filter.is_some(),
            flag: self.flag,
            kind: self.kind,
        }
    }
}

impl PublishRequest {
    fn encode(message: &message::PublishRequest<Bytes>) -> Self {
        Self {
            channel: message.channel.clone(),
            data: message.data.clone(),
            kind: message.kind,
            motet: message.motet.as_ref().map(|extension| PublishExtension {
                key: extension.key.clone(),
                message_id: extension.message_id.clone(),
                timestamp_ms: extension.timestamp_ms,
            }),
        }
    }

    fn decode(self, source: Source) -> message::PublishRequest<Bytes> {
        message::PublishRequest {
            channel: self.channel,
            data: source.payload(self.data),
            kind: self.kind,
            motet: self.motet.map(|wire| message::PublishExtension {
                key: wire.key,
                message_id: wire.message_id,
                timestamp_ms: wire.timestamp_ms,
            }),
        }
    }
}

impl Features {
    pub(super) fn encode(message: message::Features) -> Self {
        Self {
            idempotency: message.idempotency,
            ordered_publish: message.ordered_publish,
            wildcards: message.wildcards,
        }
    }

    pub(super) fn decode(self) -> message::Features {
        message::Features {
            idempotency: self.idempotency,
            ordered_publish: self.ordered_publish,
            wildcards: self.wildcards,
        }
    }
}

impl HistoryRequest {
    fn encode(message: &message::HistoryRequest) -> Self {
        Self {
            channel: message.channel.clone(),
            limit: message.limit,
            since: message
                .since
                .as_ref()
                .map(|since| StreamPosition { offset: since.offset, epoch: since.epoch.clone() }),
            reverse: message.reverse,
        }
    }

    fn decode(self) -> message::HistoryRequest {
        message::HistoryRequest {
            channel: self.channel,
            limit: self.limit,
            since: self
                .since
                .map(|since| message::StreamPosition { offset: since.offset, epoch: since.epoch }),
            reverse: self.reverse,
        }
    }
}

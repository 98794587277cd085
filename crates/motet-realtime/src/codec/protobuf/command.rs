//! Commands as Protobuf.

use bytes::Bytes;

use super::wire::{
    Channel, Command, ConnectRequest, Data, Empty, Features, HistoryRequest, PublishExtension,
    PublishRequest, RefreshRequest, RpcRequest, StreamPosition, SubRefreshRequest,
    SubscribeRequest,
};
use super::{Source, field};
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

    /// The first request that is set counts, in the order of the protocol's fields.
    pub(super) fn decode(self, source: Source) -> message::Command<Bytes> {
        let id = self.id;
        let request = if let Some(wire) = self.connect {
            Some(Request::Connect(Box::new(wire.decode(source))))
        } else if let Some(wire) = self.subscribe {
            Some(Request::Subscribe(Box::new(wire.decode(source))))
        } else if let Some(wire) = self.unsubscribe {
            Some(Request::Unsubscribe(message::UnsubscribeRequest { channel: wire.channel }))
        } else if let Some(wire) = self.publish {
            Some(Request::Publish(wire.decode(source)))
        } else if let Some(wire) = self.presence {
            Some(Request::Presence(message::PresenceRequest { channel: wire.channel }))
        } else if let Some(wire) = self.presence_stats {
            Some(Request::PresenceStats(message::PresenceStatsRequest { channel: wire.channel }))
        } else if let Some(wire) = self.history {
            Some(Request::History(wire.decode()))
        } else if self.ping.is_some() {
            Some(Request::Ping)
        } else if let Some(wire) = self.send {
            Some(Request::Send(message::SendRequest { data: source.payload(wire.data) }))
        } else if let Some(wire) = self.rpc {
            let data = source.payload(wire.data);
            Some(Request::Rpc(message::RpcRequest { data, method: wire.method }))
        } else if let Some(wire) = self.refresh {
            Some(Request::Refresh(message::RefreshRequest { token: wire.token }))
        } else {
            self.sub_refresh.map(|wire| {
                Request::SubRefresh(message::SubRefreshRequest {
                    channel: wire.channel,
                    token: wire.token,
                    kind: wire.kind,
                })
            })
        };
        message::Command { id, request }
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

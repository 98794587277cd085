//! Commands as JSON.

use bytes::Bytes;

use super::wire::{
    Channel, Command, ConnectRequest, Data, Empty, Features, HistoryRequest, PublishExtension,
    PublishRequest, RefreshRequest, RpcRequest, StreamPosition, SubRefreshRequest,
    SubscribeRequest, nonzero, nonzero_map, owned, owned_texts, text, texts,
};
use super::{Source, embed, embed_optional};
use crate::codec::{DecodeError, EncodeError};
use crate::message::{self, Request};

impl<'a> Command<'a> {
    pub(super) fn encode(message: &'a message::Command<Bytes>) -> Result<Self, EncodeError> {
        let mut wire = Self { id: nonzero(message.id), ..Self::default() };
        let Some(request) = &message.request else { return Ok(wire) };
        match request {
            Request::Connect(request) => wire.connect = Some(ConnectRequest::encode(request)?),
            Request::Subscribe(request) => {
                wire.subscribe = Some(SubscribeRequest::encode(request)?);
            }
            Request::Unsubscribe(request) => {
                wire.unsubscribe = Some(Channel { channel: text(&request.channel) });
            }
            Request::Publish(request) => wire.publish = Some(PublishRequest::encode(request)?),
            Request::Presence(request) => {
                wire.presence = Some(Channel { channel: text(&request.channel) });
            }
            Request::PresenceStats(request) => {
                wire.presence_stats = Some(Channel { channel: text(&request.channel) });
            }
            Request::History(request) => wire.history = Some(HistoryRequest::encode(request)),
            Request::Ping => wire.ping = Some(Empty {}),
            Request::Send(request) => wire.send = Some(Data { data: embed(&request.data)? }),
            Request::Rpc(request) => {
                wire.rpc =
                    Some(RpcRequest { data: embed(&request.data)?, method: text(&request.method) });
            }
            Request::Refresh(request) => {
                wire.refresh = Some(RefreshRequest { token: text(&request.token) });
            }
            Request::SubRefresh(request) => {
                wire.sub_refresh = Some(SubRefreshRequest {
                    channel: text(&request.channel),
                    token: text(&request.token),
                    r#type: nonzero(request.kind),
                });
            }
        }
        Ok(wire)
    }

    /// A command asks for one thing: a second would be lost without a word.
    pub(super) fn decode(
        self,
        source: &Source<'_>,
    ) -> Result<message::Command<Bytes>, DecodeError> {
        let id = self.id.unwrap_or_default();
        let requests = [
            self.connect.map(|wire| Request::Connect(Box::new(wire.decode(source)))),
            self.subscribe.map(|wire| Request::Subscribe(Box::new(wire.decode(source)))),
            self.unsubscribe.map(|wire| {
                Request::Unsubscribe(message::UnsubscribeRequest { channel: owned(wire.channel) })
            }),
            self.publish.map(|wire| Request::Publish(wire.decode(source))),
            self.presence.map(|wire| {
                Request::Presence(message::PresenceRequest { channel: owned(wire.channel) })
            }),
            self.presence_stats.map(|wire| {
                let channel = owned(wire.channel);
                Request::PresenceStats(message::PresenceStatsRequest { channel })
            }),
            self.history.map(|wire| Request::History(wire.decode())),
            self.ping.map(|_| Request::Ping),
            self.send.map(|wire| {
                Request::Send(message::SendRequest { data: source.payload(wire.data) })
            }),
            self.rpc.map(|wire| {
                let data = source.payload(wire.data);
                Request::Rpc(message::RpcRequest { data, method: owned(wire.method) })
            }),
            self.refresh
                .map(|wire| Request::Refresh(message::RefreshRequest { token: owned(wire.token) })),
            self.sub_refresh.map(|wire| {
                Request::SubRefresh(message::SubRefreshRequest {
                    channel: owned(wire.channel),
                    token: owned(wire.token),
                    kind: wire.r#type.unwrap_or_default(),
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

impl<'a> ConnectRequest<'a> {
    fn encode(message: &'a message::ConnectRequest<Bytes>) -> Result<Self, EncodeError> {
        let subs = message
            .subs
            .iter()
            .map(|(channel, request)| {
                Ok((channel.as_str().into(), SubscribeRequest::encode(request)?))
            })
            .collect::<Result<_, EncodeError>>()?;
        Ok(Self {
            token: text(&message.token),
            data: embed_optional(message.data.as_ref())?,
            subs: nonzero_map(subs),
            name: text(&message.name),
            version: text(&message.version),
            headers: texts(&message.headers),
            flag: nonzero(message.flag),
            motet: message.motet.map(Features::encode),
        })
    }

    fn decode(self, source: &Source<'_>) -> message::ConnectRequest<Bytes> {
        message::ConnectRequest {
            token: owned(self.token),
            data: source.optional(self.data),
            subs: self
                .subs
                .unwrap_or_default()
                .into_iter()
                .map(|(channel, wire)| (channel.into_owned(), wire.decode(source)))
                .collect(),
            name: owned(self.name),
            version: owned(self.version),
            headers: owned_texts(self.headers),
            flag: self.flag.unwrap_or_default(),
            motet: self.motet.map(Features::decode),
        }
    }
}

impl<'a> SubscribeRequest<'a> {
    fn encode(message: &'a message::SubscribeRequest<Bytes>) -> Result<Self, EncodeError> {
        Ok(Self {
            channel: text(&message.channel),
            token: text(&message.token),
            recover: nonzero(message.recover),
            epoch: text(&message.epoch),
            offset: nonzero(message.offset),
            data: embed_optional(message.data.as_ref())?,
            positioned: nonzero(message.positioned),
            recoverable: nonzero(message.recoverable),
            join_leave: nonzero(message.join_leave),
            delta: text(&message.delta),
            tf: message.tags_filter.then_some(Empty {}),
            flag: nonzero(message.flag),
            r#type: nonzero(message.kind),
        })
    }

    fn decode(self, source: &Source<'_>) -> message::SubscribeRequest<Bytes> {
        message::SubscribeRequest {
            channel: owned(self.channel),
            token: owned(self.token),
            recover: self.recover.unwrap_or_default(),
            epoch: owned(self.epoch),
            offset: self.offset.unwrap_or_default(),
            data: source.optional(self.data),
            positioned: self.positioned.unwrap_or_default(),
            recoverable: self.recoverable.unwrap_or_default(),
            join_leave: self.join_leave.unwrap_or_default(),
            delta: owned(self.delta),
            tags_filter: self.tf.is_some(),
            flag: self.flag.unwrap_or_default(),
            kind: self.r#type.unwrap_or_default(),
        }
    }
}

impl<'a> PublishRequest<'a> {
    fn encode(message: &'a message::PublishRequest<Bytes>) -> Result<Self, EncodeError> {
        Ok(Self {
            data: embed(&message.data)?,
            channel: text(&message.channel),
            r#type: nonzero(message.kind),
            motet: message.motet.as_ref().map(PublishExtension::encode),
        })
    }

    fn decode(self, source: &Source<'_>) -> message::PublishRequest<Bytes> {
        message::PublishRequest {
            channel: owned(self.channel),
            data: source.payload(self.data),
            kind: self.r#type.unwrap_or_default(),
            motet: self.motet.map(PublishExtension::decode),
        }
    }
}

impl<'a> PublishExtension<'a> {
    fn encode(message: &'a message::PublishExtension) -> Self {
        Self {
            key: message.key.as_deref().map(Into::into),
            message_id: message.message_id.as_deref().map(Into::into),
            timestamp_ms: message.timestamp_ms,
        }
    }

    fn decode(self) -> message::PublishExtension {
        message::PublishExtension {
            key: self.key.map(Into::into),
            message_id: self.message_id.map(Into::into),
            timestamp_ms: self.timestamp_ms,
        }
    }
}

impl Features {
    pub(super) fn encode(message: message::Features) -> Self {
        Self {
            idempotency: nonzero(message.idempotency),
            ordered_publish: nonzero(message.ordered_publish),
            wildcards: nonzero(message.wildcards),
        }
    }

    pub(super) fn decode(self) -> message::Features {
        message::Features {
            idempotency: self.idempotency.unwrap_or_default(),
            ordered_publish: self.ordered_publish.unwrap_or_default(),
            wildcards: self.wildcards.unwrap_or_default(),
        }
    }
}

impl<'a> HistoryRequest<'a> {
    fn encode(message: &'a message::HistoryRequest) -> Self {
        Self {
            channel: text(&message.channel),
            limit: nonzero(message.limit),
            since: message.since.as_ref().map(|since| StreamPosition {
                offset: nonzero(since.offset),
                epoch: text(&since.epoch),
            }),
            reverse: nonzero(message.reverse),
        }
    }

    fn decode(self) -> message::HistoryRequest {
        message::HistoryRequest {
            channel: owned(self.channel),
            limit: self.limit.unwrap_or_default(),
            since: self.since.map(|since| message::StreamPosition {
                offset: since.offset.unwrap_or_default(),
                epoch: owned(since.epoch),
            }),
            reverse: self.reverse.unwrap_or_default(),
        }
    }
}

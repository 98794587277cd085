//! Replies and pushes as Protobuf.

use bytes::Bytes;

use super::wire::{
    ClientInfo, ConnectResult, Data, Disconnect, Empty, Error, Expiry, Features, HistoryResult,
    Info, PresenceResult, PresenceStats, Publication, Push, RefreshResult, Reply, SubscribePush,
    SubscribeResult, Unsubscribe,
};
use super::{Source, field};
use crate::message::{
    self, DisconnectCode, PushEvent, ReplyBody, ServerErrorCode, UnsubscribeCode,
};

impl Reply {
    pub(super) fn encode(message: &message::Reply<Bytes>) -> Self {
        let mut wire = Self { id: message.id, ..Self::default() };
        match &message.body {
            ReplyBody::Empty => {}
            ReplyBody::Error(error) => {
                wire.error = Some(Error {
                    code: error.code.0,
                    message: error.message.clone(),
                    temporary: error.temporary,
                });
            }
            ReplyBody::Push(push) => wire.push = Some(Push::encode(push)),
            ReplyBody::Connect(result) => wire.connect = Some(ConnectResult::encode(result)),
            ReplyBody::Subscribe(result) => wire.subscribe = Some(SubscribeResult::encode(result)),
            ReplyBody::Unsubscribe => wire.unsubscribe = Some(Empty {}),
            ReplyBody::Publish => wire.publish = Some(Empty {}),
            ReplyBody::Presence(result) => wire.presence = Some(PresenceResult::encode(result)),
            ReplyBody::PresenceStats(result) => {
                wire.presence_stats = Some(PresenceStats {
                    num_clients: result.num_clients,
                    num_users: result.num_users,
                });
            }
            ReplyBody::History(result) => wire.history = Some(HistoryResult::encode(result)),
            ReplyBody::Ping => wire.ping = Some(Empty {}),
            ReplyBody::Rpc(result) => wire.rpc = Some(Data { data: result.data.clone() }),
            ReplyBody::Refresh(result) => {
                wire.refresh = Some(RefreshResult {
                    client: result.client.clone(),
                    version: result.version.clone(),
                    expires: result.expires,
                    ttl: result.ttl,
                });
            }
            ReplyBody::SubRefresh(result) => {
                wire.sub_refresh = Some(Expiry { expires: result.expires, ttl: result.ttl });
            }
        }
        wire
    }

    /// The first member that is set counts, in the order of the protocol's fields.
    pub(super) fn decode(self, source: Source) -> message::Reply<Bytes> {
        let id = self.id;
        let body = if let Some(wire) = self.error {
            ReplyBody::Error(message::ErrorReply {
                code: ServerErrorCode(wire.code),
                message: wire.message,
                temporary: wire.temporary,
            })
        } else if let Some(wire) = self.push {
            ReplyBody::Push(wire.decode(source))
        } else if let Some(wire) = self.connect {
            ReplyBody::Connect(Box::new(wire.decode(source)))
        } else if let Some(wire) = self.subscribe {
            ReplyBody::Subscribe(Box::new(wire.decode(source)))
        } else if self.unsubscribe.is_some() {
            ReplyBody::Unsubscribe
        } else if self.publish.is_some() {
            ReplyBody::Publish
        } else if let Some(wire) = self.presence {
            ReplyBody::Presence(wire.decode(source))
        } else if let Some(wire) = self.presence_stats {
            ReplyBody::PresenceStats(message::PresenceStatsResult {
                num_clients: wire.num_clients,
                num_users: wire.num_users,
            })
        } else if let Some(wire) = self.history {
            ReplyBody::History(wire.decode(source))
        } else if self.ping.is_some() {
            ReplyBody::Ping
        } else if let Some(wire) = self.rpc {
            ReplyBody::Rpc(message::RpcResult { data: source.payload(wire.data) })
        } else if let Some(wire) = self.refresh {
            ReplyBody::Refresh(message::RefreshResult {
                client: wire.client,
                version: wire.version,
                expires: wire.expires,
                ttl: wire.ttl,
            })
        } else if let Some(Expiry { expires, ttl }) = self.sub_refresh {
            ReplyBody::SubRefresh(message::SubRefreshResult { expires, ttl })
        } else {
            ReplyBody::Empty
        };
        message::Reply { id, body }
    }
}

impl Push {
    fn encode(message: &message::Push<Bytes>) -> Self {
        let mut wire = Self { channel: message.channel.clone(), ..Self::default() };
        match &message.event {
            PushEvent::Publication(publication) => {
                wire.publication = Some(Publication::encode(publication));
            }
            PushEvent::Join(info) => wire.join = Some(Info::encode(info)),
            PushEvent::Leave(info) => wire.leave = Some(Info::encode(info)),
            PushEvent::Unsubscribe(push) => {
                wire.unsubscribe =
                    Some(Unsubscribe { code: push.code.0, reason: push.reason.clone() });
            }
            PushEvent::Message(data) => wire.message = Some(Data { data: data.clone() }),
            PushEvent::Subscribe(push) => wire.subscribe = Some(SubscribePush::encode(push)),
            PushEvent::Disconnect(push) => {
                wire.disconnect =
                    Some(Disconnect { code: push.code.0, reason: push.reason.clone() });
            }
            PushEvent::Refresh(push) => {
                wire.refresh = Some(Expiry { expires: push.expires, ttl: push.ttl });
            }
            PushEvent::Unknown => {}
        }
        wire
    }

    fn decode(self, source: Source) -> message::Push<Bytes> {
        let event = if let Some(wire) = self.publication {
            PushEvent::Publication(Box::new(wire.decode(source)))
        } else if let Some(wire) = self.join {
            PushEvent::Join(Box::new(wire.decode(source)))
        } else if let Some(wire) = self.leave {
            PushEvent::Leave(Box::new(wire.decode(source)))
        } else if let Some(wire) = self.unsubscribe {
            let code = UnsubscribeCode(wire.code);
            PushEvent::Unsubscribe(message::Unsubscribe { code, reason: wire.reason })
        } else if let Some(wire) = self.message {
            PushEvent::Message(source.payload(wire.data))
        } else if let Some(wire) = self.subscribe {
            PushEvent::Subscribe(wire.decode(source))
        } else if let Some(wire) = self.disconnect {
            let code = DisconnectCode(wire.code);
            PushEvent::Disconnect(message::Disconnect { code, reason: wire.reason })
        } else if let Some(Expiry { expires, ttl }) = self.refresh {
            PushEvent::Refresh(message::RefreshPush { expires, ttl })
        } else {
            PushEvent::Unknown
        };
        message::Push { channel: self.channel, event }
    }
}

impl Info {
    fn encode(message: &message::ClientInfo<Bytes>) -> Self {
        Self { info: Some(ClientInfo::encode(message)) }
    }

    fn decode(self, source: Source) -> message::ClientInfo<Bytes> {
        self.info.unwrap_or_default().decode(source)
    }
}

impl ConnectResult {
    fn encode(message: &message::ConnectResult<Bytes>) -> Self {
        Self {
            client: message.client.clone(),
            version: message.version.clone(),
            expires: message.expires,
            ttl: message.ttl,
            data: field(message.data.as_ref()),
            subs: message
                .subs
                .iter()
                .map(|(channel, result)| (channel.clone(), SubscribeResult::encode(result)))
                .collect(),
            ping: message.ping,
            pong: message.pong,
            session: message.session.clone(),
            node: message.node.clone(),
            time: message.time,
            motet: message.motet.map(Features::encode),
        }
    }

    fn decode(self, source: Source) -> message::ConnectResult<Bytes> {
        message::ConnectResult {
            client: self.client,
            version: self.version,
            expires: self.expires,
            ttl: self.ttl,
            data: source.optional(self.data),
            subs: self
                .subs
                .into_iter()
                .map(|(channel, wire)| (channel, wire.decode(source)))
                .collect(),
            ping: self.ping,
            pong: self.pong,
            session: self.session,
            node: self.node,
            time: self.time,
            motet: self.motet.map(Features::decode),
        }
    }
}

impl SubscribeResult {
    fn encode(message: &message::SubscribeResult<Bytes>) -> Self {
        Self {
            expires: message.expires,
            ttl: message.ttl,
            recoverable: message.recoverable,
            epoch: message.epoch.clone(),
            publications: message.publications.iter().map(Publication::encode).collect(),
            recovered: message.recovered,
            offset: message.offset,
            positioned: message.positioned,
            data: field(message.data.as_ref()),
            was_recovering: message.was_recovering,
        }
    }

    fn decode(self, source: Source) -> message::SubscribeResult<Bytes> {
        message::SubscribeResult {
            expires: self.expires,
            ttl: self.ttl,
            recoverable: self.recoverable,
            epoch: self.epoch,
            publications: Publication::decode_all(self.publications, source),
            recovered: self.recovered,
            offset: self.offset,
            positioned: self.positioned,
            data: source.optional(self.data),
            was_recovering: self.was_recovering,
        }
    }
}

impl SubscribePush {
    fn encode(message: &message::SubscribePush<Bytes>) -> Self {
        Self {
            recoverable: message.recoverable,
            epoch: message.epoch.clone(),
            offset: message.offset,
            positioned: message.positioned,
            data: field(message.data.as_ref()),
        }
    }

    fn decode(self, source: Source) -> message::SubscribePush<Bytes> {
        message::SubscribePush {
            recoverable: self.recoverable,
            epoch: self.epoch,
            offset: self.offset,
            positioned: self.positioned,
            data: source.optional(self.data),
        }
    }
}

impl PresenceResult {
    fn encode(message: &message::PresenceResult<Bytes>) -> Self {
        let presence = message.presence.iter();
        Self {
            presence: presence
                .map(|(client, info)| (client.clone(), ClientInfo::encode(info)))
                .collect(),
        }
    }

    fn decode(self, source: Source) -> message::PresenceResult<Bytes> {
        let presence = self.presence.into_iter();
        message::PresenceResult {
            presence: presence.map(|(client, info)| (client, info.decode(source))).collect(),
        }
    }
}

impl HistoryResult {
    fn encode(message: &message::HistoryResult<Bytes>) -> Self {
        Self {
            publications: message.publications.iter().map(Publication::encode).collect(),
            epoch: message.epoch.clone(),
            offset: message.offset,
        }
    }

    fn decode(self, source: Source) -> message::HistoryResult<Bytes> {
        message::HistoryResult {
            publications: Publication::decode_all(self.publications, source),
            epoch: self.epoch,
            offset: self.offset,
        }
    }
}

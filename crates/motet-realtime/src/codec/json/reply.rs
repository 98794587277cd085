//! Replies and pushes as JSON.

use bytes::Bytes;

use super::wire::{
    ClientInfo, Coded, ConnectResult, Data, Empty, Error, Expiry, Features, HistoryResult, Info,
    PresenceResult, PresenceStats, Publication, Push, RefreshResult, Reply, SubscribePush,
    SubscribeResult, nonzero, nonzero_map, owned, text,
};
use super::{Source, embed, embed_optional};
use crate::codec::EncodeError;
use crate::message::{
    self, DisconnectCode, PushEvent, ReplyBody, ServerErrorCode, UnsubscribeCode,
};

impl<'a> Reply<'a> {
    pub(super) fn encode(message: &'a message::Reply<Bytes>) -> Result<Self, EncodeError> {
        let mut wire = Self { id: nonzero(message.id), ..Self::default() };
        match &message.body {
            ReplyBody::Empty => {}
            ReplyBody::Error(error) => {
                wire.error = Some(Error {
                    code: nonzero(error.code.0),
                    message: text(&error.message),
                    temporary: nonzero(error.temporary),
                });
            }
            ReplyBody::Push(push) => wire.push = Some(Push::encode(push)?),
            ReplyBody::Connect(result) => wire.connect = Some(ConnectResult::encode(result)?),
            ReplyBody::Subscribe(result) => {
                wire.subscribe = Some(SubscribeResult::encode(result)?);
            }
            ReplyBody::Unsubscribe => wire.unsubscribe = Some(Empty {}),
            ReplyBody::Publish => wire.publish = Some(Empty {}),
            ReplyBody::Presence(result) => wire.presence = Some(PresenceResult::encode(result)?),
            ReplyBody::PresenceStats(result) => {
                wire.presence_stats = Some(PresenceStats {
                    num_clients: nonzero(result.num_clients),
                    num_users: nonzero(result.num_users),
                });
            }
            ReplyBody::History(result) => wire.history = Some(HistoryResult::encode(result)?),
            ReplyBody::Ping => wire.ping = Some(Empty {}),
            ReplyBody::Rpc(result) => wire.rpc = Some(Data { data: embed(&result.data)? }),
            ReplyBody::Refresh(result) => {
                wire.refresh = Some(RefreshResult {
                    client: text(&result.client),
                    version: text(&result.version),
                    expires: nonzero(result.expires),
                    ttl: nonzero(result.ttl),
                });
            }
            ReplyBody::SubRefresh(result) => {
                wire.sub_refresh = Some(Expiry::encode(result.expires, result.ttl));
            }
        }
        Ok(wire)
    }

    /// The first member that is set counts, in the order of the protocol's fields.
    pub(super) fn decode(self, source: &Source<'_>) -> message::Reply<Bytes> {
        let id = self.id.unwrap_or_default();
        let body = if let Some(wire) = self.error {
            ReplyBody::Error(wire.decode())
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
                num_clients: wire.num_clients.unwrap_or_default(),
                num_users: wire.num_users.unwrap_or_default(),
            })
        } else if let Some(wire) = self.history {
            ReplyBody::History(wire.decode(source))
        } else if self.ping.is_some() {
            ReplyBody::Ping
        } else if let Some(wire) = self.rpc {
            ReplyBody::Rpc(message::RpcResult { data: source.payload(wire.data) })
        } else if let Some(wire) = self.refresh {
            ReplyBody::Refresh(wire.decode())
        } else if let Some(wire) = self.sub_refresh {
            let (expires, ttl) = wire.decode();
            ReplyBody::SubRefresh(message::SubRefreshResult { expires, ttl })
        } else {
            ReplyBody::Empty
        };
        message::Reply { id, body }
    }
}

impl Error<'_> {
    fn decode(self) -> message::ErrorReply {
        message::ErrorReply {
            code: ServerErrorCode(self.code.unwrap_or_default()),
            message: owned(self.message),
            temporary: self.temporary.unwrap_or_default(),
        }
    }
}

impl RefreshResult<'_> {
    fn decode(self) -> message::RefreshResult {
        message::RefreshResult {
            client: owned(self.client),
            version: owned(self.version),
            expires: self.expires.unwrap_or_default(),
            ttl: self.ttl.unwrap_or_default(),
        }
    }
}

impl Expiry {
    fn encode(expires: bool, ttl: u32) -> Self {
        Self { expires: nonzero(expires), ttl: nonzero(ttl) }
    }

    fn decode(self) -> (bool, u32) {
        (self.expires.unwrap_or_default(), self.ttl.unwrap_or_default())
    }
}

impl<'a> Push<'a> {
    fn encode(message: &'a message::Push<Bytes>) -> Result<Self, EncodeError> {
        let mut wire = Self { channel: text(&message.channel), ..Self::default() };
        match &message.event {
            PushEvent::Publication(publication) => {
                wire.r#pub = Some(Publication::encode(publication)?);
            }
            PushEvent::Join(info) => wire.join = Some(Info::encode(info)?),
            PushEvent::Leave(info) => wire.leave = Some(Info::encode(info)?),
            PushEvent::Unsubscribe(push) => {
                wire.unsubscribe = Some(Coded::encode(push.code.0, &push.reason));
            }
            PushEvent::Message(data) => wire.message = Some(Data { data: embed(data)? }),
            PushEvent::Subscribe(push) => wire.subscribe = Some(SubscribePush::encode(push)?),
            PushEvent::Disconnect(push) => {
                wire.disconnect = Some(Coded::encode(push.code.0, &push.reason));
            }
            PushEvent::Refresh(push) => {
                wire.refresh = Some(Expiry::encode(push.expires, push.ttl));
            }
            PushEvent::Unknown => {}
        }
        Ok(wire)
    }

    fn decode(self, source: &Source<'_>) -> message::Push<Bytes> {
        let event = if let Some(wire) = self.r#pub {
            PushEvent::Publication(Box::new(wire.decode(source)))
        } else if let Some(wire) = self.join {
            PushEvent::Join(Box::new(wire.decode(source)))
        } else if let Some(wire) = self.leave {
            PushEvent::Leave(Box::new(wire.decode(source)))
        } else if let Some(wire) = self.unsubscribe {
            let (code, reason) = wire.decode();
            PushEvent::Unsubscribe(message::Unsubscribe { code: UnsubscribeCode(code), reason })
        } else if let Some(wire) = self.message {
            PushEvent::Message(source.payload(wire.data))
        } else if let Some(wire) = self.subscribe {
            PushEvent::Subscribe(wire.decode(source))
        } else if let Some(wire) = self.disconnect {
            let (code, reason) = wire.decode();
            PushEvent::Disconnect(message::Disconnect { code: DisconnectCode(code), reason })
        } else if let Some(wire) = self.refresh {
            let (expires, ttl) = wire.decode();
            PushEvent::Refresh(message::RefreshPush { expires, ttl })
        } else {
            PushEvent::Unknown
        };
        message::Push { channel: owned(self.channel), event }
    }
}

impl<'a> Coded<'a> {
    fn encode(code: u32, reason: &'a str) -> Self {
        Self { code: nonzero(code), reason: text(reason) }
    }

    fn decode(self) -> (u32, String) {
        (self.code.unwrap_or_default(), owned(self.reason))
    }
}

impl<'a> Info<'a> {
    fn encode(message: &'a message::ClientInfo<Bytes>) -> Result<Self, EncodeError> {
        Ok(Self { info: Some(ClientInfo::encode(message)?) })
    }

    fn decode(self, source: &Source<'_>) -> message::ClientInfo<Bytes> {
        self.info.unwrap_or_default().decode(source)
    }
}

impl<'a> ConnectResult<'a> {
    fn encode(message: &'a message::ConnectResult<Bytes>) -> Result<Self, EncodeError> {
        let subs = message
            .subs
            .iter()
            .map(|(channel, result)| {
                Ok((channel.as_str().into(), SubscribeResult::encode(result)?))
            })
            .collect::<Result<_, EncodeError>>()?;
        Ok(Self {
            client: text(&message.client),
            version: text(&message.version),
            expires: nonzero(message.expires),
            ttl: nonzero(message.ttl),
            data: embed_optional(message.data.as_ref())?,
            subs: nonzero_map(subs),
            ping: nonzero(message.ping),
            pong: nonzero(message.pong),
            session: text(&message.session),
            node: text(&message.node),
            time: nonzero(message.time),
            motet: message.motet.map(Features::encode),
        })
    }

    fn decode(self, source: &Source<'_>) -> message::ConnectResult<Bytes> {
        message::ConnectResult {
            client: owned(self.client),
            version: owned(self.version),
            expires: self.expires.unwrap_or_default(),
            ttl: self.ttl.unwrap_or_default(),
            data: source.optional(self.data),
            subs: self
                .subs
                .unwrap_or_default()
                .into_iter()
                .map(|(channel, wire)| (channel.into_owned(), wire.decode(source)))
                .collect(),
            ping: self.ping.unwrap_or_default(),
            pong: self.pong.unwrap_or_default(),
            session: owned(self.session),
            node: owned(self.node),
            time: self.time.unwrap_or_default(),
            motet: self.motet.map(Features::decode),
        }
    }
}

impl<'a> SubscribeResult<'a> {
    fn encode(message: &'a message::SubscribeResult<Bytes>) -> Result<Self, EncodeError> {
        Ok(Self {
            expires: nonzero(message.expires),
            ttl: nonzero(message.ttl),
            recoverable: nonzero(message.recoverable),
            epoch: text(&message.epoch),
            publications: Publication::encode_all(&message.publications)?,
            recovered: nonzero(message.recovered),
            offset: nonzero(message.offset),
            positioned: nonzero(message.positioned),
            data: embed_optional(message.data.as_ref())?,
            was_recovering: nonzero(message.was_recovering),
        })
    }

    fn decode(self, source: &Source<'_>) -> message::SubscribeResult<Bytes> {
        message::SubscribeResult {
            expires: self.expires.unwrap_or_default(),
            ttl: self.ttl.unwrap_or_default(),
            recoverable: self.recoverable.unwrap_or_default(),
            epoch: owned(self.epoch),
            publications: Publication::decode_all(self.publications, source),
            recovered: self.recovered.unwrap_or_default(),
            offset: self.offset.unwrap_or_default(),
            positioned: self.positioned.unwrap_or_default(),
            data: source.optional(self.data),
            was_recovering: self.was_recovering.unwrap_or_default(),
        }
    }
}

impl<'a> SubscribePush<'a> {
    fn encode(message: &'a message::SubscribePush<Bytes>) -> Result<Self, EncodeError> {
        Ok(Self {
            recoverable: nonzero(message.recoverable),
            epoch: text(&message.epoch),
            offset: nonzero(message.offset),
            positioned: nonzero(message.positioned),
            data: embed_optional(message.data.as_ref())?,
        })
    }

    fn decode(self, source: &Source<'_>) -> message::SubscribePush<Bytes> {
        message::SubscribePush {
            recoverable: self.recoverable.unwrap_or_default(),
            epoch: owned(self.epoch),
            offset: self.offset.unwrap_or_default(),
            positioned: self.positioned.unwrap_or_default(),
            data: source.optional(self.data),
        }
    }
}

impl<'a> PresenceResult<'a> {
    fn encode(message: &'a message::PresenceResult<Bytes>) -> Result<Self, EncodeError> {
        let presence = message
            .presence
            .iter()
            .map(|(client, info)| Ok((client.as_str().into(), ClientInfo::encode(info)?)))
            .collect::<Result<_, EncodeError>>()?;
        Ok(Self { presence: nonzero_map(presence) })
    }

    fn decode(self, source: &Source<'_>) -> message::PresenceResult<Bytes> {
        let presence = self.presence.unwrap_or_default().into_iter();
        message::PresenceResult {
            presence: presence
                .map(|(client, info)| (client.into_owned(), info.decode(source)))
                .collect(),
        }
    }
}

impl<'a> HistoryResult<'a> {
    fn encode(message: &'a message::HistoryResult<Bytes>) -> Result<Self, EncodeError> {
        Ok(Self {
            publications: Publication::encode_all(&message.publications)?,
            epoch: text(&message.epoch),
            offset: nonzero(message.offset),
        })
    }

    fn decode(self, source: &Source<'_>) -> message::HistoryResult<Bytes> {
        message::HistoryResult {
            publications: Publication::decode_all(self.publications, source),
            epoch: owned(self.epoch),
            offset: self.offset.unwrap_or_default(),
        }
    }
}

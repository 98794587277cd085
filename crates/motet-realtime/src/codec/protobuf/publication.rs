//! Publications and client information as Protobuf, shared by replies and pushes.

use bytes::Bytes;

use super::wire::{ClientInfo, Publication};
use super::{Source, field};
use crate::message;

impl Publication {
    pub(super) fn encode(message: &message::Publication<Bytes>) -> Self {
        Self {
            data: message.data.clone(),
            info: message.info.as_ref().map(ClientInfo::encode),
            offset: message.offset,
            tags: message.tags.clone(),
            time: message.time,
            channel: message.channel.clone(),
            epoch: message.epoch.clone(),
        }
    }

    pub(super) fn decode(self, source: Source) -> message::Publication<Bytes> {
        message::Publication {
            data: source.payload(self.data),
            info: self.info.map(|info| info.decode(source)),
            offset: self.offset,
            tags: self.tags,
            time: self.time,
            channel: self.channel,
            epoch: self.epoch,
        }
    }

    pub(super) fn decode_all(
        publications: Vec<Self>,
        source: Source,
    ) -> Vec<message::Publication<Bytes>> {
        publications.into_iter().map(|publication| publication.decode(source)).collect()
    }
}

impl ClientInfo {
    pub(super) fn encode(message: &message::ClientInfo<Bytes>) -> Self {
        Self {
            user: message.user.clone(),
            client: message.client.clone(),
            conn_info: field(message.conn_info.as_ref()),
            chan_info: field(message.chan_info.as_ref()),
        }
    }

    pub(super) fn decode(self, source: Source) -> message::ClientInfo<Bytes> {
        message::ClientInfo {
            user: self.user,
            client: self.client,
            conn_info: source.optional(self.conn_info),
            chan_info: source.optional(self.chan_info),
        }
    }
}

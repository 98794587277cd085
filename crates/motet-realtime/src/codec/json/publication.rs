//! Publications and client information as JSON, shared by replies and pushes.

use bytes::Bytes;

use super::wire::{ClientInfo, Publication, nonzero, owned, owned_texts, text, texts};
use super::{Source, embed, embed_optional};
use crate::codec::EncodeError;
use crate::message;

impl<'a> Publication<'a> {
    pub(super) fn encode(message: &'a message::Publication<Bytes>) -> Result<Self, EncodeError> {
        Ok(Self {
            data: embed(&message.data)?,
            info: message.info.as_ref().map(ClientInfo::encode).transpose()?,
            offset: nonzero(message.offset),
            tags: texts(&message.tags),
            time: nonzero(message.time),
            channel: text(&message.channel),
            epoch: text(&message.epoch),
        })
    }

    pub(super) fn decode(self, source: &Source<'_>) -> message::Publication<Bytes> {
        message::Publication {
            data: source.payload(self.data),
            info: self.info.map(|info| info.decode(source)),
            offset: self.offset.unwrap_or_default(),
            tags: owned_texts(self.tags),
            time: self.time.unwrap_or_default(),
            channel: owned(self.channel),
            epoch: owned(self.epoch),
        }
    }

    pub(super) fn encode_all(
        messages: &'a [message::Publication<Bytes>],
    ) -> Result<Option<Vec<Self>>, EncodeError> {
        if messages.is_empty() {
            return Ok(None);
        }
        messages.iter().map(Self::encode).collect::<Result<_, _>>().map(Some)
    }

    pub(super) fn decode_all(
        publications: Option<Vec<Self>>,
        source: &Source<'_>,
    ) -> Vec<message::Publication<Bytes>> {
        publications
            .unwrap_or_default()
            .into_iter()
            .map(|publication| publication.decode(source))
            .collect()
    }
}

impl<'a> ClientInfo<'a> {
    pub(super) fn encode(message: &'a message::ClientInfo<Bytes>) -> Result<Self, EncodeError> {
        Ok(Self {
            user: text(&message.user),
            client: text(&message.client),
            conn_info: embed_optional(message.conn_info.as_ref())?,
            chan_info: embed_optional(message.chan_info.as_ref())?,
        })
    }

    pub(super) fn decode(self, source: &Source<'_>) -> message::ClientInfo<Bytes> {
        message::ClientInfo {
            user: owned(self.user),
            client: owned(self.client),
            conn_info: source.optional(self.conn_info),
            chan_info: source.optional(self.chan_info),
        }
    }
}

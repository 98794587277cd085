//! Messages on their way to the same connections, encoded once and joined into chunks.

use std::sync::Arc;

use bytes::Bytes;
use motet_realtime::codec::Encoding;
use motet_realtime::hub::SessionId;
use motet_realtime::message::{Reply, ReplyBody};

use crate::connection::Backlog;

/// Bytes of a chunk, about.
const CHUNK_BYTES_TARGET: usize = 32 << 10;

/// Messages for one list of connections. They are encoded when a connection of an encoding is
/// first seen, so that nobody pays for an encoding that nobody speaks.
pub(super) struct Chunk {
    pub(super) to: Arc<Vec<SessionId>>,
    messages: Vec<Reply<Bytes>>,
    bytes: usize,
    json: Option<Encoded>,
    protobuf: Option<Encoded>,
}

/// The messages of a chunk in an encoding.
pub(super) struct Encoded {
    /// Those before the first that has no form in it.
    pub(super) bytes: Bytes,
    /// The channel of that one.
    pub(super) unfit: Option<String>,
}

impl Chunk {
    pub(super) fn new(to: Arc<Vec<SessionId>>) -> Self {
        Self { to, messages: Vec::new(), bytes: 0, json: None, protobuf: None }
    }

    pub(super) fn is_for(&self, to: &Arc<Vec<SessionId>>) -> bool {
        Arc::ptr_eq(&self.to, to)
    }

    pub(super) fn push(&mut self, message: Reply<Bytes>, payload_bytes: usize) {
        self.bytes += payload_bytes;
        self.messages.push(message);
    }

    /// Messages in it.
    pub(super) const fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) const fn is_full(&self) -> bool {
        self.bytes >= CHUNK_BYTES_TARGET
    }

    /// The messages in an encoding.
    pub(super) fn encoded(&mut self, encoding: Encoding, backlog: &Arc<Backlog>) -> &Encoded {
        let Self { messages, json, protobuf, .. } = self;
        let slot = match encoding {
            Encoding::Json => json,
            Encoding::Protobuf => protobuf,
        };
        slot.get_or_insert_with(|| {
            let mut frame = Vec::new();
            let is_unfit =
                |message: &&Reply<Bytes>| encoding.append_reply(&mut frame, message).is_err();
            let unfit = messages.iter().find(is_unfit).map(channel_of);
            Encoded { bytes: backlog.chunk(frame), unfit }
        })
    }
}

/// The channel that a pushed message concerns.
pub(super) fn channel_of(reply: &Reply<Bytes>) -> String {
    match &reply.body {
        ReplyBody::Push(push) => push.channel.clone(),
        _ => String::new(),
    }
}

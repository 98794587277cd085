//! From the hub's outputs to the connections' queues.

use std::sync::Arc;

use bytes::Bytes;
use motet_realtime::hub::SessionId;
use motet_realtime::message::{Disconnect, DisconnectCode, Push, PushEvent, Reply, ReplyBody};

use super::chunk::Chunk;
use super::sessions::Sessions;
use crate::connection::{Kind, Outgoing, Pushed};
use crate::metrics::Metrics;

/// Chunks that are open at a time.
const OPEN_CHUNKS_MAX: usize = 16;

/// A connection that could not be served and why.
pub(super) struct Failed {
    pub(super) session: SessionId,
    pub(super) code: DisconnectCode,
}

/// Delivers to the connections' queues.
///
/// Publications to the same connections that follow each other are joined: one look-up, one lock
/// and one shared buffer per connection for all of them. A reply that is part of a channel's order
/// goes out only after the publications before it.
pub(super) struct Delivery {
    sessions: Sessions,
    open: Vec<Chunk>,
    failed: Vec<Failed>,
    metrics: Arc<Metrics>,
}

impl Delivery {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { sessions: Sessions::default(), open: Vec::new(), failed: Vec::new(), metrics }
    }

    pub(super) fn add(&mut self, session: SessionId, outgoing: Arc<Outgoing>) {
        self.sessions.insert(session, outgoing);
    }

    pub(super) fn remove(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    pub(super) fn find(&self, session: SessionId) -> Option<&Arc<Outgoing>> {
        self.sessions.get(&session)
    }

    /// Connections that could not be served since the last call.
    pub(super) fn take_failed(&mut self) -> Vec<Failed> {
        core::mem::take(&mut self.failed)
    }

    pub(super) fn fan_out(&mut self, push: Push<Bytes>, to: Arc<Vec<SessionId>>) {
        let bytes = payload_bytes(&push);
        let at = self.open.iter().position(|chunk| chunk.is_for(&to)).unwrap_or_else(|| {
            if self.open.len() == OPEN_CHUNKS_MAX {
                self.flush();
            }
            self.open.push(Chunk::new(to));
            self.open.len() - 1
        });
        self.open[at].push(Reply::push(push), bytes);
        if self.open[at].is_full() {
            let chunk = self.open.remove(at);
            self.deliver(chunk);
        }
    }

    pub(super) fn reply(&mut self, session: SessionId, reply: &Reply<Bytes>) {
        if !is_order_free(reply) {
            self.flush();
        }
        let Some(outgoing) = self.sessions.get(&session) else { return };
        let mut frame = Vec::new();
        if outgoing.encoding().append_reply(&mut frame, reply).is_err() {
            self.failed.push(Failed { session, code: DisconnectCode::INAPPROPRIATE_PROTOCOL });
            return;
        }
        self.metrics.messages_sent.inc();
        if outgoing.push(Kind::Answer, Bytes::from(frame)) == Pushed::Overflow {
            self.failed.push(Failed { session, code: DisconnectCode::SLOW });
        }
    }

    pub(super) fn ping(&self, session: SessionId) {
        if let Some(outgoing) = self.sessions.get(&session) {
            outgoing.ping();
        }
    }

    pub(super) fn close(&mut self, session: SessionId, disconnect: Disconnect) {
        self.flush();
        if let Some(outgoing) = self.sessions.remove(&session) {
            self.metrics.disconnected(disconnect.code);
            outgoing.close(disconnect);
        }
    }

    /// Delivers all open chunks.
    pub(super) fn flush(&mut self) {
        for chunk in core::mem::take(&mut self.open) {
            self.deliver(chunk);
        }
    }

    fn deliver(&mut self, mut chunk: Chunk) {
        let to = chunk.to.clone();
        let messages = chunk.len();
        for session in to.iter() {
            let Some(outgoing) = self.sessions.get(session) else { continue };
            let code = match chunk.encoded(outgoing.encoding()) {
                Ok(bytes) => match outgoing.push(Kind::Push, bytes.clone()) {
                    Pushed::Queued | Pushed::Closing => continue,
                    Pushed::Overflow => DisconnectCode::SLOW,
                },
                // A binary payload for a client that speaks JSON.
                Err(_) => DisconnectCode::INAPPROPRIATE_PROTOCOL,
            };
            self.failed.push(Failed { session: *session, code });
        }
        let deliveries = u64::try_from(messages * to.len()).unwrap_or(u64::MAX);
        self.metrics.messages_sent.inc_by(deliveries);
    }
}

/// Whether a reply may overtake publications: it says nothing about a channel's position.
const fn is_order_free(reply: &Reply<Bytes>) -> bool {
    matches!(
        reply.body,
        ReplyBody::Publish
            | ReplyBody::Empty
            | ReplyBody::Error(_)
            | ReplyBody::Presence(_)
            | ReplyBody::PresenceStats(_)
            | ReplyBody::Refresh(_)
            | ReplyBody::SubRefresh(_)
    )
}

fn payload_bytes(push: &Push<Bytes>) -> usize {
    match &push.event {
        PushEvent::Publication(publication) => publication.data.len(),
        _ => 0,
    }
}

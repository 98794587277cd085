//! From the hub's outputs to the connections' queues.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use motet_realtime::hub::SessionId;
use motet_realtime::message::{Disconnect, Push, PushEvent, Reply, ReplyBody};

use super::chunk::{Chunk, channel_of};
use super::sessions::Sessions;
use super::unfit;
use crate::connection::{Backlog, Kind, Outgoing, Pushed};
use crate::metrics::Metrics;

/// Chunks that are open at a time.
const OPEN_CHUNKS_MAX: usize = 16;

/// A connection that could not be served and why.
pub(super) struct Failed {
    pub(super) session: SessionId,
    pub(super) cause: Cause,
}

pub(super) enum Cause {
    /// It does not read what it is sent.
    Slow,
    /// Its encoding has no form for what this channel carries.
    Unfit(String),
    /// Its encoding has no form for an answer.
    UnfitAnswer,
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
    backlog: Arc<Backlog>,
    /// Bytes that may wait for all connections together; 0 sets no limit.
    backlog_bytes_max: usize,
    metrics: Arc<Metrics>,
}

impl Delivery {
    pub(super) fn new(metrics: Arc<Metrics>, backlog_bytes_max: usize) -> Self {
        Self {
            sessions: Sessions::default(),
            open: Vec::new(),
            failed: Vec::new(),
            backlog: Arc::default(),
            backlog_bytes_max,
            metrics,
        }
    }

    /// Bytes that wait for all connections together.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.backlog.bytes()
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

    pub(super) fn reply(&mut self, session: SessionId, reply: Reply<Bytes>) {
        if !is_order_free(&reply) {
            self.flush();
        }
        let Some(outgoing) = self.sessions.get(&session) else { return };
        let encoding = outgoing.encoding();
        let kind = if reply.id > 0 { Kind::Answer } else { Kind::Push };
        let mut frame = Vec::new();
        if encoding.append_reply(&mut frame, &reply).is_err() {
            if kind == Kind::Push {
                let cause = Cause::Unfit(channel_of(&reply));
                return self.failed.push(Failed { session, cause });
            }
            let sent = unfit::instead(reply, encoding)
                .is_some_and(|reply| encoding.append_reply(&mut frame, &reply).is_ok());
            if !sent {
                return self.failed.push(Failed { session, cause: Cause::UnfitAnswer });
            }
        }
        self.metrics.messages_sent.inc();
        if outgoing.push(kind, self.backlog.chunk(frame)) == Pushed::Overflow {
            self.failed.push(Failed { session, cause: Cause::Slow });
        }
        self.relieve();
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
            let encoded = chunk.encoded(outgoing.encoding(), &self.backlog);
            let pushed = if encoded.bytes.is_empty() {
                Pushed::Queued
            } else {
                outgoing.push(Kind::Push, encoded.bytes.clone())
            };
            let cause = match (pushed, &encoded.unfit) {
                (Pushed::Overflow, _) => Cause::Slow,
                (Pushed::Queued, Some(channel)) => Cause::Unfit(channel.clone()),
                (Pushed::Queued | Pushed::Closing, _) => continue,
            };
            self.failed.push(Failed { session: *session, cause });
        }
        let deliveries = u64::try_from(messages * to.len()).unwrap_or(u64::MAX);
        self.metrics.messages_sent.inc_by(deliveries);
        drop(chunk);
        self.relieve();
    }

    /// When too much waits for all connections together, drops what waits for those that hold the
    /// most for the longest, until it does not.
    fn relieve(&mut self) {
        let too_much = |backlog: &Backlog, max| max > 0 && backlog.bytes() > max;
        if !too_much(&self.backlog, self.backlog_bytes_max) {
            return;
        }
        let now = Instant::now();
        let burdens =
            self.sessions.iter().map(|(session, outgoing)| (outgoing.burden(now), *session));
        let mut burdens: Vec<_> = burdens.filter(|(burden, _)| *burden > 0).collect();
        burdens.sort_unstable();
        while too_much(&self.backlog, self.backlog_bytes_max)
            && let Some((_, session)) = burdens.pop()
        {
            if let Some(outgoing) = self.sessions.get(&session) {
                outgoing.give_up();
                self.failed.push(Failed { session, cause: Cause::Slow });
            }
        }
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

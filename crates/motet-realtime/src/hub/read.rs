//! Reading: history, presence, presence counts.

use motet_protocol::Instant;

use super::{Hub, SessionId, Waiter};
use crate::broker::{BrokerOp, HistoryPage, HistoryQuery};
use crate::message::{HistoryRequest, HistoryResult, ReplyBody, ServerErrorCode, StreamPosition};
use crate::payload::Payload;
use crate::server::{Namespace, Right, Step};

impl<P: Payload> Hub<P> {
    pub(super) fn history(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        request: HistoryRequest,
    ) {
        if request.channel.is_empty() {
            return self.disconnect_bad_request(id);
        }
        let namespace = match self.right_to(Right::History, id, &request.channel) {
            Ok(namespace) => namespace,
            Err(code) => return self.refuse(id, command, code),
        };
        let retention = namespace.retention(self.options.history_meta_ttl);
        let query =
            self.history_query(namespace, request.limit, request.since.as_ref(), request.reverse);
        let query = match query {
            Ok(query) => query,
            Err(code) => return self.refuse(id, command, code),
        };
        let channel = self.channel_key(&request.channel);
        let op = self.ask(&channel, BrokerOp::History(query, retention), Waiter::Command(id));
        self.wait(now, id, op, Step::History { command, request });
    }

    pub(super) fn history_read(
        &mut self,
        id: SessionId,
        command: u32,
        since: Option<&StreamPosition>,
        page: HistoryPage<P>,
    ) {
        if !is_same_life(since, &page.top) {
            return self.refuse(id, command, ServerErrorCode::UNRECOVERABLE_POSITION);
        }
        let result = HistoryResult {
            publications: page.publications,
            epoch: page.top.epoch,
            offset: page.top.offset,
        };
        self.answer(id, command, ReplyBody::History(result));
    }

    pub(super) fn presence(&mut self, now: Instant, id: SessionId, command: u32, channel: &str) {
        if channel.is_empty() {
            return self.disconnect_bad_request(id);
        }
        if let Err(code) = self.may_see_presence(id, channel) {
            return self.refuse(id, command, code);
        }
        let channel = self.channel_key(channel);
        let op = self.ask(&channel, BrokerOp::Presence, Waiter::Command(id));
        self.wait(now, id, op, Step::Presence { command });
    }

    pub(super) fn presence_stats(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        channel: &str,
    ) {
        if channel.is_empty() {
            return self.disconnect_bad_request(id);
        }
        if let Err(code) = self.may_see_presence(id, channel) {
            return self.refuse(id, command, code);
        }
        let channel = self.channel_key(channel);
        let op = self.ask(&channel, BrokerOp::PresenceStats, Waiter::Command(id));
        self.wait(now, id, op, Step::PresenceStats { command });
    }

    /// Checks a history request against its namespace. -1 stands for as many publications as
    /// allowed.
    pub(super) fn history_query(
        &self,
        namespace: &Namespace,
        wanted: i32,
        since: Option<&StreamPosition>,
        reverse: bool,
    ) -> Result<HistoryQuery, ServerErrorCode> {
        if !namespace.history_enabled() {
            return Err(ServerErrorCode::NOT_AVAILABLE);
        }
        if reverse && since.is_some_and(|since| since.offset == 0) {
            return Err(ServerErrorCode::BAD_REQUEST);
        }
        let max = self.options.history_max_publication_limit;
        let limit = usize::try_from(wanted).map_or(max, |wanted| wanted.min(max));
        Ok(HistoryQuery {
            since: since.map(|since| since.offset),
            limit: Some(limit),
            reverse,
            bytes_max: Some(self.options.history_bytes_max),
        })
    }

    fn may_see_presence(&self, id: SessionId, channel: &str) -> Result<(), ServerErrorCode> {
        let namespace = self.right_to(Right::Presence, id, channel)?;
        if namespace.presence { Ok(()) } else { Err(ServerErrorCode::NOT_AVAILABLE) }
    }
}

/// Whether a position belongs to the stream's present life; an empty epoch belongs to any.
pub(super) fn is_same_life(since: Option<&StreamPosition>, top: &StreamPosition) -> bool {
    since.is_none_or(|since| since.epoch.is_empty() || since.epoch == top.epoch)
}

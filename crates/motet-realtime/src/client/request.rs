//! Calls of the node that are answered once: publish and history.

use motet_protocol::transport::{HistoryPage, HistoryRequest, PublishRequest, TransportEvent};
use motet_protocol::{CallId, Error, ErrorCode, Instant, Position, StreamEpoch};

use super::call::Purpose;
use super::held::NodeCall;
use super::link::{Link, Next};
use super::subscription::hand_out_all;
use super::{Client, refusal};
use crate::message::{self, ErrorReply, HistoryResult, PublishExtension, Request, StreamPosition};

impl<P: Clone> Client<P> {
    /// Sends a call, or holds it while the connection is about to stand.
    pub(super) fn call(&mut self, now: Instant, call: NodeCall<P>) {
        if self.calls.len() + self.held.len() >= self.config.calls_max {
            return self.fail(&call, ErrorCode::Backpressure.into());
        }
        match self.link {
            Link::Connected { .. } => self.send_call(now, call),
            Link::AwaitingToken { .. } | Link::Opening { .. } | Link::Connecting { .. } => {
                self.held.push(call);
            }
            Link::Closing { then: Next::Attempt { at }, .. } if at <= now => {
                self.held.push(call);
            }
            Link::Closing { .. } | Link::Idle | Link::BackingOff { .. } | Link::Refused => {
                let error = self.unavailable();
                self.fail(&call, error);
            }
        }
    }

    /// Why there is no connection: the server refused it for good, or it is on its way.
    fn unavailable(&self) -> Error {
        self.refusal.clone().unwrap_or_else(|| ErrorCode::TransportUnavailable.into())
    }

    fn fail(&mut self, call: &NodeCall<P>, error: Error) {
        match call {
            NodeCall::Publish(request, _) => {
                let result = Err(error);
                self.event(TransportEvent::Published { call: request.call, result });
            }
            NodeCall::History(request) => {
                let result = Err(error);
                self.event(TransportEvent::History { call: request.call, result });
            }
        }
    }

    /// Calls that waited for the connection go out in their order.
    pub(super) fn send_held(&mut self, now: Instant) {
        for call in self.held.take() {
            self.send_call(now, call);
        }
    }

    /// Calls whose callers have given up are not sent any more: they were not done.
    pub(super) fn expire_held(&mut self, now: Instant) {
        for call in self.held.take_expired(now) {
            self.fail(&call, ErrorCode::DeadlineExceeded.into());
        }
    }

    fn send_call(&mut self, now: Instant, call: NodeCall<P>) {
        if call.is_expired(now) {
            return self.fail(&call, ErrorCode::DeadlineExceeded.into());
        }
        match call {
            NodeCall::Publish(request, _) => {
                let purpose = Purpose::Publish(request.call);
                let request = Request::Publish(self.publish_request(request));
                self.send(now, purpose, request);
            }
            NodeCall::History(request) => {
                let purpose = Purpose::History(request.call);
                self.send(now, purpose, Request::History(history_request(request)));
            }
        }
    }

    fn publish_request(&self, request: PublishRequest<P>) -> message::PublishRequest<P> {
        let motet = self.extension.then(|| PublishExtension {
            key: request.idempotency_key.filter(|_| self.features.idempotency),
            message_id: request.message_id,
            timestamp_ms: request.timestamp_ms,
        });
        message::PublishRequest {
            channel: request.topic,
            data: request.payload,
            kind: 0,
            motet: motet.filter(|extension| *extension != PublishExtension::default()),
        }
    }

    /// The connection is gone: whatever waits for it is told what is known.
    pub(super) fn fail_calls(&mut self) {
        for call in self.held.take() {
            let error = self.unavailable();
            self.fail(&call, error);
        }
        let calls: Vec<_> = self.calls.end().collect();
        for call in calls {
            self.call_failed(&call.purpose, call.written);
        }
    }

    /// Reading can be repeated; a publication that was written may have been taken.
    pub(super) fn call_failed(&mut self, purpose: &Purpose, written: bool) {
        match *purpose {
            Purpose::Publish(call) => {
                let error =
                    if written { ErrorCode::OutcomeUnknown.into() } else { self.unavailable() };
                self.event(TransportEvent::Published { call, result: Err(error) });
            }
            Purpose::History(call) => {
                let result = Err(ErrorCode::TransportUnavailable.into());
                self.event(TransportEvent::History { call, result });
            }
            Purpose::Connect
            | Purpose::Subscribe(_)
            | Purpose::Unsubscribe(_)
            | Purpose::Refresh
            | Purpose::SubRefresh(_) => {}
        }
    }

    pub(super) fn publish_refused(&mut self, call: CallId, refusal: ErrorReply) {
        let result = Err(refusal::publish(refusal));
        self.event(TransportEvent::Published { call, result });
    }

    pub(super) fn history_refused(&mut self, call: CallId, refusal: ErrorReply) {
        let result = Err(refusal::history(refusal));
        self.event(TransportEvent::History { call, result });
    }

    pub(super) fn history(&mut self, call: CallId, result: HistoryResult<P>, bytes: u32) {
        let page = HistoryPage {
            position: Position::new(StreamEpoch::new(result.epoch), result.offset),
            publications: hand_out_all(result.publications, true, bytes),
        };
        self.event(TransportEvent::History { call, result: Ok(page) });
    }
}

fn history_request(request: HistoryRequest) -> message::HistoryRequest {
    message::HistoryRequest {
        channel: request.topic,
        limit: i32::try_from(request.limit).unwrap_or(i32::MAX),
        since: request.since.map(|since| StreamPosition {
            offset: since.offset,
            epoch: since.epoch.as_str().to_owned(),
        }),
        reverse: request.reverse,
    }
}

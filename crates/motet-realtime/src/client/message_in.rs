//! What the server says.

use motet_protocol::transport::TransportEvent;
use motet_protocol::{Error, ErrorCode, Instant};

use super::Client;
use super::call::{Call, Purpose};
use crate::message::{Command, ErrorReply, Push, PushEvent, Reply, ReplyBody, Verdict};

impl<P: Clone> Client<P> {
    pub(super) fn message(&mut self, now: Instant, reply: Reply<P>, bytes: u32) {
        self.stall.heard(now);
        self.ping.heard(now);
        if reply.is_ping() {
            if self.ping.answered {
                self.pending.push(Command::pong());
            }
            return;
        }
        match reply.body {
            ReplyBody::Push(push) => self.push(now, push, bytes),
            body => {
                if let Some(call) = self.calls.take(reply.id) {
                    self.answered(now, reply.id, call, body, bytes);
                }
            }
        }
    }

    fn push(&mut self, now: Instant, push: Push<P>, bytes: u32) {
        match push.event {
            PushEvent::Publication(publication) => {
                self.published_live(now, push.channel, *publication, bytes);
            }
            PushEvent::Unsubscribe(unsubscribe) => {
                self.unsubscribed(now, &push.channel, unsubscribe);
            }
            PushEvent::Disconnect(end) => self.dismissed(now, end),
            PushEvent::Refresh(refresh) => self.schedule_refresh(now, refresh.expires, refresh.ttl),
            // Nobody has asked for these: presence is not followed, and server-side subscriptions
            // belong to no topic of the node.
            PushEvent::Join(_)
            | PushEvent::Leave(_)
            | PushEvent::Message(_)
            | PushEvent::Subscribe(_)
            | PushEvent::Unknown => {}
        }
    }

    fn answered(&mut self, now: Instant, id: u32, call: Call, body: ReplyBody<P>, bytes: u32) {
        match (call.purpose, body) {
            (purpose, ReplyBody::Error(refusal)) => self.refused(now, id, purpose, refusal),
            (Purpose::Connect, ReplyBody::Connect(result)) => self.connected(now, &result),
            (Purpose::Subscribe(topic), ReplyBody::Subscribe(result)) => {
                self.subscribed(now, topic, id, *result, bytes);
            }
            (Purpose::Unsubscribe(topic), ReplyBody::Unsubscribe) => self.left(now, &topic, id),
            (Purpose::Publish(call), ReplyBody::Publish) => {
                self.event(TransportEvent::Published { call, result: Ok(()) });
            }
            (Purpose::History(call), ReplyBody::History(result)) => {
                self.history(call, result, bytes);
            }
            (Purpose::Refresh, ReplyBody::Refresh(result)) => {
                self.schedule_refresh(now, result.expires, result.ttl);
            }
            (Purpose::SubRefresh(topic), ReplyBody::SubRefresh(result)) => {
                self.sub_refreshed(now, &topic, id, result);
            }
            // An answer of another kind than the question: nothing can be trusted any more.
            (purpose, _) => {
                self.call_failed(&purpose, true);
                self.malformed(now);
            }
        }
    }

    fn refused(&mut self, now: Instant, id: u32, purpose: Purpose, refusal: ErrorReply) {
        match purpose {
            Purpose::Connect => self.connect_refused(now, refusal),
            Purpose::Subscribe(topic) => self.subscribe_refused(now, &topic, id, refusal),
            Purpose::Unsubscribe(topic) => self.left(now, &topic, id),
            Purpose::Publish(call) => self.publish_refused(call, refusal),
            Purpose::History(call) => self.history_refused(call, refusal),
            Purpose::Refresh => self.refresh_refused(now, refusal),
            Purpose::SubRefresh(topic) => self.sub_refresh_refused(now, &topic, id, &refusal),
        }
    }

    /// A command was left out of its frame.
    pub(super) fn not_sent(&mut self, now: Instant, id: u32, error: Error) {
        let Some(call) = self.calls.take(id) else { return };
        match call.purpose {
            Purpose::Publish(call) => {
                self.event(TransportEvent::Published { call, result: Err(error) });
            }
            Purpose::History(call) => {
                self.event(TransportEvent::History { call, result: Err(error) });
            }
            Purpose::Subscribe(topic) => self.refuse(&topic, error),
            // Without these there is no session: the configuration is at fault.
            Purpose::Connect | Purpose::Refresh => self.lose(now, error, Verdict::Terminal),
            Purpose::Unsubscribe(_) | Purpose::SubRefresh(_) => {
                self.lose(now, error, Verdict::Retry);
            }
        }
    }

    /// The server has not answered in time.
    pub(super) fn overdue(&mut self, now: Instant, call: Call) {
        match call.purpose {
            Purpose::Publish(call) => {
                let result = Err(ErrorCode::OutcomeUnknown.into());
                self.event(TransportEvent::Published { call, result });
            }
            Purpose::History(call) => {
                let result = Err(ErrorCode::RequestTimeout.into());
                self.event(TransportEvent::History { call, result });
            }
            Purpose::Refresh => self.refresh_later(now),
            Purpose::SubRefresh(topic) => self.sub_refresh_later(now, &topic),
            // What the server thinks of the subscriptions is not known any more.
            Purpose::Connect | Purpose::Subscribe(_) | Purpose::Unsubscribe(_) => {
                self.lose(now, ErrorCode::RequestTimeout.into(), Verdict::Retry);
            }
        }
    }
}

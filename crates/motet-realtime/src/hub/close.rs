//! Leaving: one channel, all channels, the server.

use std::sync::Arc;

use super::timer::Timer;
use super::{Hub, Output, SessionId};
use crate::broker::BrokerOp;
use crate::message::{Disconnect, DisconnectCode};
use crate::payload::Payload;

impl<P: Payload> Hub<P> {
    pub(super) fn disconnect_bad_request(&mut self, id: SessionId) {
        self.disconnect(id, DisconnectCode::BAD_REQUEST);
    }

    pub(super) fn disconnect(&mut self, id: SessionId, code: DisconnectCode) {
        self.disconnect_because(id, code.into());
    }

    /// Closes a connection. The socket goes first, the channels after it, so that slow cleaning
    /// up never leaves a client with two connections.
    pub(super) fn disconnect_because(&mut self, id: SessionId, reason: Disconnect) {
        if self.sessions.contains_key(&id) {
            self.outputs.push_back(Output::Close(id, reason));
            self.forget_session(id);
        }
    }

    pub(super) fn forget_session(&mut self, id: SessionId) {
        if !self.sessions.contains_key(&id) {
            return;
        }
        self.leave_all(id);
        let Some(session) = self.sessions.remove(&id) else { return };
        if let Some(armed) = session.armed {
            self.timers.remove(&(armed, Timer::Session(id)));
        }
        if let Some(waiting) = session.waiting {
            self.pending.remove(&waiting.op);
        }
        if let Some(sessions) = self.users.get_mut(&session.user) {
            sessions.remove(&id);
            if sessions.is_empty() {
                self.users.remove(&session.user);
            }
        }
    }

    pub(super) fn leave_all(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        let channels: Vec<_> = session.subs.keys().cloned().collect();
        for channel in channels {
            self.leave(id, &channel);
        }
    }

    /// Takes a connection out of a channel, silently towards the connection itself.
    pub(super) fn leave(&mut self, id: SessionId, channel: &Arc<str>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let info = session.channel_info(channel);
        let Some(sub) = session.subs.remove(channel) else { return };
        let Some(entry) = self.channels.get_mut(channel) else { return };
        entry.remove(id);
        entry.subscriptions -= 1;
        let live = sub.is_live();
        entry.positioned -= usize::from(live && sub.traits.positioned);
        let empty = entry.subscriptions == 0;
        let check_due = entry.check.due;
        if live && sub.traits.presence {
            self.tell(channel, BrokerOp::RemovePresence(info.client.clone()));
        }
        if live && sub.traits.announced {
            self.tell(channel, BrokerOp::Leave(Box::new(info)));
        }
        if empty {
            self.channels.remove(channel);
            self.patterns -= usize::from(sub.traits.pattern);
            if let Some(due) = check_due {
                self.timers.remove(&(due, Timer::Position(channel.clone())));
            }
            self.tell(channel, BrokerOp::Unsubscribe);
        }
    }

    pub(super) fn shut_down(&mut self) {
        self.stopping = true;
        let mut sessions: Vec<_> = self.sessions.keys().copied().collect();
        sessions.sort_unstable();
        for id in sessions {
            self.disconnect(id, DisconnectCode::SHUTDOWN);
        }
    }
}

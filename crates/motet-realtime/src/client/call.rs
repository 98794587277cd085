//! Commands that wait for their reply.

use litemap::LiteMap;
use motet_protocol::{CallId, Instant};

/// What a command was sent for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Connect,
    Subscribe(String),
    Unsubscribe(String),
    Publish(CallId),
    History(CallId),
    Refresh,
    SubRefresh(String),
}

/// A command that waits for its reply.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) purpose: Purpose,
    deadline: Instant,
    /// Whether it was handed to the socket; only then may the server have seen it.
    pub(super) written: bool,
}

/// The commands of one connection that wait for their reply, oldest first.
#[derive(Debug, Default)]
pub(super) struct Calls {
    waiting: LiteMap<u32, Call>,
    last_id: u32,
    last_written: u32,
}

impl Calls {
    /// Numbers a command. Numbers start at 1 on every connection.
    pub(super) fn begin(&mut self, purpose: Purpose, deadline: Instant) -> u32 {
        self.last_id += 1;
        self.waiting.insert(self.last_id, Call { purpose, deadline, written: false });
        self.last_id
    }

    /// All commands numbered so far are with the socket.
    pub(super) fn written(&mut self) {
        let last = self.last_written;
        let unwritten = self.waiting.iter_mut().rev().take_while(|(id, _)| **id > last);
        for (_, call) in unwritten {
            call.written = true;
        }
        self.last_written = self.last_id;
    }

    /// The command that this reply answers.
    pub(super) fn take(&mut self, id: u32) -> Option<Call> {
        self.waiting.remove(&id)
    }

    /// A command that waits longer than it may.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Option<Call> {
        let id = *self.waiting.first().filter(|(_, call)| call.deadline <= now)?.0;
        self.waiting.remove(&id)
    }

    /// When the oldest has waited long enough. All wait equally long, so it is the first to do so.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.first().map(|(_, call)| call.deadline)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The connection is gone; the next one counts from 1 again.
    pub(super) fn end(&mut self) -> impl Iterator<Item = Call> {
        core::mem::take(self).waiting.into_iter().map(|(_, call)| call)
    }
}

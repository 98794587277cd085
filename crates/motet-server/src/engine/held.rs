//! Commands that wait until their connection has been sent more of its answers, or until an
//! earlier command is done.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use motet_realtime::hub::SessionId;
use motet_realtime::message::Command;

/// The commands of a frame that are not carried out yet.
pub(super) struct Frame {
    pub(super) commands: VecDeque<Command<Bytes>>,
    /// Bytes of the whole frame. They count as under way, so a connection whose commands wait is
    /// read no further than its share.
    pub(super) bytes: usize,
}

/// Frames that wait, by connection.
#[derive(Default)]
pub(super) struct Held {
    frames: HashMap<SessionId, VecDeque<Frame>>,
    /// Connections whose frames may be able to go on.
    ready: Vec<SessionId>,
}

impl Held {
    pub(super) fn holds(&self, session: SessionId) -> bool {
        !self.frames.is_empty() && self.frames.contains_key(&session)
    }

    /// Adds what a connection sent last.
    pub(super) fn push_back(&mut self, session: SessionId, frame: Frame) {
        self.frames.entry(session).or_default().push_back(frame);
    }

    /// Puts back what was taken and cannot go on yet.
    pub(super) fn put_back(&mut self, session: SessionId, frames: VecDeque<Frame>) {
        self.frames.insert(session, frames);
    }

    pub(super) fn take(&mut self, session: SessionId) -> VecDeque<Frame> {
        self.frames.remove(&session).unwrap_or_default()
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        self.frames.remove(&session);
    }

    /// Something happened to a connection: its frames are looked at again.
    pub(super) fn look_at(&mut self, session: SessionId) {
        if self.holds(session) {
            self.ready.push(session);
        }
    }

    pub(super) fn take_ready(&mut self) -> Vec<SessionId> {
        core::mem::take(&mut self.ready)
    }
}

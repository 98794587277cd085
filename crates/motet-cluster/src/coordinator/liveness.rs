//! Telling frozen nodes from living ones. Death itself is told by locks.

use core::time::Duration;

use motet_protocol::fault::planted;
use motet_protocol::{Instant, NodeId};

use super::Coordinator;
use crate::frame::Frame;
use crate::node::Out;

/// The coordinator's heartbeat.
pub(crate) const BEAT_INTERVAL: Duration = Duration::from_millis(2_500);
/// An owner that has not answered a beat so long after it is asked directly...
const PING_AFTER: Duration = Duration::from_millis(400);
/// ... and replaced after this time.
pub(crate) const BEAT_GRACE: Duration = Duration::from_millis(1_200);

impl Coordinator {
    pub(super) fn beat<P: Clone>(&mut self, now: Instant, out: &mut Out<P>) {
        self.beat_at = now + BEAT_INTERVAL;
        self.beaten_at = Some(now);
        for (_, entry) in &mut self.members {
            entry.pinged = false;
        }
        out.announce(Frame::Beat { fence: self.fence });
    }

    /// Answers a node that doubts that its coordinator is alive.
    pub(crate) fn answer_ping<P: Clone>(&mut self, out: &mut Out<P>) {
        out.announce(Frame::Beat { fence: self.fence });
    }

    /// Any frame from a member shows that it is alive.
    pub(crate) fn heard(&mut self, node: NodeId, now: Instant) {
        if let Some(entry) = self.members.get_mut(&node) {
            entry.heard = now;
            entry.suspect = false;
        }
    }

    /// Members whose silence matters: owners, and old owners of a handoff under way.
    fn watched(&self, node: NodeId) -> bool {
        node != self.me
            && self
                .routes
                .values()
                .any(|entry| entry.route.owner == node || entry.route.handoff_from == Some(node))
    }

    /// A node that becomes an owner is watched from now on: what it left unanswered before, when
    /// nothing was asked of it, says nothing.
    pub(super) fn expect_pulses(&mut self, node: NodeId, now: Instant) {
        if !self.watched(node) {
            self.heard(node, now);
        }
    }

    /// Those that have not answered the last beat, with whether they were asked directly.
    fn silent(&self) -> Vec<(NodeId, bool)> {
        let Some(beaten) = self.beaten_at else { return Vec::new() };
        let silent = |(node, entry): (&NodeId, &super::MemberEntry)| {
            (!entry.suspect && entry.heard < beaten && self.watched(*node))
                .then_some((*node, entry.pinged))
        };
        self.members.iter().filter_map(silent).collect()
    }

    pub(super) fn watch_members<P: Clone>(&mut self, now: Instant, out: &mut Out<P>) {
        let Some(beaten) = self.beaten_at else { return };
        for (node, pinged) in self.silent() {
            if now >= beaten + BEAT_GRACE {
                if !planted("never-replace-frozen-owner") {
                    self.replace_frozen(node, now, out);
                }
            } else if now >= beaten + PING_AFTER && !pinged {
                out.send(node, Frame::Ping { fence: self.fence });
                if let Some(entry) = self.members.get_mut(&node) {
                    entry.pinged = true;
                }
            }
        }
    }

    /// A member that leaves beats or decisions unanswered owns nothing until it speaks.
    pub(super) fn replace_frozen<P: Clone>(
        &mut self,
        node: NodeId,
        now: Instant,
        out: &mut Out<P>,
    ) {
        if let Some(entry) = self.members.get_mut(&node) {
            entry.suspect = true;
        }
        self.move_topics_of(node, now, out);
    }

    pub(super) fn members_timeout(&self) -> Option<Instant> {
        let beaten = self.beaten_at?;
        let silent = self.silent();
        let unasked = silent.iter().any(|(_, pinged)| !pinged);
        (!silent.is_empty()).then(|| beaten + if unasked { PING_AFTER } else { BEAT_GRACE })
    }
}

//! The coordinator's members: who they are, what they want, and how they come and go.

use motet_protocol::{Fence, Instant, NodeId};

use super::Coordinator;
use crate::frame::{CAPABILITIES, Capabilities, ReportedRoute};
use crate::node::{Out, Status};
use crate::table::Member;

/// One member as the coordinator sees it.
pub(super) struct MemberEntry {
    /// Its row; `None` until it has reported.
    pub(super) row: Option<Member>,
    pub(super) capabilities: Capabilities,
    /// When anything came from it last.
    pub(super) heard: Instant,
    /// Asked directly since the last beat.
    pub(super) pinged: bool,
    /// Believed frozen: owns nothing until it speaks.
    pub(super) suspect: bool,
    /// It cannot connect, for its pages give it no token.
    pub(super) tokenless: bool,
}

impl MemberEntry {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            row: None,
            capabilities: CAPABILITIES,
            heard: now,
            pinged: false,
            suspect: false,
            tokenless: false,
        }
    }

    /// It lives, and should not own anything: what it owns it lets go of in order.
    pub(super) fn retires(&self) -> bool {
        !self.suspect && (self.tokenless || self.row.as_ref().is_some_and(|row| row.leaving))
    }
}

/// A member's report, taken apart.
pub(crate) struct Report {
    pub(crate) fence: Fence,
    pub(crate) member: Member,
    pub(crate) owned: Vec<ReportedRoute>,
    pub(crate) wanted: Vec<String>,
    pub(crate) seen: Vec<ReportedRoute>,
    pub(crate) capabilities: Capabilities,
}

impl Coordinator {
    /// Takes a member's report. Returns whether the node was not known before.
    pub(crate) fn report<P: Clone>(
        &mut self,
        node: NodeId,
        report: Report,
        now: Instant,
        out: &mut Out<P>,
    ) -> bool {
        if report.fence != self.fence {
            // It answers a claim that we have since raised; its next report is on the way.
            return false;
        }
        let unknown = !self.members.contains_key(&node);
        let entry = self.members.entry(node).or_insert_with(|| MemberEntry::new(now));
        entry.capabilities = report.capabilities;
        let mut row = Member { node, ..report.member };
        if let Some(old) = &entry.row {
            row.order = old.order;
        }
        self.next_order = self.next_order.max(row.order + 1);
        let leaving = row.leaving;
        entry.row = Some(row);
        self.gone_members.remove(&node);
        self.changed_members.insert(node, ());
        let rebuilding = self.rebuild_until.is_some();
        if !rebuilding {
            self.register_new();
        }
        self.take_seen(&report.seen);
        if !rebuilding {
            self.outrank(&report.seen, now, out);
            self.outrank(&report.owned, now, out);
        }
        self.take_owned(node, report.owned, now);
        self.set_wanted(node, report.wanted, now, out);
        if rebuilding {
            self.decide_if_complete(now, out);
        } else {
            self.tell_table();
            self.decide_orphans(now, out);
            if leaving {
                self.move_topics_of(node, now, out);
            }
        }
        unknown
    }

    /// Gives members without one a registration number, in the order of their ids.
    pub(super) fn register_new(&mut self) {
        let mut capabilities = CAPABILITIES;
        for (node, entry) in &mut self.members {
            let Some(row) = &mut entry.row else { continue };
            capabilities &= entry.capabilities;
            if row.order == 0 {
                row.order = self.next_order;
                self.next_order += 1;
                self.changed_members.insert(*node, ());
            }
        }
        self.capabilities = capabilities;
    }

    pub(crate) fn is_member(&self, node: NodeId) -> bool {
        self.members.contains_key(&node)
    }

    pub(crate) fn status<P: Clone>(
        &mut self,
        node: NodeId,
        status: Status,
        now: Instant,
        out: &mut Out<P>,
    ) {
        let Status { visible, transport, idempotent, tokenless } = status;
        let Some(entry) = self.members.get_mut(&node) else { return };
        let changed = tokenless != entry.tokenless && self.rebuild_until.is_none();
        entry.tokenless = tokenless;
        let Some(row) = &mut entry.row else { return };
        if (row.visible, row.transport, row.idempotent) != (visible, transport, idempotent) {
            (row.visible, row.transport, row.idempotent) = (visible, transport, idempotent);
            self.changed_members.insert(node, ());
        }
        if changed && tokenless {
            self.move_topics_of(node, now, out);
        } else if changed {
            self.decide_orphans(now, out);
        }
    }

    /// The member says that it goes: its topics are handed over while it waits.
    pub(crate) fn leaving<P: Clone>(&mut self, node: NodeId, now: Instant, out: &mut Out<P>) {
        if let Some(row) = self.members.get_mut(&node).and_then(|entry| entry.row.as_mut()) {
            row.leaving = true;
            self.changed_members.insert(node, ());
            if self.rebuild_until.is_none() {
                self.move_topics_of(node, now, out);
            }
        }
    }

    /// The member is gone: its lock fell free, or its page ended it.
    pub(crate) fn gone<P: Clone>(&mut self, node: NodeId, now: Instant, out: &mut Out<P>) {
        if self.members.remove(&node).is_none() {
            return;
        }
        self.changed_members.remove(&node);
        self.gone_members.insert(node, ());
        self.forget_subscriber(node, now);
        if self.rebuild_until.is_some() {
            self.decide_if_complete(now, out);
        } else {
            self.move_topics_of(node, now, out);
        }
    }
}

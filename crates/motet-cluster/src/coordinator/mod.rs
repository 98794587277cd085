//! The coordinator: one node's view of the whole cluster, and the only one that decides.

mod choice;
mod liveness;
mod members;
mod rebuild;
mod routes;

use core::time::Duration;

use litemap::LiteMap;
use motet_protocol::{Fence, Generation, Instant, NodeId};

use self::members::MemberEntry;
pub(crate) use self::members::Report;
use self::routes::RouteEntry;
use crate::frame::{CAPABILITIES, Capabilities, Frame};
use crate::node::Out;

/// How long a new coordinator waits for members that do not report.
const REBUILD_WAIT: Duration = Duration::from_millis(150);
/// How long changed subscriber counts are gathered before they are announced.
const COUNTS_WAIT: Duration = Duration::from_millis(250);

/// What a coordinator knows and decides.
pub(crate) struct Coordinator {
    me: NodeId,
    fence: Fence,
    active_max: u32,
    members: LiteMap<NodeId, MemberEntry>,
    routes: LiteMap<String, RouteEntry>,
    /// The last decision.
    generation: Generation,
    next_order: u64,
    /// Until then reports are collected and nothing is decided.
    rebuild_until: Option<Instant>,
    beat_at: Instant,
    beaten_at: Option<Instant>,
    counts_at: Option<Instant>,
    changed_members: LiteMap<NodeId, ()>,
    gone_members: LiteMap<NodeId, ()>,
    changed_routes: LiteMap<String, ()>,
    /// Dropped and not announced yet.
    dropped_routes: LiteMap<String, ()>,
    /// Who owned what was dropped, and until when that matters: a topic that is wanted again keeps
    /// its owner, for another one would subscribe before this one has unsubscribed.
    former_owners: LiteMap<String, (NodeId, Instant)>,
    table_wanted: bool,
    capabilities: Capabilities,
}

impl Coordinator {
    /// Takes office under `fence`; `members` hold their node lock now, `deposed` held the
    /// coordinator lock and did not answer.
    pub(crate) fn new<P: Clone>(
        me: NodeId,
        fence: Fence,
        active_max: u32,
        now: Instant,
        members: impl IntoIterator<Item = NodeId>,
        deposed: Option<NodeId>,
        out: &mut Out<P>,
    ) -> Self {
        // One by one: `collect` would bring a sort of its own into the module.
        let mut entries = LiteMap::new();
        for node in members {
            // Not a word yet: whoever does not answer the first beat is as silent as any other.
            let mut entry = MemberEntry::new(Instant::ZERO);
            entry.suspect = deposed == Some(node);
            entries.insert(node, entry);
        }
        out.announce(Frame::Claim { fence, rebuild: true });
        Self {
            me,
            fence,
            active_max,
            members: entries,
            routes: LiteMap::new(),
            generation: Generation::NONE,
            next_order: 1,
            rebuild_until: Some(now + REBUILD_WAIT),
            beat_at: now,
            beaten_at: None,
            counts_at: None,
            changed_members: LiteMap::new(),
            gone_members: LiteMap::new(),
            changed_routes: LiteMap::new(),
            dropped_routes: LiteMap::new(),
            former_owners: LiteMap::new(),
            table_wanted: false,
            capabilities: CAPABILITIES,
        }
    }

    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    /// Whether reports are still collected.
    pub(crate) fn rebuilding(&self) -> bool {
        self.rebuild_until.is_some()
    }

    /// Whether nobody is left who could take over.
    pub(crate) fn alone(&self) -> bool {
        let stays = |entry: &MemberEntry| {
            !entry.suspect && entry.row.as_ref().is_none_or(|row| !row.leaving)
        };
        !self.members.iter().any(|(node, entry)| *node != self.me && stays(entry))
    }

    /// Ends the collection of reports when everybody has answered, or time is up.
    pub(crate) fn decide_if_complete<P: Clone>(&mut self, now: Instant, out: &mut Out<P>) {
        let Some(until) = self.rebuild_until else { return };
        let complete = self.members.values().all(|entry| entry.row.is_some() || entry.suspect);
        if complete || until <= now {
            self.rebuild_until = None;
            self.settle_routes(now, out);
            self.table_wanted = true;
        }
    }

    /// Announces what changed during this input. Nothing is announced before the first decision.
    pub(crate) fn announce_changes<P: Clone>(&mut self, out: &mut Out<P>) {
        if self.rebuild_until.is_some() {
            return;
        }
        if core::mem::take(&mut self.table_wanted) {
            return self.announce_all(out);
        }
        let fence = self.fence;
        let changed = core::mem::take(&mut self.changed_members);
        let gone: Vec<_> =
            core::mem::take(&mut self.gone_members).into_iter().map(|(node, ())| node).collect();
        let members: Vec<_> =
            changed.keys().filter_map(|node| self.members.get(node)?.row.clone()).collect();
        if !members.is_empty() || !gone.is_empty() {
            let capabilities = self.capabilities;
            out.announce(Frame::Members { fence, members, gone, full: false, capabilities });
        }
        let changed = core::mem::take(&mut self.changed_routes);
        let dropped = core::mem::take(&mut self.dropped_routes);
        let dropped: Vec<_> = dropped.into_iter().map(|(topic, ())| topic).collect();
        let routes: Vec<_> =
            changed.keys().filter_map(|topic| Some(self.routes.get(topic)?.row())).collect();
        if !routes.is_empty() || !dropped.is_empty() {
            out.announce(Frame::Assign { fence, routes, dropped, full: false });
        }
    }

    fn announce_all<P: Clone>(&mut self, out: &mut Out<P>) {
        let (members, routes) = self.table();
        self.changed_members.clear();
        self.gone_members.clear();
        self.changed_routes.clear();
        self.dropped_routes.clear();
        out.announce(members);
        out.announce(routes);
    }

    /// Answers a node that is new or lost touch: who governs, and after its report the table.
    pub(crate) fn welcome<P: Clone>(&self, node: NodeId, out: &mut Out<P>) {
        out.send(node, Frame::Claim { fence: self.fence, rebuild: false });
    }

    /// Announces the whole table once this input is done. It goes to everybody: on one channel
    /// the table and its later changes have an order, on two they would not.
    pub(crate) fn tell_table(&mut self) {
        self.table_wanted = true;
    }

    fn table(&self) -> (Frame, Frame) {
        let fence = self.fence;
        let members = self.members.values().filter_map(|entry| entry.row.clone()).collect();
        let routes = self.routes.values().map(RouteEntry::row).collect();
        let capabilities = self.capabilities;
        (
            Frame::Members { fence, members, gone: Vec::new(), full: true, capabilities },
            Frame::Assign { fence, routes, dropped: Vec::new(), full: true },
        )
    }

    pub(crate) fn tick<P: Clone>(&mut self, now: Instant, out: &mut Out<P>) {
        self.decide_if_complete(now, out);
        if self.rebuild_until.is_none() {
            self.watch_members(now, out);
            self.resend_assignments(now, out);
        }
        if self.counts_at.is_some_and(|at| at <= now) {
            self.counts_at = None;
            for (topic, entry) in &mut self.routes {
                if core::mem::take(&mut entry.count_changed) {
                    self.changed_routes.insert(topic.clone(), ());
                }
            }
        }
        if self.beat_at <= now {
            self.forget_former_owners(now);
            self.thin_owners_out(now, out);
            self.beat(now, out);
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let timers = [
            self.rebuild_until,
            Some(self.beat_at),
            self.counts_at,
            self.members_timeout(),
            self.routes_timeout(),
        ];
        timers.into_iter().flatten().min()
    }
}

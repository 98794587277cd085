//! What can go wrong, and how it strikes.

use std::collections::BTreeSet;

use motet_cluster::frame::Frame;
use motet_cluster::node::NodePacket;
use motet_cluster::table::{Route, RouteState};
use motet_protocol::NodeId;

use crate::coverage::Coverage;
use crate::schedule::{Action, Aim};
use crate::stage::Stage;
use crate::world::context::{AppCall, ContextId, Task};
use crate::world::event::{Event, Later};
use crate::world::tab::TabState;
use crate::world::{MS, SECOND, World};

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $($(#[$doc])* $variant,)* }

        impl Fault {
            /// Every kind.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Its name in tables and traces.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

faults! {
    /// The tab's renderer dies.
    CrashTab "tab crashes";
    /// The dedicated worker dies.
    CrashWorker "worker crashes";
    /// The shared worker dies.
    CrashShared "shared worker crashes";
    /// The tab stops without an event.
    Freeze "freeze, silent";
    /// The tab stops after a `freeze` event.
    FreezeTold "freeze, with event";
    /// The page goes to the back/forward cache.
    Cache "back/forward cache";
    /// The tab loads its page anew.
    Reload "reload";
    /// The tab is duplicated with its session storage.
    Duplicate "duplicated tab";
    /// The application closes the bus.
    CloseBus "close()";
    /// The user closes the tab.
    CloseTab "tab closed";
    /// The tab goes without `pagehide`.
    CloseUntold "tab closed, no event";
    /// The page's timers fire once a minute.
    Throttle "timers once a minute";
    /// The tab's clocks jump.
    JumpOne "clock of a tab jumps";
    /// All clocks jump.
    JumpAll "all clocks jump";
    /// The page's main thread is busy.
    Block "slow main thread";
    /// The server restarts with an empty memory.
    RestartEmpty "server restart, empty";
    /// The server restarts with its history.
    RestartKept "server restart, history";
    /// All connections break.
    DropAll "all connections lost";
    /// One node's connection breaks.
    DropOne "connection lost";
    /// One node's connection carries nothing any more.
    HalfOpen "connection half-open";
    /// The network is gone for a while.
    Offline "offline";
    /// Tokens expire and are refused as expired.
    TokensExpire "tokens expire";
    /// Tokens are refused for good.
    TokensRefused "tokens refused";
    /// The lock manager forgets everything.
    LocksVanish "locks vanish";
    /// Another tab opens.
    LateTab "late tab";
}

/// The table of which faults struck a route at which stage.
pub(crate) fn coverage() -> Coverage {
    Coverage::new("fault", &Fault::ALL.map(Fault::name), &Stage::ALL.map(Stage::name), |_, _| true)
}

/// What is known of a route from the frames on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteView {
    pub(crate) owner: NodeId,
    pub(crate) stage: Stage,
}

/// A fault that waits for its moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    step: usize,
    stage: Stage,
}

/// How long a fault waits for its moment.
const PATIENCE: u64 = 1_500 * MS;

fn stage_of(route: &Route) -> Stage {
    match (&route.state, route.handoff_from) {
        (RouteState::Failed(_), _) => Stage::Failed,
        (RouteState::Subscribed, _) => Stage::Subscribed,
        (_, Some(_)) => Stage::Handoff,
        (RouteState::Subscribing, None) => Stage::Subscribing,
        (RouteState::Assigned, None) => Stage::Assigned,
    }
}

impl Fault {
    /// Whether owners may have to wait before they connect again.
    const fn disturbs_connections(self) -> bool {
        matches!(
            self,
            Self::RestartEmpty
                | Self::RestartKept
                | Self::DropAll
                | Self::DropOne
                | Self::HalfOpen
                | Self::Offline
                | Self::TokensExpire
                | Self::TokensRefused
        )
    }
}

impl World {
    pub(crate) fn act(&mut self, index: usize) {
        let action = self.steps[index].action;
        match action {
            Action::Open(tab) => self.load_tab(tab),
            Action::Subscribe(tab, topic, replay) => {
                self.call_app(tab, AppCall::Subscribe(topic, replay));
            }
            Action::Unsubscribe(tab, topic) => self.call_app(tab, AppCall::Unsubscribe(topic)),
            Action::ServerPublish(topic, count) => self.server_publishes(topic, count),
            Action::PagePublish(tab, topic, count) => {
                self.call_app(tab, AppCall::Publish(topic, count));
            }
            Action::Abort(tab) => self.call_app(tab, AppCall::Abort),
            Action::Show(tab, visible) => {
                let tab = tab % self.tabs.len();
                self.show_tab(tab, visible);
            }
            Action::Fault { stage: Some(stage), .. } if !self.stage_seen(stage) => {
                self.waiting.push(Waiting { step: index, stage });
                let at = self.now + PATIENCE;
                self.agenda.insert(at, Event::Later(Later::Strike(index)));
            }
            Action::Fault { .. } => self.strike(index),
        }
    }

    fn call_app(&mut self, tab: usize, call: AppCall) {
        if let Some(page) = self.tabs[tab].page {
            self.send(page, 0, Task::App(call));
        }
    }

    fn stage_seen(&self, stage: Stage) -> bool {
        self.routes.iter().flatten().any(|route| route.stage == stage)
    }

    /// A coordinator has posted: keeps the view of routes, and lets faults strike that waited.
    pub(crate) fn see_routes(&mut self, packet: &NodePacket<u64>) {
        let mut changed = false;
        let before = self.routes.clone();
        for frame in &packet.frames {
            match frame {
                Frame::Assign { routes, dropped, full, .. } => {
                    if *full {
                        self.routes.fill(None);
                    }
                    for route in routes {
                        if let Some(topic) = self.topic_index(&route.topic) {
                            let stage = stage_of(route);
                            self.routes[topic] = Some(RouteView { owner: route.owner, stage });
                            changed = true;
                        }
                    }
                    for name in dropped {
                        if let Some(topic) = self.topic_index(name) {
                            self.routes[topic] = None;
                        }
                    }
                }
                Frame::Confirm { topic, state, .. } => {
                    if let Some(topic) = self.topic_index(topic)
                        && let Some(view) = &mut self.routes[topic]
                        && view.owner == packet.from
                    {
                        view.stage = match state {
                            RouteState::Assigned => Stage::Assigned,
                            RouteState::Subscribing => Stage::Subscribing,
                            RouteState::Subscribed => Stage::Subscribed,
                            RouteState::Failed(_) => Stage::Failed,
                        };
                        changed = true;
                    }
                }
                _ => {}
            }
        }
        self.judge_moves(&before);
        if changed && !self.waiting.is_empty() {
            let seen: Vec<_> = self
                .waiting
                .iter()
                .filter(|waiting| self.stage_seen(waiting.stage))
                .copied()
                .collect();
            for waiting in seen {
                let at = self.now + self.rng.below(250);
                self.agenda.insert(at, Event::Later(Later::Strike(waiting.step)));
            }
        }
    }

    /// Topics move only when their owner is not well; or, when more nodes own topics than may, all
    /// those of one of them to the others.
    fn judge_moves(&mut self, before: &[Option<RouteView>]) {
        let runs = |node: NodeId| {
            let context = self.checks.owners.context_of(node);
            context.is_some_and(|id| self.contexts[id].acting(self.now))
                && !self.checks.owners.leaves(node)
        };
        let owners: BTreeSet<_> = before.iter().flatten().map(|view| view.owner).collect();
        let owners: BTreeSet<_> = owners.into_iter().filter(|owner| runs(*owner)).collect();
        let crowded = owners.len() > self.setup.max_active_nodes as usize;
        let moves: Vec<_> = before
            .iter()
            .zip(&self.routes)
            .enumerate()
            .filter_map(|(topic, views)| match views {
                (Some(from), Some(to)) if from.owner != to.owner => {
                    Some((topic, from.owner, to.owner))
                }
                _ => None,
            })
            .collect();
        let keeps = |node: NodeId| {
            let views = self.routes.iter().flatten();
            views.filter(|view| view.stage != Stage::Failed).any(|view| view.owner == node)
        };
        let thinned = moves.iter().map(|(_, from, _)| *from).find(|from| crowded && !keeps(*from));
        for (topic, from, to) in moves {
            self.checks.moved_at = self.now;
            if thinned != Some(from) || !owners.contains(&to) {
                self.judge_move(topic, from, to);
            }
        }
    }

    /// A fault that waited strikes, unless it has struck.
    pub(crate) fn strike_waiting(&mut self, step: usize) {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.step == step) {
            self.waiting.swap_remove(at);
            self.strike(step);
        }
    }

    fn strike(&mut self, step: usize) {
        let Action::Fault { fault, aim, duration, .. } = self.steps[step].action else { return };
        let Some(tab) = self.aim_at(aim) else { return };
        let stages: Vec<_> = self.routes.iter().flatten().map(|route| route.stage).collect();
        if !self.inflict(fault, tab, duration) {
            return;
        }
        self.faults += 1;
        self.checks.backoff |= fault.disturbs_connections();
        self.checks.last_disturbance = self.now.max(self.checks.last_disturbance);
        self.note(|| format!("FAULT {} on tab {tab} for {duration} us ({aim:?})", fault.name()));
        for stage in stages {
            self.coverage.mark(fault as usize, stage as usize);
        }
    }

    fn aim_at(&mut self, aim: Aim) -> Option<usize> {
        let context: Option<ContextId> = match aim {
            Aim::Owner(topic) => {
                self.routes[topic].and_then(|route| self.checks.owners.context_of(route.owner))
            }
            Aim::Coordinator => {
                self.locks.coordinator().and_then(|agent| self.locks.context_of(agent))
            }
            Aim::Tab(_) => None,
        };
        match (context, aim) {
            (Some(context), _) => Some(self.contexts[context].tab),
            (None, Aim::Tab(tab)) => Some(tab % self.tabs.len()),
            (None, _) => Some(self.rng.below(self.tabs.len() as u64) as usize),
        }
    }

    /// Tabs of which one may be taken away for good: the cluster keeps at least two.
    fn may_lose(&self) -> bool {
        self.tabs.iter().filter(|tab| tab.state != TabState::Empty).count() > 2
    }

    fn inflict(&mut self, fault: Fault, tab: usize, duration: u64) -> bool {
        let lasting = 200 * MS + duration;
        match fault {
            Fault::CrashTab => self.may_lose() && self.crash_tab(tab),
            Fault::CrashWorker => self.crash_worker(tab),
            Fault::CrashShared => self.crash_shared(),
            Fault::Freeze => self.freeze_tab(tab, false, lasting),
            Fault::FreezeTold => self.freeze_tab(tab, true, lasting),
            Fault::Cache => self.cache_tab(tab, lasting),
            Fault::Reload => self.reload_tab(tab),
            Fault::Duplicate => self.duplicate_tab(tab),
            Fault::CloseBus => self.may_lose() && self.close_bus(tab),
            Fault::CloseTab => self.may_lose() && self.close_tab(tab, true),
            Fault::CloseUntold => self.may_lose() && self.close_tab(tab, false),
            Fault::Throttle => self.throttle_tab(tab, 2 * lasting),
            Fault::JumpOne => self.jump_clocks(Some(tab), jump(duration)),
            Fault::JumpAll => self.jump_clocks(None, jump(duration)),
            Fault::Block => self.block_tab(tab, duration / 2),
            Fault::RestartEmpty => self.restart_server(true, duration / 4),
            Fault::RestartKept => self.restart_server(false, duration / 4),
            Fault::DropAll => self.drop_connections(None),
            Fault::DropOne => self.with_node(tab, |world, node| world.drop_connections(Some(node))),
            Fault::HalfOpen => self.with_node(tab, |world, node| world.half_open(Some(node))),
            Fault::Offline => self.go_offline(lasting),
            Fault::TokensExpire => self.lose_tokens(false, lasting),
            Fault::TokensRefused => self.lose_tokens(true, lasting),
            Fault::LocksVanish => self.lose_locks(),
            Fault::LateTab => self.open_late_tab(tab),
        }
    }

    fn close_bus(&mut self, tab: usize) -> bool {
        let Some(page) = self.open_page(tab) else { return false };
        self.send(page, 0, Task::App(AppCall::Close));
        true
    }

    fn with_node(&mut self, tab: usize, fault: impl FnOnce(&mut Self, ContextId) -> bool) -> bool {
        let Some(page) = self.tabs[tab].page else { return false };
        let contexts = self.with_worker(page);
        let node = contexts.into_iter().find(|id| self.contexts[*id].host.is_some());
        match node.or(self.shared) {
            Some(node) => fault(self, node),
            None => false,
        }
    }

    fn restart_server(&mut self, empty: bool, down: u64) -> bool {
        if !self.server.up {
            return false;
        }
        self.server_stops(empty);
        self.agenda.insert(self.now + down, Event::Later(Later::ServerUp));
        self.checks.last_disturbance = self.now + down;
        true
    }

    fn go_offline(&mut self, duration: u64) -> bool {
        self.agenda.insert(self.now + duration, Event::Later(Later::NetworkUp));
        self.checks.last_disturbance = self.now + duration;
        self.network_fails()
    }

    fn lose_tokens(&mut self, for_good: bool, duration: u64) -> bool {
        if !self.tokens_valid || !self.setup.tokens {
            return false;
        }
        self.tokens_fail(for_good);
        self.drop_connections(None);
        self.agenda.insert(self.now + duration, Event::Later(Later::TokensValid));
        self.checks.last_disturbance = self.now + duration;
        true
    }

    fn lose_locks(&mut self) -> bool {
        let news = self.locks.vanish();
        let any = !news.is_empty();
        self.tell(news);
        self.checks.locks_vanished = Some(self.now);
        any
    }

    fn open_late_tab(&mut self, tab: usize) -> bool {
        let empty = (0..self.tabs.len()).find(|tab| self.tabs[*tab].state == TabState::Empty);
        if let Some(empty) = empty {
            self.load_tab(empty);
            return true;
        }
        if self.tabs.len() >= self.setup.tabs.len() + 3 {
            return false;
        }
        let added = self.add_tab(self.tabs[tab].mode, None);
        self.load_tab(added);
        true
    }
}

/// From a second to an hour.
const fn jump(duration: u64) -> u64 {
    if duration < 300 * MS { 3_600 * SECOND } else { SECOND + duration * 4 }
}

//! The virtual browser: contexts, media and servers under one agenda.

pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod event;
pub(crate) mod lifecycle;
pub(crate) mod postal;
pub(crate) mod tab;

use motet_protocol::{Instant, Rng};

use crate::coverage::Coverage;
use crate::faults::{self, RouteView, Waiting};
use crate::invariants::Checks;
use crate::media::channel::Channels;
use crate::media::lock::LockManager;
use crate::media::port::Port;
use crate::schedule::Step;
use crate::server::{Link, Server};
use crate::setup::Setup;
use context::{Context, ContextId, Kind, Life, Slot, Task};
use event::{Agenda, Event};
use tab::Tab;

/// Events within one virtual millisecond that no honest run needs.
const EVENTS_PER_MILLISECOND_MAX: u32 = 40_000;

/// One millisecond, in the world's unit.
pub(crate) const MS: u64 = 1_000;
/// One second, in the world's unit.
pub(crate) const SECOND: u64 = 1_000_000;

/// Everything there is.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) rng: Rng,
    pub(crate) setup: Setup,
    pub(crate) agenda: Agenda,
    pub(crate) contexts: Vec<Context>,
    pub(crate) tabs: Vec<Tab>,
    pub(crate) channels: Channels,
    pub(crate) ports: Vec<Port>,
    pub(crate) locks: LockManager,
    /// When the last request to and the last news from the lock manager arrive, by agent.
    pub(crate) lock_arrivals: Vec<[u64; 2]>,
    pub(crate) links: Vec<Link>,
    pub(crate) server: Server,
    /// The cluster's shared worker, while it lives.
    pub(crate) shared: Option<ContextId>,
    /// The network carries.
    pub(crate) online: bool,
    /// The application's tokens are valid.
    pub(crate) tokens_valid: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) checks: Checks,
    pub(crate) coverage: Coverage,
    /// Routes by topic, as the last coordinator announced them.
    pub(crate) routes: Vec<Option<RouteView>>,
    /// Faults that wait for their moment.
    pub(crate) waiting: Vec<Waiting>,
    /// Lines of what happened, when somebody wants to read them.
    pub(crate) trace: Option<Vec<(u64, String)>>,
    pub(crate) last_payload: u64,
    /// Faults that were carried out.
    pub(crate) faults: u64,
    crowded: (u64, u32),
}

impl World {
    pub(crate) fn new(setup: Setup, steps: Vec<Step>, mut rng: Rng, trace: bool) -> Self {
        let mut agenda = Agenda::default();
        for (index, step) in steps.iter().enumerate() {
            agenda.insert(step.at, Event::Step(index));
        }
        let server = Server::new(&setup, &mut rng);
        let checks = Checks::new(&setup);
        Self {
            now: 0,
            rng,
            agenda,
            contexts: Vec::new(),
            tabs: Vec::new(),
            channels: Channels::default(),
            ports: Vec::new(),
            locks: LockManager::new(setup.cluster.clone()),
            lock_arrivals: Vec::new(),
            links: Vec::new(),
            server,
            shared: None,
            online: true,
            tokens_valid: true,
            steps,
            checks,
            coverage: faults::coverage(),
            routes: vec![None; setup.topics.len()],
            waiting: Vec::new(),
            trace: trace.then(Vec::new),
            last_payload: 0,
            faults: 0,
            crowded: (0, 0),
            setup,
        }
    }

    /// Lets virtual time pass until `end`, or until a check fails.
    pub(crate) fn run_until(&mut self, end: u64) {
        while self.checks.violation.is_none() && self.agenda.next_at().is_some_and(|at| at <= end) {
            let Some((at, event)) = self.agenda.pop() else { break };
            self.now = at;
            self.count_event();
            self.happen(event);
            self.judge();
        }
        self.now = self.now.max(end);
    }

    /// A core that asks to be called again and again without end is a fault of its own.
    fn count_event(&mut self) {
        let millisecond = self.now / MS;
        if self.crowded.0 != millisecond {
            self.crowded = (millisecond, 0);
        }
        self.crowded.1 += 1;
        if self.crowded.1 > EVENTS_PER_MILLISECOND_MAX {
            self.checks.fail("bounded", self.now, "time stands still: a core never rests");
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Step(index) => {
                self.act(index);
            }
            Event::Arrive { context, sender, task } => self.arrive(context, sender, task),
            Event::Run(context) => self.run_context(context),
            Event::Timer(context, slot, stamp) => {
                if self.contexts[context].timers_armed[slot as usize].stamp == stamp {
                    self.arrive(context, None, Task::Timer(slot, stamp));
                }
            }
            Event::Lock(agent, op) => {
                let news = self.locks.handle(agent, &op);
                self.tell(news);
            }
            Event::AgentGone(agent) => {
                let news = self.locks.agent_gone(agent);
                self.tell(news);
            }
            Event::Up(connection, message) => self.server_hears(connection, message),
            Event::ServerTimer(stamp) => self.server_timer(stamp),
            Event::Later(later) => self.later(later),
        }
    }

    fn arrive(&mut self, id: ContextId, sender: Option<(ContextId, u64)>, task: Task) {
        if !self.contexts[id].alive() {
            return;
        }
        if sender.is_some_and(|(sender, at)| self.contexts[sender].lost_after <= at) {
            return;
        }
        if self.contexts[id].life == Life::Cached
            && let Task::Channel(listener, _) = &task
        {
            if self.channels.channel_of(*listener).is_some() {
                self.disturb_cached(id);
            }
            return;
        }
        let context = &mut self.contexts[id];
        if context.acting(self.now) && context.busy_until <= self.now && context.queued() == 0 {
            self.perform(id, task);
        } else {
            context.enqueue(task);
            self.wake(id);
        }
    }

    /// Plans the context's next task, if there is one and it can run.
    pub(crate) fn wake(&mut self, id: ContextId) {
        let context = &mut self.contexts[id];
        if context.life != Life::Running || context.run_planned || context.queued() == 0 {
            return;
        }
        context.run_planned = true;
        let at = self.now.max(context.busy_until).max(context.blocked_until);
        self.agenda.insert(at, Event::Run(id));
    }

    fn run_context(&mut self, id: ContextId) {
        let context = &mut self.contexts[id];
        context.run_planned = false;
        if !context.acting(self.now) {
            self.wake(id);
            return;
        }
        if let Some(task) = context.dequeue(&mut self.rng) {
            self.perform(id, task);
        }
        self.wake(id);
    }

    fn perform(&mut self, id: ContextId, task: Task) {
        let cost = 5 + self.rng.below(40);
        let context = &mut self.contexts[id];
        context.busy_until = self.now + cost;
        if let Task::Timer(slot, stamp) = task {
            let timer = &mut context.timers_armed[slot as usize];
            if timer.stamp != stamp {
                return;
            }
            timer.due = None;
        }
        match task {
            Task::Timer(Slot::Client, _)
            | Task::NodeUp { .. }
            | Task::NodeLate(_)
            | Task::NodeDown(_)
            | Task::ToPage(..)
            | Task::Browser(_)
            | Task::App(_) => self.page_task(id, task),
            Task::Timer(..)
            | Task::ToHost(..)
            | Task::Socket(..)
            | Task::Boot(_)
            | Task::Connect(..) => self.host_task(id, task),
            Task::Channel(..) => self.channel_task(id, task),
            Task::Lock(agent, event) => self.lock_task(id, agent, event),
        }
    }

    /// The context's own time.
    pub(crate) fn local_now(&self, id: ContextId) -> Instant {
        self.contexts[id].clock.read(self.now)
    }

    /// Arms a core's timer as the core asks.
    pub(crate) fn arm(&mut self, id: ContextId, slot: Slot, due: Option<Instant>) {
        let context = &mut self.contexts[id];
        let timer = &mut context.timers_armed[slot as usize];
        if timer.due == due {
            return;
        }
        timer.stamp += 1;
        timer.due = due;
        let Some(due) = due else { return };
        let stamp = timer.stamp;
        let late = self.rng.below(500);
        let mut at = context.clock.when(due).max(self.now) + late;
        if context.timer_grid > 0 && context.kind == Kind::Page {
            at = at.div_ceil(context.timer_grid) * context.timer_grid;
        }
        self.agenda.insert(at, Event::Timer(id, slot, stamp));
    }

    /// Arms all timers of a context anew: its clock or its timers' grid has changed.
    pub(crate) fn arm_anew(&mut self, id: ContextId) {
        for slot in [Slot::Client, Slot::Node, Slot::Transport] {
            let due = self.contexts[id].timers_armed[slot as usize].due;
            self.arm(id, slot, None);
            self.arm(id, slot, due);
        }
    }

    /// Writes a line of the trace, if one is kept.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push((self.now, line()));
        }
    }

    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.rng.below(1_000) < per_mille
    }
}

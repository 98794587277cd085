//! Browsing contexts: pages and workers with an event loop, a clock and timers of their own.

use std::collections::VecDeque;

use motet_cluster::client::PageEvent;
use motet_cluster::lock::LockEvent;
use motet_protocol::{NodeId, Rng};

use super::clock::Clock;
use crate::driver::host::Host;
use crate::driver::page::Page;
use crate::media::lock::Agent;
use crate::media::port::PortId;
use crate::media::wire::Post;
use crate::server::{ConnectionId, Downstream};

/// Index of a context in the world; never used again.
pub(crate) type ContextId = usize;

/// What a context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page's main thread.
    Page,
    /// A dedicated worker: lives, freezes and dies with its page.
    Worker,
    /// A shared worker: freezes and dies with the renderer of the tab that created it.
    Shared,
}

/// Whether a context's event loop turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It does.
    Running,
    /// It does not: tasks queue up.
    Frozen,
    /// The page is in the back/forward cache.
    Cached,
    /// Gone for good.
    Dead,
}

/// A core's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The page's client.
    Client,
    /// The node.
    Node,
    /// The node's transport.
    Transport,
}

/// Something for a context's event loop.
#[derive(Debug)]
pub(crate) enum Task {
    /// A message on a port, for the node's host.
    ToHost(PortId, Post),
    /// A message on a port, for the page.
    ToPage(PortId, Post),
    /// A message on a broadcast channel, for one listener.
    Channel(u32, Post),
    /// News of the lock manager.
    Lock(Agent, LockEvent),
    /// A timer is due.
    Timer(Slot, u32),
    /// News of a server connection.
    Socket(ConnectionId, Downstream),
    /// The host's script starts: it creates its node. In a page, for this start.
    Boot(u32),
    /// A page connects to the node's host, with this start of its own.
    Connect(PortId, u32),
    /// The page learns that the node of this start runs.
    NodeUp {
        /// Which start.
        start: u32,
        /// The port to it.
        port: PortId,
        /// The node.
        node: NodeId,
    },
    /// The page learns that the node of this start is gone.
    NodeDown(u32),
    /// The page gives up on the node of this start, unless it runs.
    NodeLate(u32),
    /// The browser tells the page something.
    Browser(PageEvent),
    /// The application acts.
    App(AppCall),
}

/// What the application does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AppCall {
    /// Subscribe a topic, with so many earlier messages.
    Subscribe(usize, u32),
    /// Take one handler of a topic away.
    Unsubscribe(usize),
    /// Publish on a topic so many messages at once.
    Publish(usize, u32),
    /// Abort a publication that waits.
    Abort,
    /// Close the bus.
    Close,
    /// Try again what was refused.
    Retry,
    /// Supply a token, valid or not, for a topic or the connection.
    Token(bool, Option<usize>),
}

/// One timer of a core, as the driver armed it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer {
    /// What the core asked for.
    pub(crate) due: Option<motet_protocol::Instant>,
    /// Newer than any stamp of an older arming.
    pub(crate) stamp: u32,
}

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) kind: Kind,
    /// The tab it belongs to; for a shared worker the tab that created it.
    pub(crate) tab: usize,
    pub(crate) life: Life,
    /// A long task runs until then.
    pub(crate) blocked_until: u64,
    /// Until when it was last unable to act: judges may expect nothing of it before.
    pub(crate) impaired_until: u64,
    /// Since when it has been suspended.
    pub(crate) suspended_at: Option<u64>,
    pub(crate) clock: Clock,
    /// Timers fire only at multiples of this many microseconds (0: at once).
    pub(crate) timer_grid: u64,
    /// Messages, in order of arrival.
    pub(crate) messages: VecDeque<Task>,
    /// News of the lock manager, in order.
    pub(crate) locks: VecDeque<Task>,
    /// News of the network, in order.
    pub(crate) network: VecDeque<Task>,
    /// Timers that are due.
    pub(crate) timers: VecDeque<Task>,
    /// A `Run` event is on the agenda.
    pub(crate) run_planned: bool,
    /// When the present task ends.
    pub(crate) busy_until: u64,
    /// Messages it had sent after this time never left it: it crashed.
    pub(crate) lost_after: u64,
    /// The first tasks after a thaw come in the order the engine likes.
    pub(crate) thawed: bool,
    pub(crate) page: Option<Box<Page>>,
    pub(crate) host: Option<Box<Host>>,
    pub(crate) timers_armed: [Timer; 3],
}

impl Context {
    pub(crate) fn new(kind: Kind, tab: usize, now: u64, rng: &mut Rng) -> Self {
        Self {
            kind,
            tab,
            life: Life::Running,
            blocked_until: 0,
            impaired_until: 0,
            suspended_at: None,
            clock: Clock::new(now, rng),
            timer_grid: 0,
            messages: VecDeque::new(),
            locks: VecDeque::new(),
            network: VecDeque::new(),
            timers: VecDeque::new(),
            run_planned: false,
            busy_until: 0,
            lost_after: u64::MAX,
            thawed: false,
            page: None,
            host: None,
            timers_armed: [Timer::default(); 3],
        }
    }

    pub(crate) fn alive(&self) -> bool {
        self.life != Life::Dead
    }

    /// Its event loop turns and no long task is in the way.
    pub(crate) fn acting(&self, now: u64) -> bool {
        self.life == Life::Running && self.blocked_until <= now
    }

    pub(crate) fn queued(&self) -> usize {
        self.messages.len() + self.locks.len() + self.network.len() + self.timers.len()
    }

    pub(crate) fn enqueue(&mut self, task: Task) {
        match task {
            Task::Lock(..) => self.locks.push_back(task),
            Task::Socket(..) => self.network.push_back(task),
            Task::Timer(..) => self.timers.push_back(task),
            _ => self.messages.push_back(task),
        }
    }

    /// The next task. Sources have no mutual order, but each keeps its own. Right after a thaw
    /// timers and messages come before the news of the lock manager, as engines do it.
    pub(crate) fn dequeue(&mut self, rng: &mut Rng) -> Option<Task> {
        if self.thawed {
            if self.messages.is_empty() && self.timers.is_empty() && self.network.is_empty() {
                self.thawed = false;
            } else {
                let first = if rng.below(2) == 0 { &mut self.timers } else { &mut self.messages };
                return first
                    .pop_front()
                    .or_else(|| self.messages.pop_front())
                    .or_else(|| self.timers.pop_front())
                    .or_else(|| self.network.pop_front());
            }
        }
        let start = rng.below(4);
        (0..4).find_map(|turn| match (start + turn) % 4 {
            0 => self.locks.pop_front(),
            1 => self.messages.pop_front(),
            2 => self.network.pop_front(),
            _ => self.timers.pop_front(),
        })
    }
}

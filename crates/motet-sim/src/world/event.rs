//! The queue of what happens next, in virtual microseconds.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use motet_cluster::lock::LockOp;

use super::context::{ContextId, Slot, Task};
use crate::media::lock::Agent;
use crate::server::ConnectionId;
use crate::server::Upstream;

/// Something that happens at a given time.
#[derive(Debug)]
pub(crate) enum Event {
    /// The next step of the schedule is due.
    Step(usize),
    /// A task reaches a context's event loop.
    Arrive {
        /// The context.
        context: ContextId,
        /// Who sent it, and when: what a crashed sender had not handed over is lost.
        sender: Option<(ContextId, u64)>,
        /// The task.
        task: Task,
    },
    /// A context takes its next task.
    Run(ContextId),
    /// A core's timer is due.
    Timer(ContextId, Slot, u32),
    /// A request reaches the lock manager.
    Lock(Agent, LockOp),
    /// The lock manager learns that an agent is gone.
    AgentGone(Agent),
    /// A command, or the end of a connection, reaches the server.
    Up(ConnectionId, Upstream),
    /// The server's own timer is due.
    ServerTimer(u32),
    /// A fault ends, or a started thing is ready.
    Later(Later),
}

/// The delayed half of a fault or of a browser's action.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Later {
    /// A frozen tab goes on.
    Thaw(usize),
    /// A cached page is shown again.
    Restore(usize),
    /// A tab loads its page.
    Load(usize),
    /// Timers of a tab's page are not throttled any more.
    Unthrottle(usize),
    /// The server is up again.
    ServerUp,
    /// The network carries again.
    NetworkUp,
    /// The server takes tokens again.
    TokensValid,
    /// A fault that waited for its moment waits no longer.
    Strike(usize),
    /// A shared worker without a client ends.
    SharedIdle(ContextId),
}

#[derive(Debug)]
struct Entry {
    at: u64,
    order: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap gives its greatest entry first: the earliest must be the greatest.
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Events in order of time, and of insertion within the same microsecond.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Entry>,
    inserted: u64,
}

impl Agenda {
    pub(crate) fn insert(&mut self, at: u64, event: Event) {
        self.inserted += 1;
        self.heap.push(Entry { at, order: self.inserted, event });
    }

    pub(crate) fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.at)
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

//! The engine that all simulated processes share: one order of commits, groups whose deciders come
//! from several callers, and everything that can go wrong with them.

mod group;
mod tables;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use motet_store::engine::{
    Answer, Capabilities, Commit, Decide, Engine, KEY_BYTES_MAX, OnEntry, OnValue, Range, Read,
    Table, TimeSource, View, Writes,
};
use motet_store::{Error, Head, Hlc};

use super::fault::Fault;
use tables::Tables;

/// A number of a call in a run.
pub(crate) type Call = usize;

/// What became of one decider, in the order of commits.
#[derive(Debug)]
pub(crate) struct Decided {
    /// The call that brought it.
    pub(crate) call: Call,
    pub(crate) process: usize,
    /// The wall clock of its process, milliseconds.
    pub(crate) wall_ms: u64,
    /// The log's end before it.
    pub(crate) before: Head,
    pub(crate) stamp: Hlc,
    /// What was written, or why not.
    pub(crate) outcome: Result<Written, Error>,
    /// The number of the commit that it was part of.
    pub(crate) commit: u64,
}

#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) writes: Writes,
    pub(crate) changes: u64,
}

/// A call of another process that comes in while one is at the engine's door.
pub(crate) struct Companion {
    /// How many writes of the engine it lets pass first.
    pub(crate) after_writes: u32,
    /// Whether it shares the group of the call that it comes in on, or commits before it.
    pub(crate) joins: bool,
    pub(crate) run: Box<dyn FnOnce() + Send>,
}

/// One environment's storage, seen by all processes.
#[derive(Default)]
pub(crate) struct Core(Mutex<State>);

#[derive(Default)]
struct State {
    tables: Tables,
    head: Head,
    waiting: Vec<Waiting>,
    answers: BTreeMap<u64, Result<Commit, Error>>,
    companions: VecDeque<Companion>,
    /// What happens to a group, and how many groups it lets pass first.
    fault: Option<(Fault, u32)>,
    reversed: bool,
    journal: Vec<Decided>,
    struck: Vec<(Call, Fault)>,
    /// The call that is being made.
    call: Call,
    tickets: u64,
    crashed: BTreeSet<usize>,
    /// How often the views of each process were ended.
    expiries: BTreeMap<usize, u64>,
}

/// A decider that waits for its group.
struct Waiting {
    ticket: u64,
    call: Call,
    process: usize,
    wall: Arc<AtomicU64>,
    decider: Box<dyn Decide>,
}

impl Core {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says who calls from now on, and tells who did.
    pub(crate) fn set_call(&self, call: Call) -> Call {
        std::mem::replace(&mut self.state().call, call)
    }

    /// What happens on the way of the next call.
    pub(crate) fn prepare(
        &self,
        companions: VecDeque<Companion>,
        fault: Option<(Fault, u32)>,
        reversed: bool,
    ) {
        let mut state = self.state();
        state.companions = companions;
        state.fault = fault;
        state.reversed = reversed;
    }

    /// Companions whose turn has not come; no fault strikes any more.
    pub(crate) fn end(&self) -> VecDeque<Companion> {
        let mut state = self.state();
        state.fault = None;
        std::mem::take(&mut state.companions)
    }

    pub(crate) fn take_journal(&self) -> Vec<Decided> {
        std::mem::take(&mut self.state().journal)
    }

    pub(crate) fn take_struck(&self) -> Vec<(Call, Fault)> {
        std::mem::take(&mut self.state().struck)
    }

    /// Processes that ended; they may be opened again.
    pub(crate) fn take_crashed(&self) -> BTreeSet<usize> {
        std::mem::take(&mut self.state().crashed)
    }

    pub(crate) fn is_crashed(&self, process: usize) -> bool {
        self.state().crashed.contains(&process)
    }

    pub(crate) fn committed(&self) -> u64 {
        self.state().tables.committed()
    }

    /// Ends the views that a process holds.
    pub(crate) fn expire_views(&self, process: usize) {
        *self.state().expiries.entry(process).or_default() += 1;
    }

    /// Shows a table as it is committed.
    pub(crate) fn show(&self, range: Range<'_>, each: &mut OnEntry<'_>) {
        let state = self.state();
        state.tables.range(state.tables.committed(), range, each);
    }

    /// Lets others come along, then commits what waits.
    fn write(&self, door: &Door, deciders: Vec<Box<dyn Decide>>) -> Vec<Result<Commit, Error>> {
        let tickets = self.enter(door, deciders);
        while let Some(companion) = self.next_companion() {
            if companion.joins {
                (companion.run)();
            } else {
                let aside = std::mem::take(&mut self.state().waiting);
                (companion.run)();
                let mut state = self.state();
                let overtaken: Vec<_> = aside.iter().map(|waiting| waiting.call).collect();
                state.struck.extend(overtaken.into_iter().map(|call| (call, Fault::Overtaken)));
                state.waiting = aside;
            }
            if self.is_answered(&tickets) {
                break;
            }
        }
        if !self.is_answered(&tickets) {
            self.state().commit_group();
        }
        let mut state = self.state();
        let take = |ticket| state.answers.remove(&ticket).unwrap_or(Err(Error::Closed));
        tickets.into_iter().map(take).collect()
    }

    fn enter(&self, door: &Door, deciders: Vec<Box<dyn Decide>>) -> Vec<u64> {
        let mut state = self.state();
        let call = state.call;
        let entered = deciders.into_iter().map(|decider| {
            state.tickets += 1;
            let (ticket, wall) = (state.tickets, Arc::clone(&door.wall));
            state.waiting.push(Waiting { ticket, call, process: door.process, wall, decider });
            ticket
        });
        entered.collect()
    }

    fn next_companion(&self) -> Option<Companion> {
        let mut state = self.state();
        let first = state.companions.front_mut()?;
        if first.after_writes > 0 {
            first.after_writes -= 1;
            return None;
        }
        state.companions.pop_front()
    }

    fn is_answered(&self, tickets: &[u64]) -> bool {
        let state = self.state();
        tickets.iter().all(|ticket| state.answers.contains_key(ticket))
    }
}

/// One process's way to the engine.
pub(crate) struct Door {
    pub(crate) core: Arc<Core>,
    pub(crate) process: usize,
    /// The process's wall clock, milliseconds.
    pub(crate) wall: Arc<AtomicU64>,
}

impl Engine for Door {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            multi_process: true,
            max_key_len: KEY_BYTES_MAX,
            max_txn_bytes: 64 << 20,
            time_source: TimeSource::Process,
        }
    }

    fn view(&self) -> Answer<'_, Result<Box<dyn View>, Error>> {
        let mut state = self.core.state();
        let at = state.tables.hold_view();
        let expiries = state.expiries.get(&self.process).copied().unwrap_or(0);
        let (core, process) = (Arc::clone(&self.core), self.process);
        Answer::now(Ok(Box::new(Snapshot { core, process, at, expiries })))
    }

    fn write(&self, deciders: Vec<Box<dyn Decide>>) -> Answer<'_, Vec<Result<Commit, Error>>> {
        Answer::now(self.core.write(self, deciders))
    }
}

/// A view of one commit, which a process may keep for too long.
struct Snapshot {
    core: Arc<Core>,
    process: usize,
    at: u64,
    expiries: u64,
}

impl Snapshot {
    fn check(&self, state: &State) -> Result<(), Error> {
        let expired = state.expiries.get(&self.process).copied().unwrap_or(0) != self.expiries;
        if expired { Err(Error::ViewExpired { max_ms: 10_000 }) } else { Ok(()) }
    }
}

impl View for Snapshot {}

impl Read for Snapshot {
    fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
        each: &'a mut OnValue<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        let state = self.core.state();
        let outcome = self.check(&state);
        if outcome.is_ok() {
            state.tables.get_many(self.at, table, keys, each);
        }
        Answer::now(outcome)
    }

    fn range<'a>(
        &'a self,
        range: Range<'a>,
        each: &'a mut OnEntry<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        let state = self.core.state();
        let outcome = self.check(&state);
        if outcome.is_ok() {
            state.tables.range(self.at, range, each);
        }
        Answer::now(outcome)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.core.state().tables.release_view(self.at);
    }
}

impl Door {
    pub(crate) fn wall_ms(wall: &AtomicU64) -> u64 {
        wall.load(Ordering::Relaxed)
    }
}

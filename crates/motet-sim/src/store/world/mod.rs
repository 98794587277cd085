//! A run: processes on one engine, in virtual time, judged after every step.

mod calling;
mod inside;

use std::sync::Arc;

use motet_protocol::Rng;

use super::action::{Action, Operation, Step};
use super::calls::MadeCall;
use super::engine::Core;
use super::fault::{self, Fault};
use super::judge::{self, Verdict};
use super::model::Model;
use super::model::rules::TYPES;
use super::pager::Pager;
use super::process::Process;
use super::schedule::Setup;
use super::tail::{BACKSTOP_MS, Looked};
use crate::coverage::Coverage;

/// When a run begins, milliseconds since 1970.
const START_MS: u64 = 1_700_000_000_000;
/// How many steps lie between two looks at all indexes.
const INDEX_CHECK_STEPS: usize = 40;
/// More than any clock of a process is ahead, or any document lives.
const REST_MS: u64 = 200_000;

pub(crate) struct World {
    pub(crate) core: Arc<Core>,
    setup: Setup,
    pub(crate) processes: Vec<Process>,
    pub(crate) model: Model,
    calls: Vec<MadeCall>,
    pub(crate) now_ms: u64,
    instances: u64,
    /// What the wire does to pokes.
    wire: Rng,
    pub(crate) coverage: Coverage,
    pub(crate) faults: u64,
    pub(crate) trace: Option<Vec<(u64, String)>>,
}

impl World {
    pub(crate) fn new(setup: Setup, mut rng: Rng, trace: bool) -> Self {
        let core = Arc::<Core>::default();
        let mut world = Self {
            core: Arc::clone(&core),
            setup,
            processes: Vec::new(),
            model: Model::new(),
            calls: Vec::new(),
            now_ms: START_MS,
            instances: 0,
            wire: rng.fork(),
            coverage: fault::coverage(),
            faults: 0,
            trace: trace.then(Vec::new),
        };
        for place in 0..setup.processes {
            world.instances += 1;
            let mut process = Process::open(&core, place, world.instances, setup.batch_max);
            process.set_time(world.now_ms);
            // A process that follows no log may have an old catalogue for long.
            if rng.below(2) == 0 {
                process.follow(&world.model, world.now_ms);
            }
            world.processes.push(process);
        }
        world
    }

    /// Takes all steps, then lets the environment come to rest.
    pub(crate) fn run(&mut self, steps: &[Step]) -> Verdict {
        for (number, step) in steps.iter().enumerate() {
            self.step(step)?;
            if self.model.indexes_moved || number % INDEX_CHECK_STEPS == 0 {
                self.check_indexes()?;
            }
        }
        self.rest()
    }

    fn check_indexes(&mut self) -> Verdict {
        self.model.indexes_moved = false;
        judge::references::check(&self.model)?;
        judge::indexes::check(&self.core, &self.model, self.model.time >> 16)
    }

    fn step(&mut self, step: &Step) -> Verdict {
        self.advance(step.after_ms)?;
        let place = step.process;
        let Some(process) = self.processes.get(place) else { return Ok(()) };
        if process.is_paused(self.now_ms) {
            return Ok(());
        }
        if self.trace.is_some() {
            let line = format!("process {place}: {:?}", step.action);
            self.note(line);
        }
        match &step.action {
            Action::Begin => self.begin(place),
            Action::ReadInside(read) => self.read_inside(place, read),
            Action::WriteInside(write) => self.write_inside(place, write),
            Action::Read(_) | Action::ReadLog(_) | Action::ReadPage(_) | Action::Describe(_) => {
                self.read(place, &step.action)
            }
            Action::SetClock(offset_ms) => {
                self.processes[place].offset_ms = *offset_ms;
                self.processes[place].set_time(self.now_ms);
                Ok(())
            }
            Action::Pause(ms) => {
                let until = self.now_ms + ms;
                let process = &mut self.processes[place];
                process.paused_until = until;
                if let Some(follower) = &mut process.follower {
                    follower.pause(until + 1);
                }
                Ok(())
            }
            Action::ExpireViews => {
                self.core.expire_views(place);
                self.processes[place].transaction = None;
                Ok(())
            }
            Action::Reopen => {
                self.reopen(place);
                Ok(())
            }
            _ => self.call(step),
        }
    }

    fn read(&mut self, place: usize, action: &Action) -> Verdict {
        if let Some(operation) = action.operation() {
            self.mark_process(place, operation);
        }
        let process = &mut self.processes[place];
        process.seen_epoch = self.model.epoch;
        let (env, now_ms) = (&process.env, self.model.read_ms(process.wall_ms()));
        match action {
            Action::Read(read) => judge::reads::read(env, &self.model, now_ms, read),
            Action::ReadLog(back) => judge::reads::read_log(env, &self.model, *back),
            Action::ReadPage(limit) => Pager::read(&mut process.pager, env, &self.model, *limit),
            Action::Describe(kind) => judge::reads::describe(env, &self.model, *kind),
            _ => Ok(()),
        }
    }

    /// Notes what is wrong with the process of an operation.
    fn mark_process(&mut self, place: usize, operation: Operation) {
        let process = &self.processes[place];
        let (wall_ms, log_ms) = (process.wall_ms(), self.model.time >> 16);
        let struck = [
            (process.seen_epoch < self.model.epoch, Fault::StaleCatalog),
            (wall_ms < log_ms, Fault::ClockBehind),
            (wall_ms > self.now_ms + 1_000, Fault::ClockAhead),
        ];
        for (_, fault) in struck.into_iter().filter(|(struck, _)| *struck) {
            self.coverage.mark(operation as usize, fault as usize);
            self.faults += 1;
        }
    }

    fn reopen(&mut self, place: usize) {
        self.instances += 1;
        let (core, batch_max) = (&self.core, self.setup.batch_max);
        let process = &self.processes[place];
        let next = process.reopened(core, place, self.instances, batch_max, self.now_ms);
        self.processes[place] = next;
    }

    /// Time passes, and whoever follows the log looks when it is time.
    fn advance(&mut self, ms: u64) -> Verdict {
        let until = self.now_ms + ms;
        loop {
            let places = 0..self.processes.len();
            let next = places.min_by_key(|place| self.processes[*place].next_look());
            let Some(place) = next else { break };
            let at = self.processes[place].next_look();
            if at > until {
                break;
            }
            self.set_time(at.max(self.now_ms));
            self.look(place)?;
        }
        self.set_time(until);
        let followers = self.processes.iter_mut().filter_map(|one| one.follower.as_mut());
        followers.into_iter().try_for_each(|follower| follower.check(until))
    }

    fn set_time(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.processes.iter().for_each(|process| process.set_time(now_ms));
    }

    fn look(&mut self, place: usize) -> Verdict {
        let process = &mut self.processes[place];
        process.seen_epoch = self.model.epoch;
        let Some(follower) = &mut process.follower else { return Ok(()) };
        if let Looked::Truncated = follower.look(&self.model, self.now_ms)? {
            process.follow(&self.model, self.now_ms);
        }
        Ok(())
    }

    pub(crate) fn note(&mut self, line: String) {
        let now_ms = self.now_ms - START_MS;
        if let Some(trace) = &mut self.trace {
            trace.push((now_ms, line));
        }
    }

    /// Nobody writes any more: all clocks are right, and maintenance is done.
    fn rest(&mut self) -> Verdict {
        for process in &mut self.processes {
            process.transaction = None;
            process.offset_ms = 0;
            process.paused_until = 0;
        }
        self.advance(REST_MS)?;
        for _ in 0..3 {
            for place in 0..self.processes.len() {
                self.call(&Step::alone(place, Action::Maintain))?;
            }
            self.advance(BACKSTOP_MS)?;
        }
        self.check_indexes()?;
        judge::rest::check(&self.core, &self.model, self.now_ms)?;
        self.advance(BACKSTOP_MS + 1)?;
        self.reopen(0);
        for kind in 0..TYPES.len() as u8 {
            self.read(0, &Action::Describe(kind))?;
            for read in judge::rest::reads(kind) {
                self.read(0, &Action::Read(read))?;
            }
        }
        self.read(0, &Action::ReadLog(25))?;
        self.read(0, &Action::ReadPage(usize::MAX))
    }
}

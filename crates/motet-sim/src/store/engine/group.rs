//! How a group of deciders is committed, and how that fails.

use std::mem;

use motet_store::engine::{
    Answer, Commit, Decision, OnEntry, OnValue, Range, Read, Table, Transaction,
};
use motet_store::{Error, Head, Hlc};

use super::tables::Tables;
use super::{Decided, Door, State, Waiting, Written};
use crate::store::fault::Fault;

impl State {
    /// Commits everything that waits as one group, unless a fault strikes it.
    pub(super) fn commit_group(&mut self) {
        let (mut group, dead): (Vec<_>, Vec<_>) = mem::take(&mut self.waiting)
            .into_iter()
            .partition(|waiting| !self.crashed.contains(&waiting.process));
        for waiting in dead {
            self.answers.insert(waiting.ticket, Err(Error::Closed));
        }
        if self.reversed {
            group.reverse();
        }
        if group.len() > 1 {
            self.struck.extend(group.iter().map(|waiting| (waiting.call, Fault::Joined)));
        }
        let fault = self.strike();
        if let Some(fault) = fault {
            self.struck.extend(group.iter().map(|waiting| (waiting.call, fault)));
        }
        match fault {
            Some(Fault::AskedTwice | Fault::DiskFullOnce | Fault::DiskFull) => {
                self.fail_and_repeat(&mut group, fault);
            }
            _ => self.commit_together(&mut group, fault),
        }
    }

    /// The fault whose turn has come.
    fn strike(&mut self) -> Option<Fault> {
        match &mut self.fault {
            Some((_, groups)) if *groups > 0 => {
                *groups -= 1;
                None
            }
            fault => fault.take().map(|(fault, _)| fault),
        }
    }

    fn commit_together(&mut self, group: &mut [Waiting], fault: Option<Fault>) {
        let before = self.head;
        let decided: Vec<_> = group.iter_mut().map(|waiting| self.decide(waiting)).collect();
        let crash = matches!(fault, Some(Fault::CrashBefore | Fault::CrashAfter));
        if crash {
            self.crashed.extend(group.iter().map(|waiting| waiting.process));
        }
        if fault == Some(Fault::CrashBefore) {
            self.tables.undo();
            self.head = before;
            self.answers.extend(group.iter().map(|waiting| (waiting.ticket, Err(Error::Closed))));
            return;
        }
        self.tables.commit();
        for (waiting, decided) in group.iter().zip(decided) {
            let answer = if crash { Err(Error::Closed) } else { answer(&decided) };
            self.answers.insert(waiting.ticket, answer);
            self.journal.push(decided);
        }
    }

    /// The group's transaction does not fit; each is asked again in one of its own.
    fn fail_and_repeat(&mut self, group: &mut [Waiting], fault: Option<Fault>) {
        let before = self.head;
        for waiting in &mut *group {
            let _forgotten = self.decide(waiting);
        }
        self.tables.undo();
        self.head = before;
        for (place, waiting) in group.iter_mut().enumerate() {
            let before = self.head;
            let mut decided = self.decide(waiting);
            let full = match fault {
                Some(Fault::DiskFull) => true,
                Some(Fault::DiskFullOnce) => place == 0,
                _ => false,
            };
            if full && decided.outcome.is_ok() {
                self.tables.undo();
                self.head = before;
                decided.outcome = Err(Error::DiskFull);
            } else {
                self.tables.commit();
            }
            self.answers.insert(waiting.ticket, answer(&decided));
            self.journal.push(decided);
        }
    }

    /// Asks one decider and applies what it decided to the open transaction.
    fn decide(&mut self, waiting: &mut Waiting) -> Decided {
        let before = self.head;
        let wall_ms = Door::wall_ms(&waiting.wall);
        let stamp = before.time.next(wall_ms);
        let open = Open { tables: &self.tables, head: before, stamp };
        let decision = now(waiting.decider.decide(&open));
        let commit = self.tables.open();
        let outcome = decision.map(|decision| {
            self.head = decision.head_after(before, stamp);
            let Decision { writes, changes } = decision;
            self.tables.apply(&writes);
            if self.head != before {
                self.tables.put(Table::Catalog, Head::KEY, Some(&self.head.to_bytes()));
            }
            Written { writes, changes }
        });
        let (call, process) = (waiting.call, waiting.process);
        Decided { call, process, wall_ms, before, stamp, outcome, commit }
    }
}

fn answer(decided: &Decided) -> Result<Commit, Error> {
    let before = decided.before.clock;
    match &decided.outcome {
        Ok(written) => {
            Ok(Commit { before, clock: before.plus(written.changes), time: decided.stamp })
        }
        Err(error) => Err(error.clone()),
    }
}

/// This engine answers at once, so that whoever asks it never waits.
fn now<T>(answer: Answer<'_, T>) -> T {
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    let mut answer = core::pin::pin!(answer);
    match answer.as_mut().poll(&mut context) {
        core::task::Poll::Ready(answer) => answer,
        core::task::Poll::Pending => panic!("a decider waits for something else than the engine"),
    }
}

/// The open transaction, as a decider sees it.
struct Open<'t> {
    tables: &'t Tables,
    head: Head,
    stamp: Hlc,
}

impl Transaction for Open<'_> {
    fn head(&self) -> Head {
        self.head
    }

    fn stamp(&self) -> Hlc {
        self.stamp
    }
}

impl Read for Open<'_> {
    fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
        each: &'a mut OnValue<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        self.tables.get_many(self.tables.open(), table, keys, each);
        Answer::now(Ok(()))
    }

    fn range<'a>(
        &'a self,
        range: Range<'a>,
        each: &'a mut OnEntry<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        self.tables.range(self.tables.open(), range, each);
        Answer::now(Ok(()))
    }
}

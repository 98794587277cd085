//! Calls that write, with whatever comes in on the way, and what they came to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use motet_store::Error;

use super::World;
use crate::store::action::{Action, Change, DrawnWrite, Expected, Step};
use crate::store::calls::{Asked, MadeCall, runner};
use crate::store::engine::{Call, Companion};
use crate::store::judge::{self, Verdict};
use crate::store::model::Id;
use crate::store::model::body::{Body, Link};
use crate::store::model::rules::Field;
use crate::store::model::write::{ModelWrite, WriteKind};
use crate::store::tail::BACKSTOP_MS;

impl Step {
    /// An action that nothing disturbs.
    pub(crate) const fn alone(process: usize, action: Action) -> Self {
        Self { after_ms: 0, process, action, guests: Vec::new(), fault: None, reversed: false }
    }
}

impl World {
    pub(super) fn call(&mut self, step: &Step) -> Verdict {
        let first = self.calls.len();
        let Some(run) = self.make(step.process, &step.action) else { return Ok(()) };
        let mut companions = VecDeque::new();
        for guest in &step.guests {
            let place = guest.process % self.processes.len();
            if self.processes[place].is_paused(self.now_ms) {
                continue;
            }
            if let Some(run) = self.make(place, &guest.action) {
                let (after_writes, joins) = (guest.after_writes, guest.joins);
                companions.push_back(Companion { after_writes, joins, run });
            }
        }
        self.core.prepare(companions, step.fault, step.reversed);
        run();
        for companion in self.core.end() {
            (companion.run)();
        }
        self.settle(first, step.guests.is_empty())
    }

    /// Prepares a call; `None` if the process has nothing to do it with.
    fn make(&mut self, place: usize, action: &Action) -> Option<Box<dyn FnOnce() + Send>> {
        let operation = action.operation()?;
        let mut transaction = None;
        let asked = match action {
            Action::Write(writes) => {
                Asked::Writes(writes.iter().map(|write| self.concrete(write)).collect(), None)
            }
            Action::Commit => {
                let open = self.processes[place].transaction.take()?;
                transaction = Some(open.store);
                Asked::Writes(open.writes, Some(Box::new(open.reads)))
            }
            Action::Define(kind, spec) => Asked::Define(*kind, spec.clone()),
            Action::CreateIndex(kind, slot, shape) => Asked::CreateIndex(*kind, *slot, *shape),
            Action::DropIndex(kind, slot) => Asked::DropIndex(*kind, *slot),
            Action::SetRetention(kept) => Asked::SetRetention(*kept),
            Action::Pin(slot, back) => {
                Asked::Pin(*slot, back.map(|back| self.model.head.saturating_sub(back)))
            }
            Action::Maintain => Asked::Maintain,
            _ => return None,
        };
        self.mark_process(place, operation);
        let process = &mut self.processes[place];
        if matches!(asked, Asked::Maintain) {
            process.seen_epoch = self.model.epoch;
        }
        let answer = Arc::new(Mutex::new(None));
        let env = process.env.clone();
        let run = runner(env, &asked, transaction, Arc::clone(&answer));
        let (core, number) = (Arc::clone(&self.core), self.calls.len());
        let instance = process.instance;
        self.calls.push(MadeCall { process: place, instance, operation, asked, answer });
        Some(Box::new(move || {
            let before = core.set_call(number);
            if !core.is_crashed(place) {
                run();
            }
            core.set_call(before);
        }))
    }

    /// A write as the environment's present state makes it.
    pub(super) fn concrete(&self, write: &DrawnWrite) -> ModelWrite {
        let id = Id { kind: write.kind, key: write.key };
        let aim = |body: &Body| self.aimed(write.kind, body);
        let kind = match &write.change {
            Change::Put(body) => WriteKind::Put(aim(body)),
            Change::Create(body) => WriteKind::Create(aim(body)),
            Change::Update(body) => WriteKind::Update(aim(body)),
            Change::Patch(part) => WriteKind::Patch(*part),
            Change::Remove => WriteKind::Remove,
        };
        let version = self.model.docs.version(id);
        let if_version = write.if_version.map(|expected| match expected {
            Expected::None => 0,
            Expected::Present => version,
            Expected::Stale => version.saturating_sub(1),
        });
        ModelWrite { id, kind, if_version, expiry: write.expiry }
    }

    /// Turns references to documents that are there.
    fn aimed(&self, kind: u8, body: &Body) -> Body {
        let mut body = body.clone();
        for reference in &self.model.kind(kind).spec.references {
            let there: Vec<_> =
                self.model.docs.of_kind(reference.to).map(|(id, _)| id.key).collect();
            let aim = |key: u8| {
                let known = usize::from(key) < crate::store::model::body::KEYS.len();
                if known && !there.is_empty() { there[usize::from(key) % there.len()] } else { key }
            };
            match (reference.field, &mut body.to, &mut body.refs) {
                (Field::To, Link::To(key), _) => *key = aim(*key),
                (Field::Refs, _, Some(refs)) => refs.iter_mut().for_each(|key| *key = aim(*key)),
                _ => {}
            }
        }
        body
    }

    /// Judges what the calls from this number on came to.
    fn settle(&mut self, first: Call, alone: bool) -> Verdict {
        for (call, fault) in self.core.take_struck() {
            self.coverage.mark(self.calls[call].operation as usize, fault as usize);
            self.faults += 1;
        }
        let crashed = self.core.take_crashed();
        let mut commits: BTreeMap<usize, u64> = BTreeMap::new();
        let mut judged = BTreeSet::new();
        for decided in self.core.take_journal() {
            let call = &self.calls[decided.call];
            judged.insert(decided.call);
            let line = self.trace.is_some().then(|| {
                let outcome = match &decided.outcome {
                    Ok(written) => format!("{} changes", written.changes),
                    Err(error) => error.to_string(),
                };
                let (before, process) = (decided.before.clock, decided.process);
                format!("  process {process}: {:?} after {before}: {outcome}", call.asked)
            });
            judge::decided::decided(&mut self.model, call, &decided)?;
            if let Some(line) = line {
                self.note(line);
            }
            if decided.outcome.is_ok_and(|written| written.changes > 0) {
                commits.insert(decided.process, decided.commit);
                self.expect_followers(decided.process, crashed.contains(&decided.process));
            }
        }
        self.send_pokes(&commits);
        for number in first..self.calls.len() {
            self.settle_call(number, judged.contains(&number), &crashed, alone)?;
        }
        for place in crashed {
            self.note(format!("  process {place} ended"));
            self.reopen(place);
        }
        Ok(())
    }

    /// Whoever follows the log must hear of what was committed just now.
    fn expect_followers(&mut self, by: usize, crashed: bool) {
        let (clock, now_ms) = (self.model.head, self.now_ms);
        for (place, process) in self.processes.iter_mut().enumerate() {
            // Nobody is sure to hear of what its writer was not told, nor is a process of itself.
            let lossy = self.setup.lossy || crashed || place == by;
            let paused_until = process.paused_until;
            if let Some(follower) = &mut process.follower {
                follower.expect(clock, lossy, now_ms);
                if paused_until > now_ms {
                    follower.pause(paused_until + 1);
                }
            }
        }
    }

    /// Sends the pokes of the calls just made. One from before the commit has come before it.
    fn send_pokes(&mut self, commits: &BTreeMap<usize, u64>) {
        for from in 0..self.processes.len() {
            let last = commits.get(&from).copied().unwrap_or(0);
            let pokes = self.processes[from].poker.take();
            let sent = pokes.into_iter().filter(|poke| *poke >= last).count();
            for (place, process) in self.processes.iter_mut().enumerate() {
                let Some(follower) = &mut process.follower else { continue };
                if place != from {
                    for _ in 0..sent {
                        follower.poke(self.setup.lossy, self.now_ms, &mut self.wire);
                    }
                }
            }
        }
    }

    /// Judges an answer that no decider stands for.
    fn settle_call(
        &mut self,
        number: Call,
        judged: bool,
        crashed: &BTreeSet<usize>,
        alone: bool,
    ) -> Verdict {
        let call = &self.calls[number];
        let Some(answer) = call.take_answer() else { return Ok(()) };
        let place = call.process;
        let excused = crashed.contains(&place);
        match (&call.asked, answer) {
            (_, Err(Error::Closed)) if excused => Ok(()),
            (Asked::Maintain, Err(Error::DiskFull)) => Ok(()),
            (Asked::Maintain, Ok(next)) => self.check_next(place, next[0], alone),
            (Asked::Writes(writes, _), Ok(_)) if writes.is_empty() => Ok(()),
            (asked, answer) => {
                let detail = format!("{asked:?} gave {answer:?} (judged: {judged})");
                Err(("durable", detail))
            }
        }
    }

    /// Maintenance comes again before the next document expires.
    fn check_next(&self, place: usize, next_ms: u64, alone: bool) -> Verdict {
        let wall_ms = self.processes[place].wall_ms();
        // One that others refer to may have been put off.
        let free = |id: Id| self.model.referred & 1 << id.kind == 0;
        let docs = self.model.docs.all().filter(|(id, _)| free(*id));
        let expiries = docs.filter_map(|(_, doc)| doc.expires_ms);
        let soonest = expiries.filter(|at| *at > wall_ms).min().unwrap_or(u64::MAX);
        let late = alone && next_ms > soonest - wall_ms;
        if late || next_ms > BACKSTOP_MS {
            let detail =
                format!("maintenance is due in {next_ms} ms, {soonest} expires at {wall_ms}");
            return Err(("expiry", detail));
        }
        Ok(())
    }
}

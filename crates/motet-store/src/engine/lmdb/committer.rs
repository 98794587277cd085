//! The one thread of an engine that writes: whatever waits shares a transaction and a sync.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::attempt::Attempt;
use super::keeper::Bell;
use super::queue::{Ask, Outcome, Queue};
use super::turnstile::Turnstile;
use super::{Core, failure};
use crate::Error;

pub(super) struct Committer {
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    pub(super) fn start(
        core: &Arc<Core>,
        queue: &Arc<Queue>,
        turnstile: &Arc<Turnstile>,
        bell: &Arc<Bell>,
    ) -> io::Result<Self> {
        let work = Work {
            core: Arc::downgrade(core),
            queue: Arc::clone(queue),
            turnstile: Arc::clone(turnstile),
            bell: Arc::clone(bell),
        };
        let thread = thread::Builder::new().name("motet-committer".into());
        Ok(Self { thread: Some(thread.spawn(move || work.run())?) })
    }

    /// Waits until everything that was queued is answered and, unless it waits for a turn that may
    /// never come, for the end of the thread.
    pub(super) fn end(&mut self, queue: &Queue) {
        let Some(thread) = self.thread.take() else { return };
        // A decider may own the last handle of its own engine.
        if thread.thread().id() == thread::current().id() {
            return;
        }
        if queue.wait_for_end() {
            // It has answered everything; how it ended concerns nobody any more.
            let _ = thread.join();
        }
    }
}

/// What the thread holds while it waits: nothing that keeps the environment open.
struct Work {
    core: Weak<Core>,
    queue: Arc<Queue>,
    turnstile: Arc<Turnstile>,
    bell: Arc<Bell>,
}

impl Drop for Work {
    /// However the thread ends, nobody waits for it in vain.
    fn drop(&mut self) {
        self.queue.end();
    }
}

impl Work {
    fn run(&self) {
        while self.queue.wait() {
            let turn = self.turnstile.take(|| {
                self.queue.waits_for_turn();
                self.bell.ring();
            });
            self.queue.turn_came();
            let Some(core) = self.core.upgrade() else { return };
            match turn {
                Ok(_turn) => core.write_group(&self.queue),
                Err(cause) => {
                    if let Some(ask) = self.queue.next() {
                        let error = failure::from_io(cause, &core.path, "waiting for the turn");
                        ask.answer(Err(error));
                    }
                }
            }
            core.wrote.store(true, Ordering::Relaxed);
            self.bell.ring();
        }
    }
}

impl Core {
    /// Asks what waits, in one transaction, and answers.
    fn write_group(&self, queue: &Queue) {
        self.views.drop_stale(self);
        let mut asked = Vec::new();
        let written = self.try_group(queue, &mut asked);
        match written {
            Ok(()) => answer_all(asked),
            // Nothing more is written: there is nothing to try again.
            Err(error @ Error::Poisoned { .. }) => {
                for (ask, _) in asked {
                    ask.answer(Err(error.clone()));
                }
            }
            Err(error) => self.retry_singly(asked, &error),
        }
    }

    fn try_group(&self, queue: &Queue, asked: &mut Vec<(Ask, Outcome)>) -> Result<(), Error> {
        let started = Instant::now();
        let mut attempt = match self.begin() {
            Ok(attempt) => attempt,
            Err(failed) => {
                asked.extend(queue.next().map(|ask| (ask, Err(Error::Closed))));
                return Err(failed);
            }
        };
        while let Some(mut ask) = queue.next() {
            match attempt.ask(ask.decider.as_mut()) {
                Ok(outcome) => asked.push((ask, outcome)),
                Err(error) => {
                    asked.push((ask, Err(Error::Closed)));
                    return Err(self.refused(error));
                }
            }
            if started.elapsed() > GROUP_AGE_MAX || attempt.bytes() > GROUP_BYTES_MAX {
                break;
            }
        }
        self.commit(attempt)
    }

    /// Gives each its own transaction, so that only what fails by itself fails.
    fn retry_singly(&self, asked: Vec<(Ask, Outcome)>, error: &Error) {
        let alone = asked.len() == 1;
        for (mut ask, _) in asked {
            let outcome = if alone { Err(error.clone()) } else { self.write_single(&mut ask) };
            ask.answer(outcome);
        }
    }

    fn write_single(&self, ask: &mut Ask) -> Outcome {
        let mut attempt = self.begin()?;
        let outcome = attempt.ask(ask.decider.as_mut()).map_err(|error| self.refused(error))?;
        self.commit(attempt)?;
        outcome
    }

    fn begin(&self) -> Result<Attempt<'_>, Error> {
        if let Some(error) = self.poisoned() {
            return Err(error);
        }
        Attempt::begin(self).map_err(|error| self.refused(error))
    }

    fn commit(&self, attempt: Attempt<'_>) -> Result<(), Error> {
        let bytes = attempt.bytes();
        match attempt.commit() {
            Ok(()) => {
                self.fill_up();
                Ok(())
            }
            Err(error) if self.found_no_room(&error, bytes) => Err(match error {
                heed::Error::Io(_) => Error::DiskFull,
                error => self.refused(error),
            }),
            Err(error) => Err(self.poison_with(&error)),
        }
    }

    /// Lengthens the data file to its last page, which LMDB leaves out where it is free. Without
    /// this nothing is wrong, but whoever opens the file must read all of it to know that.
    fn fill_up(&self) {
        let end = (self.env.info().last_page_number as u64 + 1) * self.page_bytes;
        if self.data.metadata().is_ok_and(|data| data.len() < end) {
            let _ = self.data.set_len(end);
        }
    }

    fn refused(&self, error: heed::Error) -> Error {
        self.failure(error, "writing")
    }

    /// Whether a failed sync reached the medium is not known, and another would not tell.
    fn poison_with(&self, error: &heed::Error) -> Error {
        let cause = self.poison.get_or_init(|| error.to_string());
        Error::Poisoned { cause: cause.clone() }
    }
}

fn answer_all(asked: Vec<(Ask, Outcome)>) {
    for (ask, outcome) in asked {
        ask.answer(outcome);
    }
}

const GROUP_AGE_MAX: Duration = Duration::from_millis(5);
const GROUP_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::lmdb::{Lmdb, Options};
    use crate::engine::{Answer, Decide, Decision, Engine, Table, Transaction, Writes};

    /// Answers the writes of this function.
    struct Writing(fn(&mut Writes));

    impl Decide for Writing {
        fn decide<'a>(&'a mut self, _: &'a dyn Transaction) -> Answer<'a, Result<Decision, Error>> {
            let mut decision = Decision::default();
            (self.0)(&mut decision.writes);
            Answer::now(Ok(decision))
        }
    }

    fn small() -> (tempfile::TempDir, Lmdb) {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { max_bytes: 1 << 20, ..Options::default() };
        let engine = Lmdb::open(dir.path(), &options).unwrap();
        (dir, engine)
    }

    fn write(engine: &Lmdb, writing: &[fn(&mut Writes)]) -> Vec<Outcome> {
        let deciders = writing.iter().map(|write| Box::new(Writing(*write)) as Box<dyn Decide>);
        pollster::block_on(engine.write(deciders.collect()))
    }

    fn present(engine: &Lmdb) -> Vec<bool> {
        let view = pollster::block_on(engine.view()).unwrap();
        let mut present = Vec::new();
        let keys: [&[u8]; 3] = [b"a", b"b", b"c"];
        let read = pollster::block_on(view.get_many(Table::Documents, &keys, &mut |_, value| {
            present.push(value.is_some());
        }));
        read.unwrap();
        present
    }

    #[test]
    fn who_makes_a_group_fail_fails_alone() {
        let (_dir, engine) = small();
        let put_a = |writes: &mut Writes| writes.put(Table::Documents, b"a", b"");
        let put_c = |writes: &mut Writes| writes.put(Table::Documents, b"c", b"");
        // Counts as making room, and does not fit into the map.
        let overflow = |writes: &mut Writes| {
            writes.put(Table::Log, b"b", &vec![0; 8 << 20]);
            writes.remove(Table::Documents, b"b");
        };
        let outcomes = write(&engine, &[put_a, overflow, put_c]);
        assert!(outcomes[0].is_ok() && outcomes[2].is_ok(), "{outcomes:?}");
        assert!(matches!(outcomes[1], Err(Error::StoreFull { .. })), "{outcomes:?}");
        assert_eq!(present(&engine), [true, false, true]);
    }

    #[test]
    fn a_poisoned_engine_reads_and_writes_nothing_more() {
        let (_dir, engine) = small();
        let put_a = |writes: &mut Writes| writes.put(Table::Documents, b"a", b"");
        let put_b = |writes: &mut Writes| writes.put(Table::Documents, b"b", b"");
        write(&engine, &[put_a]).remove(0).unwrap();
        let failed_sync = heed::Error::Io(io::Error::from(rustix::io::Errno::IO));
        engine.open.core.poison_with(&failed_sync);
        assert!(matches!(write(&engine, &[put_b])[0], Err(Error::Poisoned { .. })));
        assert_eq!(present(&engine), [true, false, false]);
    }

    #[test]
    fn a_failed_sync_poisons_and_a_lack_of_room_does_not() {
        let (_dir, engine) = small();
        let core = &engine.open.core;
        let no_room = |error: heed::Error| core.found_no_room(&error, 0);
        let io = |errno: rustix::io::Errno| heed::Error::Io(errno.into());
        assert!(no_room(io(rustix::io::Errno::NOSPC)) && no_room(io(rustix::io::Errno::DQUOT)));
        assert!(no_room(heed::Error::Mdb(heed::MdbError::MapFull)));
        assert!(no_room(heed::Error::Mdb(heed::MdbError::TxnFull)));
        assert!(!no_room(io(rustix::io::Errno::IO)), "the disk of this test has room");
        assert!(!no_room(heed::Error::Mdb(heed::MdbError::Panic)));
    }
}

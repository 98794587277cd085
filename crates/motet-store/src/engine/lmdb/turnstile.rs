//! Whose turn it is to write, among all processes.
//!
//! Two locks, taken in order: the gate, then the writer's, and then the gate is free again. A
//! process that writes all the time must pass the gate for each of its transactions, and finds
//! whoever waits for the writer's lock in front of it: the turn of a lone writer comes after at
//! most one transaction of each other. The system frees both locks when a process ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{directory, failure};
use crate::Error;

/// The locks of one environment, as one engine holds them.
pub(super) struct Turnstile {
    gate: Lock,
    writer: Lock,
    /// The writer's lock once more, to see whether anybody holds it.
    probe: File,
    turns: AtomicU64,
}

/// The right to write, until it is dropped.
pub(super) struct Turn(Arc<Turnstile>);

/// Who took a lock last: a process, and which of its turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pid: u32,
    turn: u64,
}

/// Who took which lock last. While it stays the same nobody's turn came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holders {
    gate: Holder,
    writer: Holder,
}

/// Watches, for one that waits, whether others go on.
#[derive(Default)]
pub(super) struct Watch {
    seen: Option<(Holders, Instant)>,
}

struct Lock {
    file: File,
}

impl Turnstile {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let open = |name| {
            let path = path.join(name);
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(&path).map_err(|cause| failure::from_io(cause, &path, "opening a lock"))
        };
        Ok(Self {
            gate: Lock { file: open(directory::TURNSTILE_LOCK)? },
            writer: Lock { file: open(directory::WRITER_LOCK)? },
            probe: open(directory::WRITER_LOCK)?,
            turns: AtomicU64::new(0),
        })
    }

    /// Waits for the turn; `on_wait` is called first if it does not come at once.
    pub(super) fn take(self: &Arc<Self>, on_wait: impl Fn()) -> io::Result<Turn> {
        let me = Holder { pid: process::id(), turn: self.turns.fetch_add(1, Ordering::Relaxed) };
        self.gate.lock(&on_wait)?;
        let taken = self.gate.record(me).and_then(|()| {
            self.writer.lock(&on_wait)?;
            // From here on the lock is freed whatever happens.
            let turn = Turn(Arc::clone(self));
            self.writer.record(me)?;
            Ok(turn)
        });
        self.gate.unlock();
        taken
    }

    /// Who took the locks last.
    pub(super) fn holders(&self) -> io::Result<Holders> {
        Ok(Holders { gate: self.gate.holder()?, writer: self.writer.holder()? })
    }

    /// Of those who took the locks last, the process that others wait for. None if it is this one,
    /// or if the turn is just passing on.
    pub(super) fn culprit(&self, holders: Holders) -> io::Result<Option<u32>> {
        let writing = match flock(&self.probe, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                flock(&self.probe, FlockOperation::Unlock)?;
                false
            }
            Err(Errno::WOULDBLOCK) => true,
            Err(error) => return Err(error.into()),
        };
        // Where nobody writes, somebody stands in the gate and does not go through.
        let holder = if writing { holders.writer } else { holders.gate };
        Ok(Some(holder.pid).filter(|pid| *pid != process::id()))
    }
}

impl Watch {
    /// The process that keeps everybody waiting, and for how long it has, once that is too long.
    pub(super) fn stalled(&mut self, turnstile: &Turnstile) -> Option<(u32, Duration)> {
        let holders = turnstile.holders().ok()?;
        let since = match self.seen {
            Some((seen, since)) if seen == holders => since,
            _ => Instant::now(),
        };
        self.seen = Some((holders, since));
        let held = since.elapsed();
        if held < STALL_MIN {
            return None;
        }
        turnstile.culprit(holders).ok()?.map(|pid| (pid, held))
    }

    /// Nobody waits any more.
    pub(super) const fn reset(&mut self) {
        self.seen = None;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.writer.unlock();
    }
}

impl Lock {
    fn lock(&self, on_wait: &impl Fn()) -> io::Result<()> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => on_wait(),
            taken => return taken.map_err(io::Error::from),
        }
        loop {
            match flock(&self.file, FlockOperation::LockExclusive) {
                Err(Errno::INTR) => {}
                taken => return taken.map_err(io::Error::from),
            }
        }
    }

    fn unlock(&self) {
        flock(&self.file, FlockOperation::Unlock).expect("a lock that is held can be freed");
    }

    fn record(&self, holder: Holder) -> io::Result<()> {
        let mut record = [0; RECORD_BYTES];
        record[..4].copy_from_slice(&holder.pid.to_le_bytes());
        record[4..].copy_from_slice(&holder.turn.to_le_bytes());
        self.file.write_all_at(&record, 0)
    }

    fn holder(&self) -> io::Result<Holder> {
        let mut record = [0; RECORD_BYTES];
        // A lock that nobody ever took has no record.
        if self.file.read_at(&mut record, 0)? < RECORD_BYTES {
            return Ok(Holder::default());
        }
        let (pid, turn) = record.split_at(4);
        Ok(Holder {
            pid: u32::from_le_bytes(pid.try_into().expect("the record was split there")),
            turn: u64::from_le_bytes(turn.try_into().expect("the record was split there")),
        })
    }
}

const RECORD_BYTES: usize = 12;
/// A turn that lasts longer than this is taken for a stall.
const STALL_MIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_turn_is_one_at_a_time_and_names_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let first = Arc::new(Turnstile::open(dir.path()).unwrap());
        let second = Arc::new(Turnstile::open(dir.path()).unwrap());
        let turn = first.take(|| panic!("nobody is in the way")).unwrap();
        let before = second.holders().unwrap();
        assert_eq!(before.writer.pid, process::id());
        let (waits, waited) = mpsc::channel();
        thread::scope(|scope| {
            let other = scope.spawn(|| drop(second.take(|| waits.send(()).unwrap()).unwrap()));
            waited.recv().unwrap();
            drop(turn);
            other.join().unwrap();
        });
        assert_ne!(first.holders().unwrap().gate, Holder::default());
    }

    #[test]
    fn who_stands_in_the_gate_while_nobody_writes_is_the_culprit() {
        let dir = tempfile::tempdir().unwrap();
        let stopped = Arc::new(Turnstile::open(dir.path()).unwrap());
        stopped.gate.lock(&|| ()).unwrap();
        stopped.gate.record(Holder { pid: 17, turn: 1 }).unwrap();
        let waiting = Arc::new(Turnstile::open(dir.path()).unwrap());
        assert_eq!(waiting.culprit(waiting.holders().unwrap()).unwrap(), Some(17));
        stopped.writer.lock(&|| ()).unwrap();
        stopped.writer.record(Holder { pid: 18, turn: 1 }).unwrap();
        assert_eq!(waiting.culprit(waiting.holders().unwrap()).unwrap(), Some(18));
    }
}

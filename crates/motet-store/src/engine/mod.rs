//! The engine seam: an environment's ordered maps of bytes, with consistent views and one writer.
//!
//! Everything durable goes through [`Engine::write`]: a [decider](Decide) runs inside the open
//! transaction, reads what it must (an expected version, a unique key, a lease), and then rejects
//! or returns [`Writes`]. Several deciders share one transaction and one sync to disk; each sees
//! what those before it wrote.
//!
//! Reads are vectorised and answered [now or later](Answer), so that the same layer above runs on a
//! memory map, in a browser and over a network.

mod answer;
#[cfg(unix)]
pub mod lmdb;
pub mod memory;
mod writes;

use core::ops::{Bound, ControlFlow};
use std::time::{SystemTime, UNIX_EPOCH};

use motet_protocol::fault::planted;

pub use answer::Answer;
pub use writes::Writes;

use crate::clock::millis;
use crate::{Clock, Error, Head, Hlc};

/// The maps of an environment. Apart from each other because of how they grow: the log only at its
/// end, documents and indexes anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Types, indexes, settings, and the [`Head`].
    Catalog,
    /// Documents by type and key.
    Documents,
    /// Changes by clock.
    Log,
    /// Index entries, expiries, references.
    Index,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Catalog, Self::Documents, Self::Log, Self::Index];

    /// Its name, where an engine needs one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Documents => "documents",
            Self::Log => "log",
            Self::Index => "index",
        }
    }
}

/// The longest key of any table, in bytes: an index entry of six values, each of at most
/// [`VALUE_BYTES_MAX`](crate::value::VALUE_BYTES_MAX), and a document's key. Every engine takes at
/// least this; LMDB's limit with pages of 4 KiB is 1,982.
pub const KEY_BYTES_MAX: usize = 1_900;

/// What an engine can do, for the layers above to adapt to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether several processes may open it at once.
    pub multi_process: bool,
    /// The longest key, in bytes; at least [`KEY_BYTES_MAX`].
    pub max_key_len: usize,
    /// The most bytes of keys and values that one decider may write.
    pub max_txn_bytes: usize,
    /// Whose wall clock stamps transactions.
    pub time_source: TimeSource,
}

/// Whose wall clock stamps transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// This process's.
    Process,
    /// The engine's own, the same for all processes.
    Engine,
}

/// Shows wall time in milliseconds since 1970.
pub type WallClock = Box<dyn Fn() -> u64 + Send + Sync>;

/// The system's wall clock.
#[must_use]
pub fn system_clock() -> WallClock {
    Box::new(|| millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()))
}

/// Which way a range is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Lowest key first.
    #[default]
    Forward,
    /// Highest key first.
    Backward,
}

/// A range of keys in a table.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// The table.
    pub table: Table,
    /// The lower end.
    pub from: Bound<&'a [u8]>,
    /// The upper end.
    pub to: Bound<&'a [u8]>,
    /// Which end to start at.
    pub direction: Direction,
}

/// Takes the value of the key with this place in the question, or `None` for an absent one.
pub type OnValue<'a> = dyn FnMut(usize, Option<&[u8]>) + 'a;

/// Takes a key and its value, and says whether to go on.
pub type OnEntry<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Reading at one point of an environment's history.
///
/// A closure that is given entries does not read what it was called from: an engine need not be able
/// to do both at once, and one over a network cannot.
pub trait Read {
    /// Looks up keys of one table; `each` is called once per key, in any order.
    ///
    /// # Errors
    /// What the medium does; [`Error::ViewExpired`] of a view that was kept too long.
    fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
        each: &'a mut OnValue<'a>,
    ) -> Answer<'a, Result<(), Error>>;

    /// Visits a range in order until it ends or `each` breaks off.
    ///
    /// # Errors
    /// As for [`get_many`](Self::get_many).
    fn range<'a>(
        &'a self,
        range: Range<'a>,
        each: &'a mut OnEntry<'a>,
    ) -> Answer<'a, Result<(), Error>>;
}

/// A consistent view: it never sees a part of a transaction, nor anything after it was taken.
pub trait View: Read + Send {}

/// The open write transaction, as a decider sees it: with everything that the deciders before it
/// in the same group wrote.
pub trait Transaction: Read {
    /// Where the log ends now: the decider's own changes are numbered from the clock after it.
    fn head(&self) -> Head;

    /// The time of this decider: later than that of everything that was written before, whether or
    /// not it was a change in the log.
    fn stamp(&self) -> Hlc;
}

/// Decides what to write, inside the open transaction.
///
/// An engine may ask again: when another decider of the group made the transaction fail, each is
/// asked once more in a transaction of its own. Nothing but the answer may depend on having been
/// asked.
pub trait Decide: Send + 'static {
    /// Reads, then rejects with an error or returns what to write.
    ///
    /// # Errors
    /// Its reason to reject; nothing of it is written then.
    fn decide<'a>(
        &'a mut self,
        transaction: &'a dyn Transaction,
    ) -> Answer<'a, Result<Decision, Error>>;
}

/// Makes deciders of types whose `run` decides.
macro_rules! decides {
    ($($decider:ty),+) => {$(
        impl $crate::engine::Decide for $decider {
            fn decide<'a>(
                &'a mut self,
                transaction: &'a dyn $crate::engine::Transaction,
            ) -> $crate::engine::Answer<'a, Result<$crate::engine::Decision, $crate::Error>> {
                $crate::engine::Answer::later(self.run(transaction))
            }
        }
    )+};
}
pub(crate) use decides;

/// What a decider decided.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// What to write.
    pub writes: Writes,
    /// How many clocks of the log it uses, from the one after the transaction's head.
    pub changes: u64,
}

impl Decision {
    /// Where the log ends after it, decided at this end of the log and with this stamp. Whatever is
    /// written moves the time, or a process whose wall clock is behind would take for living what
    /// this decision took for expired.
    #[must_use]
    pub fn head_after(&self, before: Head, stamp: Hlc) -> Head {
        let idle = self.writes.is_empty() || planted("stop-time-without-changes");
        if self.changes == 0 && idle {
            return before;
        }
        Head { clock: before.clock.plus(self.changes), time: stamp }
    }
}

/// A decision that is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The log's end before it: its first change has the next clock.
    pub before: Clock,
    /// Its last change, or `before` if it changed nothing in the log.
    pub clock: Clock,
    /// The time of what it wrote.
    pub time: Hlc,
}

/// One environment's storage.
pub trait Engine: Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// A view of everything that is committed now.
    ///
    /// # Errors
    /// What the medium does.
    fn view(&self) -> Answer<'_, Result<Box<dyn View>, Error>>;

    /// Asks each decider in order and answers once what they decided is durable, or rejected: one
    /// result per decider, in order.
    fn write(&self, deciders: Vec<Box<dyn Decide>>) -> Answer<'_, Vec<Result<Commit, Error>>>;
}

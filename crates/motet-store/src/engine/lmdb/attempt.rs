//! One write transaction: deciders are asked in it, in order, and their writes applied.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use heed::{PutFlags, RwTxn};

use super::queue::Outcome;
use super::{Core, read};
use crate::engine::{
    Answer, Commit, Decide, Decision, OnEntry, OnValue, Range, Read, Table, Transaction, Writes,
};
use crate::{Error, Head, Hlc};

/// A transaction that may still fail as a whole; dropped, it leaves nothing behind.
pub(super) struct Attempt<'c> {
    core: &'c Core,
    txn: RwTxn<'c>,
    head: Head,
    /// The head as it lies in the catalogue.
    stored: Head,
    /// No key of the log is above this.
    log_end: Vec<u8>,
    /// Live bytes, with what was applied so far.
    used: u64,
    /// Bytes that were applied so far.
    bytes: usize,
}

impl<'c> Attempt<'c> {
    pub(super) fn begin(core: &'c Core) -> heed::Result<Self> {
        let txn = core.env.write_txn()?;
        let head = core.tables.of(Table::Catalog).get(&txn, Head::KEY)?;
        let head = head.and_then(Head::from_bytes).unwrap_or_default();
        let log_end = core.tables.of(Table::Log).last(&txn)?;
        let log_end = log_end.map(|(key, _)| key.to_vec()).unwrap_or_default();
        let used = core.used_bytes(&txn)?;
        Ok(Self { core, txn, head, stored: head, log_end, used, bytes: 0 })
    }

    /// Asks a decider and applies what it decided. What it is answered holds only once the
    /// transaction is committed; an error means that this transaction cannot be.
    pub(super) fn ask(&mut self, decider: &mut dyn Decide) -> heed::Result<Outcome> {
        let before = self.head;
        let stamp = before.time.next((self.core.wall_clock)());
        let decided = self.decide(decider, stamp).and_then(|decision| {
            let room = self.core.admit(&decision.writes, self.used)?;
            Ok((decision, room))
        });
        let (decision, room) = match decided {
            Ok(decided) => decided,
            Err(rejected) => return Ok(Err(rejected)),
        };
        self.apply(&decision.writes)?;
        self.used += room;
        self.bytes += decision.writes.byte_len();
        self.head = decision.head_after(before, stamp);
        Ok(Ok(Commit { before: before.clock, clock: self.head.clock, time: stamp }))
    }

    /// Bytes that were applied so far.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes it durable.
    pub(super) fn commit(mut self) -> heed::Result<()> {
        if self.head != self.stored {
            let catalog = self.core.tables.of(Table::Catalog);
            catalog.put(&mut self.txn, Head::KEY, &self.head.to_bytes())?;
        }
        self.txn.commit()
    }

    /// A decider that panics rejects: nothing of it has been applied.
    fn decide(&self, decider: &mut dyn Decide, stamp: Hlc) -> Result<Decision, Error> {
        let transaction = Open { core: self.core, txn: &self.txn, head: self.head, stamp };
        let decided =
            catch_unwind(AssertUnwindSafe(|| pollster::block_on(decider.decide(&transaction))));
        decided.unwrap_or_else(|panic| {
            Err(Error::DeciderPanicked { message: message_of(panic.as_ref()) })
        })
    }

    fn apply(&mut self, writes: &Writes) -> heed::Result<()> {
        for (table, key, value) in writes.iter() {
            let entries = self.core.tables.of(table);
            match value {
                None => {
                    entries.delete(&mut self.txn, key)?;
                }
                Some(value) if table == Table::Log && key > self.log_end.as_slice() => {
                    entries.put_with_flags(&mut self.txn, PutFlags::APPEND, key, value)?;
                    self.log_end.clear();
                    self.log_end.extend_from_slice(key);
                }
                Some(value) => entries.put(&mut self.txn, key, value)?,
            }
        }
        Ok(())
    }
}

/// The transaction as a decider sees it.
struct Open<'t> {
    core: &'t Core,
    txn: &'t RwTxn<'t>,
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
        let read = read::get_many(self.core.tables.of(table), self.txn, keys, each);
        Answer::now(read.map_err(|error| self.core.failure(error, "reading")))
    }

    fn range<'a>(
        &'a self,
        range: Range<'a>,
        each: &'a mut OnEntry<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        let read = read::range(self.core.tables.of(range.table), self.txn, range, each);
        Answer::now(read.map_err(|error| self.core.failure(error, "reading")))
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

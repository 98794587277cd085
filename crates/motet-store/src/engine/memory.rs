//! An engine in memory: for tests and the simulator, and for data that may go with the process.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, PoisonError};

use super::{
    Answer, Capabilities, Commit, Decide, Direction, Engine, KEY_BYTES_MAX, OnEntry, OnValue,
    Range, Read, Table, TimeSource, Transaction, View, WallClock, Writes, system_clock,
};
use crate::{Error, Head, Hlc};

const TXN_BYTES_MAX: usize = 64 << 20;

type Map = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// The maps, shared with the views of them: a commit copies a table only while a view looks at it.
#[derive(Clone, Default)]
struct Tables {
    head: Head,
    maps: [Arc<Map>; Table::ALL.len()],
}

/// An environment in memory. Deciders run where [`write`](Engine::write) is called.
///
/// ```
/// use motet_store::engine::{Engine, memory::Memory};
///
/// let engine = Memory::default();
/// assert!(!engine.capabilities().multi_process);
/// ```
pub struct Memory {
    tables: Mutex<Tables>,
    wall_clock: WallClock,
}

impl Default for Memory {
    fn default() -> Self {
        Self::with_wall_clock(system_clock())
    }
}

impl Memory {
    /// An empty environment whose transactions are stamped by this clock.
    #[must_use]
    pub fn with_wall_clock(wall_clock: WallClock) -> Self {
        Self { tables: Mutex::default(), wall_clock }
    }

    fn decide(&self, tables: &mut Tables, decider: &mut dyn Decide) -> Result<Commit, Error> {
        let before = tables.head;
        let transaction = Open { tables, stamp: before.time.next((self.wall_clock)()) };
        let decision = pollster::block_on(decider.decide(&transaction))?;
        let stamp = transaction.stamp;
        decision.writes.check(KEY_BYTES_MAX, TXN_BYTES_MAX)?;
        tables.apply(&decision.writes);
        tables.head = decision.head_after(before, stamp);
        if tables.head != before {
            tables.put(Table::Catalog, Head::KEY, &tables.head.to_bytes());
        }
        Ok(Commit { before: before.clock, clock: tables.head.clock, time: stamp })
    }
}

impl Engine for Memory {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            multi_process: false,
            max_key_len: KEY_BYTES_MAX,
            max_txn_bytes: TXN_BYTES_MAX,
            time_source: TimeSource::Process,
        }
    }

    fn view(&self) -> Answer<'_, Result<Box<dyn View>, Error>> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Answer::now(Ok(Box::new(Snapshot(tables))))
    }

    fn write(&self, deciders: Vec<Box<dyn Decide>>) -> Answer<'_, Vec<Result<Commit, Error>>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let mut deciders = deciders;
        let results = deciders.iter_mut().map(|decider| self.decide(&mut tables, decider.as_mut()));
        Answer::now(results.collect())
    }
}

impl Tables {
    fn map(&self, table: Table) -> &Map {
        &self.maps[table as usize]
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        Arc::make_mut(&mut self.maps[table as usize]).insert(key.into(), value.into());
    }

    fn apply(&mut self, writes: &Writes) {
        for (table, key, value) in writes.iter() {
            match value {
                Some(value) => self.put(table, key, value),
                None => {
                    Arc::make_mut(&mut self.maps[table as usize]).remove(key);
                }
            }
        }
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], each: &mut OnValue<'_>) {
        for (place, key) in keys.iter().enumerate() {
            each(place, self.map(table).get(*key).map(AsRef::as_ref));
        }
    }

    fn range(&self, range: Range<'_>, each: &mut OnEntry<'_>) {
        if is_empty(range.from, range.to) {
            return;
        }
        let mut entries = self.map(range.table).range::<[u8], _>((range.from, range.to));
        let mut next = || match range.direction {
            Direction::Forward => entries.next(),
            Direction::Backward => entries.next_back(),
        };
        while let Some((key, value)) = next() {
            if each(key, value) == ControlFlow::Break(()) {
                return;
            }
        }
    }
}

/// Whether no key lies between these ends; the standard library's ranges panic on some such.
pub(super) fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from >= to,
    }
}

struct Snapshot(Tables);

impl View for Snapshot {}

impl Read for Snapshot {
    fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
        each: &'a mut OnValue<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        self.0.get_many(table, keys, each);
        Answer::now(Ok(()))
    }

    fn range<'a>(
        &'a self,
        range: Range<'a>,
        each: &'a mut OnEntry<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        self.0.range(range, each);
        Answer::now(Ok(()))
    }
}

/// The transaction of one decider. What it reads is what is committed: those before it in its group
/// have been applied already, and nobody else looks before all have been.
struct Open<'t> {
    tables: &'t Tables,
    stamp: Hlc,
}

impl Transaction for Open<'_> {
    fn head(&self) -> Head {
        self.tables.head
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
        self.tables.get_many(table, keys, each);
        Answer::now(Ok(()))
    }

    fn range<'a>(
        &'a self,
        range: Range<'a>,
        each: &'a mut OnEntry<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        self.tables.range(range, each);
        Answer::now(Ok(()))
    }
}

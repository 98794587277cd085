//! Deciders and reads in a line each, for tests of engines.

#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::ops::{Bound, ControlFlow};
#[cfg(unix)]
use std::path::Path;
use std::time::{Duration, Instant};

#[cfg(unix)]
use motet_store::engine::lmdb::{Lmdb, Options};
use motet_store::engine::{
    Answer, Commit, Decide, Decision, Direction, Engine, Range, Read, Table, Transaction, Writes,
};
use motet_store::{Clock, Error, Head};

/// A decider that is a closure.
pub(crate) struct Decider<F>(F);

impl<F> Decide for Decider<F>
where
    F: FnMut(&dyn Transaction) -> Result<Decision, Error> + Send + 'static,
{
    fn decide<'a>(
        &'a mut self,
        transaction: &'a dyn Transaction,
    ) -> Answer<'a, Result<Decision, Error>> {
        Answer::now((self.0)(transaction))
    }
}

pub(crate) fn decider(
    decide: impl FnMut(&dyn Transaction) -> Result<Decision, Error> + Send + 'static,
) -> Box<dyn Decide> {
    Box::new(Decider(decide))
}

/// Puts a document, and uses no clock.
pub(crate) fn putting(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Box<dyn Decide> {
    let (key, value) = (key.into(), value.into());
    decider(move |_| {
        let mut writes = Writes::default();
        writes.put(Table::Documents, &key, &value);
        Ok(Decision { writes, changes: 0 })
    })
}

/// Removes a document, and uses no clock.
pub(crate) fn removing(key: impl Into<Vec<u8>>) -> Box<dyn Decide> {
    let key = key.into();
    decider(move |_| {
        let mut writes = Writes::default();
        writes.remove(Table::Documents, &key);
        Ok(Decision { writes, changes: 0 })
    })
}

/// Writes one entry of the log, at the next clock.
pub(crate) fn logging(value: impl Into<Vec<u8>>) -> Box<dyn Decide> {
    let value = value.into();
    decider(move |transaction| {
        let mut writes = Writes::default();
        let clock = transaction.head().clock.plus(1);
        writes.put(Table::Log, &clock.to_bytes(), &value);
        Ok(Decision { writes, changes: 1 })
    })
}

pub(crate) fn write_all(
    engine: &dyn Engine,
    deciders: Vec<Box<dyn Decide>>,
) -> Vec<Result<Commit, Error>> {
    pollster::block_on(engine.write(deciders))
}

pub(crate) fn write(engine: &dyn Engine, decider: Box<dyn Decide>) -> Result<Commit, Error> {
    write_all(engine, vec![decider]).pop().expect("one answer for one decider")
}

pub(crate) fn view(engine: &dyn Engine) -> Box<dyn motet_store::engine::View> {
    pollster::block_on(engine.view()).expect("a view")
}

pub(crate) fn try_get<R: Read + ?Sized>(
    read: &R,
    table: Table,
    key: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let mut found = None;
    pollster::block_on(
        read.get_many(table, &[key], &mut |_, value| found = value.map(<[u8]>::to_vec)),
    )?;
    Ok(found)
}

pub(crate) fn get<R: Read + ?Sized>(read: &R, table: Table, key: &[u8]) -> Option<Vec<u8>> {
    try_get(read, table, key).expect("a read")
}

pub(crate) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

pub(crate) fn entries<R: Read + ?Sized>(
    read: &R,
    table: Table,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
    direction: Direction,
) -> Entries {
    let mut found = Vec::new();
    let range = Range { table, from, to, direction };
    pollster::block_on(read.range(range, &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    }))
    .expect("a range");
    found
}

pub(crate) fn all<R: Read + ?Sized>(read: &R, table: Table) -> Entries {
    entries(read, table, Bound::Unbounded, Bound::Unbounded, Direction::Forward)
}

pub(crate) fn stored_head<R: Read + ?Sized>(read: &R) -> Head {
    let head = get(read, Table::Catalog, Head::KEY);
    head.map_or_else(Head::default, |bytes| Head::from_bytes(&bytes).expect("a head"))
}

pub(crate) fn clock_of(key: &[u8]) -> Clock {
    Clock::from_bytes(key.try_into().expect("a clock has eight bytes"))
}

#[cfg(unix)]
pub(crate) fn open(path: &Path) -> Lmdb {
    open_with(path, &Options::default())
}

#[cfg(unix)]
pub(crate) fn open_with(path: &Path, options: &Options) -> Lmdb {
    Lmdb::open(path, options).expect("a store")
}

/// Looks until the condition holds.
pub(crate) fn until(what: &str, seconds_max: u64, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(seconds_max), "{what} did not happen");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

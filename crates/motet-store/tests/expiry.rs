//! Documents that expire, by wall clocks that the case sets: one of whoever decides, one of whoever
//! reads.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use motet_store::engine::memory::Memory;
use motet_store::engine::{Engine, WallClock};
use motet_store::{
    Driver, Env, Error, IndexSpec, KeyRange, Limits, OnDelete, Transaction, TypeSpec, Write,
};
use serde_json::{Value, json};

/// A wall clock, in milliseconds after a time long ago.
#[derive(Clone, Default)]
struct Wall(Arc<AtomicU64>);

impl Wall {
    fn set(&self, ms: u64) {
        self.0.store(ms, Ordering::Relaxed);
    }

    fn shown(&self) -> WallClock {
        let ms = Arc::clone(&self.0);
        Box::new(move || 1_700_000_000_000 + ms.load(Ordering::Relaxed))
    }
}

/// An environment that is maintained when the case says so.
struct Fixture {
    env: Env,
    engine: Arc<Memory>,
    /// Of whoever decides.
    deciding: Wall,
    /// Of whoever reads, and finds what is due.
    reading: Wall,
}

impl Fixture {
    fn new() -> Self {
        let (deciding, reading) = (Wall::default(), Wall::default());
        let engine = Arc::new(Memory::with_wall_clock(deciding.shown()));
        let env = process(&engine, &reading);
        Self { env, engine, deciding, reading }
    }

    fn set(&self, ms: u64) {
        self.deciding.set(ms);
        self.reading.set(ms);
    }

    fn put_for(&self, type_name: &str, key: &str, value: Value, ms: u64) {
        let write = Write::put(type_name, key, value).expires_in(Duration::from_millis(ms));
        self.env.write(write).unwrap();
    }
}

fn process(engine: &Arc<Memory>, wall: &Wall) -> Env {
    limited(engine, wall, Limits::default())
}

fn limited(engine: &Arc<Memory>, wall: &Wall, limits: Limits) -> Env {
    let driver = Driver { instance: 1, limits, wall_clock: wall.shown(), outward: None };
    Env::on_engine("test", Arc::clone(engine) as Arc<dyn Engine>, driver)
}

#[test]
fn what_a_writer_took_for_expired_no_reader_shows_whose_clock_is_behind() {
    let fixture = Fixture::new();
    fixture.put_for("Session", "s", json!({"n": 1}), 1_000);
    fixture.set(2_000);
    fixture.env.put("Order", "o", json!(1)).unwrap();
    let behind = Wall::default();
    behind.set(500);
    let env = process(&fixture.engine, &behind);
    assert_eq!(env.get("Session", "s").unwrap(), None);
    assert_eq!(env.get_json("Session", "s").unwrap(), None);
    assert!(env.range("Session", &KeyRange::all()).unwrap().is_empty());
    assert!(env.query("Session").rows().unwrap().is_empty());
    assert_eq!(env.query("Session").count().unwrap(), 0);
    assert_eq!(env.begin().unwrap().get("Session", "s").unwrap(), None);
    assert!(env.get("Order", "o").unwrap().is_some());
}

/// Reads in a transaction at one time, and commits at another.
fn outcome(
    began_ms: u64,
    committed_ms: u64,
    read: impl FnOnce(&mut Transaction) -> bool,
) -> (bool, Result<(), Error>) {
    let fixture = Fixture::new();
    fixture.put_for("Session", "s", json!(1), 1_000);
    fixture.put_for("Session", "t", json!(1), 9_000);
    fixture.set(began_ms);
    let mut transaction = fixture.env.begin().unwrap();
    let found = read(&mut transaction);
    transaction.put("Order", "o", json!(1));
    fixture.set(committed_ms);
    (found, transaction.commit().map(|_| ()))
}

#[test]
fn a_document_that_ends_between_the_read_and_the_commit_is_a_conflict() {
    let get = |tx: &mut Transaction| tx.get("Session", "s").unwrap().is_some();
    let range = |tx: &mut Transaction| tx.range("Session", &KeyRange::all()).unwrap().len() == 2;
    for (began_ms, committed_ms, is_there, conflicts) in [
        (0, 500, true, false),
        (0, 1_000, true, true),
        (2_000, 3_000, false, false),
        // The clock was set back: what was read as gone would be there.
        (2_000, 500, false, true),
    ] {
        for (found, committed) in
            [outcome(began_ms, committed_ms, get), outcome(began_ms, committed_ms, range)]
        {
            assert_eq!(found, is_there, "{began_ms} {committed_ms}");
            match committed {
                Ok(()) => assert!(!conflicts, "{began_ms} {committed_ms}"),
                Err(Error::Conflict { key, .. }) => {
                    assert!(conflicts && key == "s", "{began_ms} {committed_ms} {key}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_transaction_runs_again_after_what_it_read_has_ended() {
    let fixture = Fixture::new();
    fixture.put_for("Session", "s", json!(1), 1_000);
    let mut seen = Vec::new();
    fixture
        .env
        .transact(|tx| {
            seen.push(tx.get("Session", "s")?.is_some());
            fixture.set(2_000);
            tx.put("Order", "o", json!(1));
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(seen, [true, false]);
}

#[test]
fn what_was_found_before_the_clock_was_set_back_is_swept_when_its_time_comes_again() {
    let fixture = Fixture::new();
    fixture.put_for("Session", "s", json!(1), 1_000);
    fixture.reading.set(2_000);
    fixture.deciding.set(500);
    fixture.env.maintain().unwrap();
    let report = fixture.env.check().unwrap();
    assert_eq!((report.documents, report.expiries, report.findings), (1, 1, vec![]));
    fixture.deciding.set(2_000);
    fixture.env.maintain().unwrap();
    let report = fixture.env.check().unwrap();
    assert_eq!((report.documents, report.expiries, report.findings), (0, 0, vec![]));
}

#[test]
fn documents_whose_removal_fills_more_than_a_transaction_are_swept_all_the_same() {
    let fixture = Fixture::new();
    fixture.env.create_index("Scan", "tags", &IndexSpec::new().field("tags")).unwrap();
    let tags: Vec<_> = (0..990).map(|n| format!("{n:0130}")).collect();
    for n in 0..120 {
        fixture.put_for("Scan", &format!("{n:0480}"), json!({ "tags": tags }), 1_000);
    }
    fixture.set(2_000);
    fixture.env.maintain().unwrap();
    let report = fixture.env.check().unwrap();
    assert_eq!((report.documents, report.index_entries, report.expiries), (0, 0, 0));
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn a_check_is_clean_while_others_hold_what_has_expired_and_after_it_came_again() {
    let fixture = Fixture::new();
    let env = &fixture.env;
    let spec = TypeSpec::new().reference("customer", "Customer", OnDelete::Restrict);
    env.define("Order", &spec).unwrap();
    env.maintain().unwrap();
    fixture.put_for("Customer", "c", json!(1), 1_000);
    env.put("Order", "o", json!({"customer": "c"})).unwrap();
    let clean = |expiries| {
        let report = env.check().unwrap();
        assert_eq!((report.findings, report.expiries), (vec![], expiries));
    };
    clean(1);
    fixture.set(2_000);
    env.maintain().unwrap();
    clean(1);
    env.remove("Order", "o").unwrap();
    env.put("Customer", "c", json!(2)).unwrap();
    clean(1);
    fixture.set(20_000);
    env.maintain().unwrap();
    clean(0);
    assert!(env.get("Customer", "c").unwrap().is_some());
}

#[test]
fn a_check_is_clean_where_a_unique_value_was_given_again_before_the_sweep() {
    let fixture = Fixture::new();
    let env = &fixture.env;
    env.create_index("User", "mail", &IndexSpec::new().field("mail").unique()).unwrap();
    fixture.put_for("User", "a", json!({"mail": "m"}), 1_000);
    fixture.set(2_000);
    env.put("User", "b", json!({"mail": "m"})).unwrap();
    assert_eq!(env.check().unwrap().findings, []);
}

#[test]
fn one_that_is_too_much_to_remove_is_told_and_tried_ever_less_often() {
    let fixture = Fixture::new();
    let Fixture { env: roomy, engine, reading, .. } = &fixture;
    let env = limited(engine, reading, Limits { batch_writes_max: 10, ..Limits::default() });
    env.define("Order", &TypeSpec::new().reference("of", "Customer", OnDelete::Cascade)).unwrap();
    env.maintain().unwrap();
    fixture.put_for("Customer", "c", json!(1), 1_000);
    for n in 0..20 {
        env.put("Order", &format!("o-{n}"), json!({"of": "c"})).unwrap();
    }
    fixture.put_for("Session", "s", json!(1), 1_000);
    fixture.set(101_000);
    env.maintain().unwrap();
    let told = env.maintenance_error();
    assert!(
        matches!(&told, Some(Error::ExpiryTooLarge { type_name, key, .. })
            if type_name == "Customer" && key == "c"),
        "{told:?}"
    );
    let documents = || {
        let report = env.check().unwrap();
        assert_eq!(report.findings, []);
        report.documents
    };
    assert_eq!(documents(), 21, "the session went");
    fixture.set(190_000);
    roomy.maintain().unwrap();
    assert_eq!(documents(), 21, "what has waited 100 seconds waits as long again");
    env.maintain().unwrap();
    assert!(env.maintenance_error().is_some(), "until it is gone");
    fixture.set(202_000);
    roomy.maintain().unwrap();
    assert_eq!(documents(), 0);
    env.maintain().unwrap();
    assert!(env.maintenance_error().is_none());
}

/// A full store, in which this holds a customer whose time has come, as well as others.
#[cfg(unix)]
fn sweeps_a_full_store(on_delete: OnDelete) {
    use motet_store::engine::lmdb::{Lmdb, Options};
    use motet_store::engine::system_clock;

    let directory = tempfile::tempdir().unwrap();
    let options = Options { max_bytes: 1 << 20, ..Options::default() };
    let engine = Arc::new(Lmdb::open(directory.path().join("test"), &options).unwrap());
    let (limits, wall_clock) = (Limits::default(), system_clock());
    let env =
        Env::on_engine("test", engine, Driver { instance: 1, limits, wall_clock, outward: None });
    env.define("Order", &TypeSpec::new().reference("of", "Customer", on_delete)).unwrap();
    env.maintain().unwrap();
    let put = |type_name: &str, key: &str| {
        let write = Write::put(type_name, key, json!(1));
        env.write(write.expires_in(Duration::from_secs(1))).unwrap();
    };
    put("Customer", "c");
    (0..50).for_each(|n| put("Session", &format!("s-{n}")));
    env.put("Order", "o", json!({"of": "c", "text": "x".repeat(1_000)})).unwrap();
    for bytes in [1_000, 1] {
        let value = json!("x".repeat(bytes));
        let full = (0..).find_map(|_| env.put("Filler", "f", value.clone()).err()).unwrap();
        assert!(matches!(full, Error::StoreFull { .. }), "{full:?}");
    }
    let end = Instant::now() + Duration::from_secs(10);
    while env.get("Session", "s-49").unwrap().is_some() {
        assert!(Instant::now() < end, "its time comes");
        thread::yield_now();
    }
    env.maintain().unwrap();
    let report = env.check().unwrap();
    assert_eq!((report.documents, report.expiries, report.findings), (3, 1, vec![]));
}

#[test]
#[cfg(unix)]
fn what_is_held_in_a_full_store_does_not_keep_others_there() {
    sweeps_a_full_store(OnDelete::Restrict);
}

#[test]
#[cfg(unix)]
fn what_would_add_to_a_full_store_does_not_keep_others_there() {
    sweeps_a_full_store(OnDelete::SetNull);
}

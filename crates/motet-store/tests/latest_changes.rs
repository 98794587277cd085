//! The log that keeps the latest change of each document: what it gives from its beginning makes the
//! documents, whatever is compacted meanwhile.

#![cfg(unix)]
#![allow(clippy::print_stdout, reason = "figures are printed")]
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod engines;
mod logs;
#[path = "processes/child.rs"]
mod role;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use logs::{clocks_after, write_changes};
use motet_store::engine::lmdb::{Lmdb, Options};
use motet_store::engine::memory::Memory;
use motet_store::engine::{Engine, system_clock};
use motet_store::{
    Change, Clock, Driver, Env, Error, Hlc, IdempotencyKey, KeyRange, Limits, Op, Position,
    Retention, Store, Write,
};
use role::{Child, Role};
use serde_json::json;

/// Not a test by itself: the part of a child process.
#[test]
#[ignore = "the tests start it as a process of its own"]
fn child() {
    role::play();
}

/// Keeps the latest change of each document, and as few others as there can be.
fn latest() -> Retention {
    Retention::everything().bytes(0).latest()
}

/// An environment in which nothing happens in the background.
fn alone(engine: Arc<dyn Engine>) -> Env {
    let driver = Driver {
        instance: 7,
        limits: Limits::default(),
        wall_clock: system_clock(),
        outward: None,
    };
    Env::on_engine("test", engine, driver)
}

/// Runs a test on an environment of each engine, which only the test itself maintains.
fn on_each_alone(test: impl Fn(&Env)) {
    test(&alone(Arc::new(Memory::default())));
    let directory = tempfile::tempdir().unwrap();
    let engine = Lmdb::open(directory.path().join("test"), &Options::default()).unwrap();
    test(&alone(Arc::new(engine)));
}

/// Reads a log page by page, as a reader that comes for the first time.
fn pages(env: &Env, limit: usize) -> Vec<Change> {
    let compacted_to = env.log().compacted_to().unwrap();
    let mut changes: Vec<Change> = Vec::new();
    loop {
        let after = changes.last().map_or(Clock::ZERO, |change| change.clock);
        let page = env.log().read(Position::new(after, compacted_to), limit).unwrap();
        if page.is_empty() {
            return changes;
        }
        changes.extend(page);
    }
}

/// What the log gives from its beginning makes the documents that are there.
fn assert_beginning_makes_documents(env: &Env) {
    let mut made = BTreeMap::new();
    for change in pages(env, 3) {
        match change.op {
            Op::Put => made.insert((change.type_name, change.key), (change.clock, change.value)),
            _ => made.remove(&(change.type_name, change.key)),
        };
    }
    let mut documents = BTreeMap::new();
    for type_name in env.types().unwrap() {
        for document in env.range(&type_name, &KeyRange::all()).unwrap() {
            let made = (document.version, Some(document.value));
            documents.insert((type_name.clone(), document.key), made);
        }
    }
    assert_eq!(made, documents);
    assert_eq!(env.check().unwrap().findings, []);
}

#[test]
fn d4_the_latest_change_of_each_document_is_kept_and_later_ones_take_its_place() {
    on_each_alone(|env| {
        env.set_retention(latest()).unwrap();
        assert!(env.retention().unwrap().latest);
        for total in 0..3 {
            for key in ["o-1", "o-2", "o-3"] {
                env.put("Order", key, json!(total)).unwrap();
            }
        }
        env.maintain().unwrap();
        assert_eq!(clocks_after(env, 0), [7, 8, 9]);
        env.remove("Order", "o-1").unwrap();
        env.put("Order", "o-2", json!("new")).unwrap();
        assert_eq!(env.log().compacted_to().unwrap(), Clock::new(8));
        assert_eq!(clocks_after(env, 0), [9, 10, 11], "what is no more goes with its last change");
        assert_beginning_makes_documents(env);
        env.maintain().unwrap();
        assert_eq!(clocks_after(env, 0), [9, 11], "nobody is told of what was removed");
        assert_eq!(env.log().compacted_to().unwrap(), Clock::new(10));
        let changes = env.log().read(Clock::ZERO, 10).unwrap();
        assert_eq!(changes[1].previous, Some(Clock::new(8)), "which is gone");
        assert_beginning_makes_documents(env);
    });
}

#[test]
fn d4_what_expires_goes_from_the_compacted_log_as_well() {
    on_each_alone(|env| {
        env.set_retention(latest()).unwrap();
        let brief = Write::put("Order", "ends", json!(1)).expires_in(Duration::from_millis(1));
        env.write(brief).unwrap();
        env.put("Order", "stays", json!(1)).unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while env.log().head().unwrap().clock < Clock::new(3) {
            assert!(Instant::now() < end, "it is swept soon");
            env.maintain().unwrap();
        }
        let changes = env.log().read(Clock::ZERO, 10).unwrap();
        let ops: Vec<_> = changes.iter().map(|change| (change.clock.number(), change.op)).collect();
        assert_eq!(ops, [(2, Op::Put), (3, Op::Expire)]);
        assert_beginning_makes_documents(env);
    });
}

#[test]
fn d4_a_reader_within_what_was_compacted_since_is_told_to_begin_again() {
    on_each_alone(|env| {
        write_changes(env, 10);
        let mut early = env.log().tail(Clock::new(4));
        env.set_retention(latest()).unwrap();
        env.maintain().unwrap();
        let told = early.next_within(Duration::ZERO);
        let Err(Error::LogTruncated { asked, kept_from }) = told else { panic!("{told:?}") };
        assert_eq!((asked, kept_from), (Clock::new(5), Clock::new(10)));
        assert_eq!(clocks_after(env, 9), [10], "after it, it is a log as any");
        assert!(env.log().pin("early", Clock::new(4)).is_err());

        let compacted_to = env.log().compacted_to().unwrap();
        let first = env.log().read(Clock::ZERO, 4).unwrap();
        let within = Position::new(first[3].clock, compacted_to);
        assert_eq!(env.log().read(within, 100).unwrap().len(), 6);
        env.remove("Order", "o-0").unwrap();
        env.put("Order", "o-1", json!(1)).unwrap();
        assert_eq!(env.log().read(within, 100).unwrap().len(), 8, "it hears of the removal");
        env.maintain().unwrap();
        let told = env.log().read(within, 100);
        assert!(matches!(told, Err(Error::LogTruncated { .. })), "the removal is gone: {told:?}");
    });
}

#[test]
fn d4_a_tail_from_the_beginning_of_a_compacted_log_follows_it() {
    on_each_alone(|env| {
        env.set_retention(latest()).unwrap();
        write_changes(env, 600);
        let mut tail = env.log().tail(Clock::ZERO);
        let mut next = || tail.next_within(Duration::ZERO).unwrap().map(|change| change.clock);
        assert_eq!((next(), next()), (Some(Clock::new(1)), Some(Clock::new(2))));
        assert_eq!(tail.position(), Clock::ZERO, "who goes on later begins again");
        let read = std::iter::from_fn(|| tail.next_within(Duration::ZERO).unwrap()).count();
        assert_eq!((read, tail.position()), (598, Clock::new(600)));
        env.put("Order", "o-0", json!(1)).unwrap();
        let change = tail.next_within(Duration::ZERO).unwrap().unwrap();
        assert_eq!(change.clock, Clock::new(601));
    });
}

#[test]
fn d4_what_was_trimmed_before_is_made_again_from_the_documents() {
    on_each_alone(|env| {
        let key = IdempotencyKey::new("a", "b", "c");
        env.write_once(&key, vec![Write::put("Other", "first", json!({"n": 1}))]).unwrap();
        env.set_retention(Retention::everything().bytes(0)).unwrap();
        write_changes(env, 3_000);
        env.remove("Order", "o-7").unwrap();
        env.maintain().unwrap();
        assert!(env.log().read(Clock::ZERO, 1).is_err());
        env.set_retention(latest()).unwrap();
        env.maintain().unwrap();
        let first = env.log().read(Clock::ZERO, 1).unwrap().remove(0);
        let document = env.get("Other", "first").unwrap().unwrap();
        assert_eq!((first.clock, first.value), (document.version, Some(document.value)));
        assert_eq!((first.previous, first.time, first.origin), (None, Hlc::ZERO, 0));
        assert_eq!(first.transaction, first.clock);
        let changes = env.log().read(Clock::ZERO, usize::MAX).unwrap();
        assert_eq!(changes.len(), 3_001, "but for the one that was removed, whose removal is");
        let Ok(()) = env.log().pin("mirror", Clock::ZERO) else { panic!("everything is there") };
        env.remove("Order", "o-8").unwrap();
        env.maintain().unwrap();
        assert_eq!(clocks_after(env, 3_001), [3_002, 3_003], "what is pinned is not compacted");
        env.log().unpin("mirror").unwrap();
        env.maintain().unwrap();
        assert_eq!(env.log().compacted_to().unwrap(), Clock::new(3_002));
        assert_eq!(env.check().unwrap().findings, []);
    });
}

#[test]
fn d4_when_the_latest_changes_are_kept_no_longer_they_go_and_can_come_back() {
    on_each_alone(|env| {
        env.set_retention(latest()).unwrap();
        write_changes(env, 10);
        env.set_retention(Retention::everything()).unwrap();
        assert_eq!(env.log().compacted_to().unwrap(), Clock::ZERO);
        let told = env.log().read(Clock::ZERO, 1);
        assert!(matches!(told, Err(Error::LogTruncated { .. })), "{told:?}");
        env.put("Order", "o-0", json!(1)).unwrap();
        env.maintain().unwrap();
        assert_eq!(clocks_after(env, 9), [10, 11], "the rest is a log that was trimmed");
        assert_eq!(env.check().unwrap().findings, []);
        env.set_retention(latest()).unwrap();
        env.maintain().unwrap();
        assert_beginning_makes_documents(env);
    });
}

#[test]
fn d4_a_writer_of_another_process_knows_that_the_log_is_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Lmdb::open(directory.path().join("test"), &Options::default()).unwrap();
    let (env, other) = (alone(Arc::new(open())), alone(Arc::new(open())));
    env.put("Order", "o-1", json!(1)).unwrap();
    env.put("Order", "o-2", json!(1)).unwrap();
    other.put("Order", "o-3", json!(1)).unwrap();
    env.set_retention(latest()).unwrap();
    env.maintain().unwrap();
    other.put("Order", "o-1", json!(2)).unwrap();
    assert_eq!(clocks_after(&env, 0), [2, 3, 4]);
    env.set_retention(Retention::everything()).unwrap();
    env.maintain().unwrap();
    other.put("Order", "o-2", json!(2)).unwrap();
    assert_eq!(clocks_after(&other, 2), [3, 4, 5]);
    assert_eq!(env.check().unwrap().findings, []);
}

#[test]
fn d4_processes_killed_at_any_moment_leave_a_log_that_makes_the_documents() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let path = dir.path().join("store/env/main");
        alone(Arc::new(Lmdb::open(path, &Options::default()).unwrap()))
    };
    drop(Store::open(dir.path().join("store")).unwrap().env("main").unwrap());
    let start = |id: usize| Child::start(Role::Churn, dir.path(), &id.to_string());
    let mut children: Vec<Child> = (0..3).map(start).collect();
    let (mut compacted, mut rebuilt) = (0, 0);
    for kill in 0..KILLS {
        // Now and then it ends while the log is compacted, and begins in one that was trimmed.
        let kept = Retention::everything().bytes(if kill % 2 == 0 { 0 } else { 3_000 });
        open().set_retention(if kill % 4 < 3 { kept.latest() } else { kept }).unwrap();
        thread::park_timeout(Duration::from_micros(u64::from(kill) * 7_919 % 40_000));
        assert!(children.iter_mut().all(Child::is_running), "one has failed, and said why");
        let victim = kill as usize % 3;
        children[victim].kill();
        if kill % 8 != 4 {
            children[victim] = start(victim);
        } else {
            children.iter_mut().for_each(Child::kill);
            let env = open();
            let before = env.log().compacted_to().unwrap();
            env.maintain().unwrap();
            assert_beginning_makes_documents(&env);
            let counted = if before == Clock::ZERO { &mut rebuilt } else { &mut compacted };
            *counted += 1;
            children = (0..3).map(start).collect();
        }
    }
    let changes = open().log().head().unwrap().clock;
    println!("{KILLS} kills, {changes} changes; {compacted} compacted and {rebuilt} rebuilt");
    assert!(changes > Clock::new(u64::from(KILLS)), "the children hardly wrote: {changes}");
}

const KILLS: u32 = 120;

//! Several processes on one environment, killed and stopped at any moment.
//!
//! The children are this binary again: [`child`] plays the part that the environment variable
//! names, and says on its output what it has reached.

#![cfg(unix)]
#![allow(
    clippy::print_stdout,
    reason = "children talk to their parent on it, and figures are printed"
)]

mod engines;
#[path = "processes/child.rs"]
mod role;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use engines::{
    all, clock_of, get, open, putting, stored_head, try_get, until, view, write, write_all,
};
use motet_store::engine::Table;
use motet_store::engine::lmdb::{Lmdb, Options};
use motet_store::{Clock, Error, Store, StoreOptions};
use role::{Child, Role};
use rustix::process::Signal;
use serde_json::json;

/// Not a test by itself: the part of a child process.
#[test]
#[ignore = "the tests start it as a process of its own"]
fn child() {
    role::play();
}

#[test]
fn what_was_acknowledged_survives_any_kill_and_stop_and_nothing_is_half_there() {
    let kills = std::env::var("MOTET_KILLS").map_or(200, |kills| kills.parse().expect("a number"));
    let dir = tempfile::tempdir().unwrap();
    let start = |id: usize| Child::start(Role::Number, dir.path(), &id.to_string());
    let mut children: Vec<Child> = (0..3).map(start).collect();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for kill in 0..kills {
        thread::park_timeout(Duration::from_micros(dice.roll(60_000)));
        // One that stands still for a moment, wherever it is, changes nothing.
        let stopped = &children[(kill + 1) % 3];
        stopped.signal(Signal::STOP);
        thread::park_timeout(Duration::from_micros(dice.roll(20_000)));
        stopped.signal(Signal::CONT);
        // Now and then all at once, so that the next one finds nobody.
        let victims = if kill % 16 == 15 { 0..3 } else { kill % 3..kill % 3 + 1 };
        for victim in victims.clone() {
            children[victim].kill();
        }
        for victim in victims {
            children[victim] = start(victim);
        }
    }
    for child in &mut children {
        child.kill();
    }
    let acknowledged = check_numbers(dir.path(), 3);
    println!("{kills} kills, {acknowledged} acknowledged writes");
    assert!(acknowledged > kills as u64, "the children hardly wrote: {acknowledged}");
}

/// Every number lies in a document, an index entry and the log, at one clock.
fn check_numbers(path: &Path, writers: usize) -> u64 {
    let engine = open(&path.join("store"));
    let view = view(&engine);
    let head = stored_head(&*view).clock.number();
    let log = all(&*view, Table::Log);
    let clocks: Vec<u64> = log.iter().map(|(key, _)| clock_of(key).number()).collect();
    assert_eq!(clocks, (1..=head).collect::<Vec<_>>(), "the log has a gap");
    let named: BTreeMap<&[u8], &[u8]> =
        log.iter().map(|(clock, name)| (name.as_slice(), clock.as_slice())).collect();
    assert_eq!(named.len(), log.len(), "a number was written twice");
    for table in [Table::Documents, Table::Index] {
        let found = all(&*view, table);
        assert_eq!(found.len(), log.len(), "{table:?} and the log differ");
        for (name, clock) in &found {
            assert_eq!(named.get(name.as_slice()), Some(&clock.as_slice()), "{table:?}");
        }
    }
    let mut acknowledged = 0;
    for writer in 0..writers {
        let acks = fs::read_to_string(path.join(format!("acks-{writer}"))).unwrap_or_default();
        for line in acks.lines().filter_map(|line| line.strip_suffix('.')) {
            let (clock, name) = line.split_once(' ').expect("a clock and a name");
            let clock = Clock::new(clock.parse().expect("a clock"));
            assert_eq!(named.get(name.as_bytes()), Some(&&clock.to_bytes()[..]), "{line} is gone");
            acknowledged += 1;
        }
    }
    acknowledged
}

#[test]
fn a_stopped_writer_is_named_and_what_was_given_up_is_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(&dir.path().join("store"));
    write(&engine, putting("before", "")).unwrap();
    let mut holder = Child::start(Role::Hold, dir.path(), "");
    holder.expect("inside");
    holder.signal(Signal::STOP);

    let started = Instant::now();
    let results = write_all(&engine, vec![putting("given up", "1"), putting("given up too", "1")]);
    let waited = started.elapsed();
    for result in results {
        match result {
            Err(Error::WriterStalled { pid, held_ms }) => {
                assert_eq!(pid, holder.pid());
                assert!(held_ms >= 2_000, "{held_ms}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(3), "{waited:?}");
    let again = Instant::now();
    assert!(matches!(write(&engine, putting("given up", "2")), Err(Error::WriterStalled { .. })));
    assert!(again.elapsed() < Duration::from_secs(1), "a known stall is waited for again");
    assert!(get(&*view(&engine), Table::Documents, b"before").is_some(), "reading goes on");

    holder.go();
    holder.signal(Signal::CONT);
    holder.expect("written");
    until("a write after the stall", 5, || write(&engine, putting("after", "")).is_ok());
    let view = view(&engine);
    let keys: Vec<Vec<u8>> =
        all(&*view, Table::Documents).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [&b"after"[..], b"before", b"held"]);
}

#[test]
fn an_engine_is_dropped_while_another_process_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let engine = open(&path);
    let mut holder = Child::start(Role::Hold, dir.path(), "");
    holder.expect("inside");
    holder.signal(Signal::STOP);
    assert!(matches!(write(&engine, putting("k", "")), Err(Error::WriterStalled { .. })));
    let started = Instant::now();
    drop(engine);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    match Lmdb::open(&path, &Options::default()).err() {
        Some(Error::WriterStalled { pid, .. }) => assert_eq!(pid, holder.pid()),
        other => panic!("{other:?}"),
    }
    holder.go();
    holder.signal(Signal::CONT);
    holder.expect("written");
    write(&open(&path), putting("k", "")).unwrap();
}

#[test]
fn an_environment_that_is_stalled_keeps_nobody_from_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    // What a child calls its store is an environment here.
    let mut holder = Child::start(Role::Hold, &dir.path().join("env"), "");
    holder.expect("inside");
    holder.signal(Signal::STOP);
    thread::scope(|scope| {
        let stalled = scope.spawn(|| store.env("store").map(|_| ()));
        thread::park_timeout(Duration::from_millis(200));
        let started = Instant::now();
        store.env("other").unwrap();
        assert!(store.existing_env("absent").unwrap().is_none());
        assert_eq!(store.environments().unwrap(), ["other", "store"]);
        let took = started.elapsed();
        assert!(!stalled.is_finished(), "there was nothing to wait for");
        assert!(took < Duration::from_secs(1), "{took:?}");
        let told = stalled.join().unwrap();
        assert!(matches!(told, Err(Error::WriterStalled { .. })), "{told:?}");
    });
    holder.kill();
    store.env("store").unwrap();
}

#[test]
fn a_copy_that_is_killed_after_its_first_environment_is_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("store")).unwrap();
    for name in ["a", "b"] {
        store.env(name).unwrap().put("T", "k", json!(1)).unwrap();
    }
    drop(store);
    // The second one is stalled, so that the copy waits there. What a child calls its store is an
    // environment here.
    let stage = dir.path().join("stage");
    fs::create_dir(&stage).unwrap();
    std::os::unix::fs::symlink(dir.path().join("store/env/b"), stage.join("store")).unwrap();
    let mut holder = Child::start(Role::Hold, &stage, "");
    holder.expect("inside");
    holder.signal(Signal::STOP);
    let mut copying = Child::start(Role::Copy, dir.path(), "");
    let copy = dir.path().join("copy");
    until("the copy of the first environment", 20, || copy.join("env/a/FORMAT").exists());
    copying.kill();

    let existing = Store::open_existing(&copy, StoreOptions::default());
    for opened in [Store::open(&copy), existing] {
        assert!(matches!(opened.map(|_| ()), Err(Error::CopyUnfinished { .. })));
    }
    holder.kill();
    let store = Store::open(dir.path().join("store")).unwrap();
    assert!(matches!(store.copy_to(&copy, &["a"]), Err(Error::CopyUnfinished { .. })));
    store.copy_to(dir.path().join("again"), &["a", "b"]).unwrap();
    let again = Store::open_existing(dir.path().join("again"), StoreOptions::default()).unwrap();
    assert_eq!(again.environments().unwrap(), ["a", "b"]);
}

#[test]
fn after_a_killed_writer_the_next_one_commits_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(&dir.path().join("store"));
    let mut holder = Child::start(Role::Hold, dir.path(), "");
    holder.expect("inside");
    thread::scope(|scope| {
        let waiting =
            scope.spawn(|| write(&engine, putting("waiting", "")).map(|_| Instant::now()));
        let killed = Instant::now();
        holder.kill();
        let took = waiting.join().unwrap().unwrap() - killed;
        println!("{took:?} from the kill to the next commit");
        assert!(took < Duration::from_secs(1), "{took:?}");
    });
    assert_eq!(get(&*view(&engine), Table::Documents, b"held"), None);
}

#[test]
fn a_lone_writer_gets_its_turn_beside_one_that_writes_all_the_time() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(&dir.path().join("store"));
    let mut busy = Child::start(Role::Saturate, dir.path(), "");
    busy.expect("busy");
    let mut waits: Vec<Duration> = (0..500_u32)
        .map(|number| {
            let started = Instant::now();
            write(&engine, putting(number.to_be_bytes(), "")).unwrap();
            let took = started.elapsed();
            thread::park_timeout(Duration::from_millis(1));
            took
        })
        .collect();
    busy.kill();
    waits.sort_unstable();
    let (p50, p99) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
    println!("a lone writer beside a saturating process: p50 {p50:?}, p99 {p99:?} (aim 20 ms)");
    assert!(p99 < Duration::from_millis(250), "{p99:?}");
}

#[test]
fn readers_that_were_killed_do_not_keep_the_file_growing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(&dir.path().join("store"));
    let round = || {
        for key in 0..50_u8 {
            write(&engine, putting([key], vec![key; 3_000])).unwrap();
        }
        engine.file_bytes().unwrap()
    };
    round();
    for _ in 0..3 {
        let mut reader = Child::start(Role::Read, dir.path(), "");
        reader.expect("viewing");
        reader.kill();
        round();
    }
    // However fast this machine writes: what counts is for how long it does so into new pages.
    let killed = Instant::now();
    let mut last = (round(), Instant::now());
    until("an end of the growth", 20, || {
        let bytes = round();
        if bytes > last.0 {
            last = (bytes, Instant::now());
        }
        last.1.elapsed() > Duration::from_secs(2)
    });
    let grew = last.1 - killed;
    println!("{} bytes, {} in use, after {grew:?}", last.0, engine.used_bytes().unwrap());
    assert!(grew < Duration::from_secs(5), "it grew for {grew:?}");
}

#[test]
fn processes_that_create_the_same_store_at_once_all_succeed() {
    for _ in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let mut children: Vec<Child> =
            (0..4).map(|id| Child::start(Role::Create, dir.path(), &id.to_string())).collect();
        for child in &mut children {
            child.expect("ready");
        }
        fs::write(dir.path().join("go"), "").unwrap();
        for child in &mut children {
            child.expect("created");
        }
        let engine = open(&dir.path().join("store"));
        assert_eq!(all(&*view(&engine), Table::Documents).len(), 4);
    }
}

#[test]
fn a_creation_that_is_killed_at_any_moment_leaves_what_opens_again() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    for _ in 0..60 {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("go"), "").unwrap();
        let mut child = Child::start(Role::Create, dir.path(), "0");
        child.expect("ready");
        thread::park_timeout(Duration::from_micros(dice.roll(6_000)));
        child.kill();
        let engine = open(&dir.path().join("store"));
        write(&engine, putting("k", "v")).unwrap();
        assert_eq!(try_get(&*view(&engine), Table::Documents, b"k").unwrap(), Some(b"v".to_vec()));
    }
}

/// Numbers that look random (xorshift, Marsaglia 2003), so that kills come at any moment.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

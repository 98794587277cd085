//! Writes under an idempotency key are done once.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod stores;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use motet_store::engine::WallClock;
use motet_store::engine::memory::Memory;
use motet_store::{Clock, Driver, Env, Error, IdempotencyKey, Limits, Patch, TypeSpec, Write};
use serde_json::json;
use stores::{on_disk, on_each};

const DAY_MS: u64 = 24 * 3_600_000;

fn add_one() -> Vec<Write> {
    vec![Write::patch("Counter", "c", Patch::parse(&json!({"inc": {"n": 1}})).unwrap())]
}

fn count(env: &Env) -> i64 {
    env.get("Counter", "c").unwrap().unwrap().value["n"].as_i64().unwrap()
}

#[test]
fn d2_what_was_done_under_a_key_is_not_done_again_and_gives_the_same() {
    on_each(|env| {
        env.put("Counter", "c", json!({"n": 0})).unwrap();
        let key = IdempotencyKey::new("me", "k-1", "add one");
        let first = env.write_once(&key, add_one()).unwrap();
        env.put("Other", "o", json!(1)).unwrap();
        assert_eq!(env.write_once(&key, add_one()).unwrap(), first);
        assert_eq!(count(env), 1);
        for other in [("me", "k-2"), ("you", "k-1"), ("mek", "-1")] {
            let key = IdempotencyKey::new(other.0, other.1, "add one");
            assert_ne!(env.write_once(&key, add_one()).unwrap(), first, "{other:?}");
        }
        assert_eq!(count(env), 4);
    });
}

#[test]
fn d2_a_key_that_stands_for_another_request_is_refused_and_nothing_written() {
    on_each(|env| {
        let put = |text: &str| {
            let key = IdempotencyKey::new("me", "k", text);
            env.write_once(&key, vec![Write::put("T", text, json!(1))])
        };
        put("a").unwrap();
        let refused = put("b");
        assert!(matches!(refused, Err(Error::IdempotencyKeyReused)), "{refused:?}");
        assert_eq!(env.get("T", "b").unwrap(), None);
    });
}

#[test]
fn d2_a_write_that_failed_leaves_its_key_free() {
    on_each(|env| {
        let key = IdempotencyKey::new("me", "k", "update");
        let update = || vec![Write::update("T", "k", json!(2))];
        assert!(matches!(env.write_once(&key, update()), Err(Error::NotFound { .. })));
        let version = env.put("T", "k", json!(1)).unwrap();
        assert_eq!(env.write_once(&key, update()).unwrap(), [version.plus(1)]);
    });
}

#[test]
fn d2_of_many_who_send_a_request_at_once_one_has_it_done() {
    let (store, _directory) = on_disk();
    let env = store.env("test").unwrap();
    env.put("Counter", "c", json!({"n": 0})).unwrap();
    let key = IdempotencyKey::new("me", "k", "add one");
    let versions: Vec<_> = thread::scope(|scope| {
        let asked: Vec<_> =
            (0..16).map(|_| scope.spawn(|| env.write_once(&key, add_one()).unwrap())).collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
    assert_eq!(count(&env), 1);
}

#[test]
fn d12_what_was_done_under_keys_is_in_no_log_and_no_list_and_a_check_knows_it() {
    on_each(|env| {
        let spec = TypeSpec::new().recorded_schema(json!({"type": "string"}));
        env.define("T", &spec).unwrap();
        for n in 0..3 {
            let key = IdempotencyKey::new("me", &n.to_string(), "put");
            env.write_once(&key, vec![Write::put("T", n.to_string(), json!(n))]).unwrap();
        }
        assert_eq!(env.violations("T").unwrap().len(), 3, "the store's own documents as well");
        assert_eq!(env.types().unwrap(), ["T"]);
        let changes = env.log().read(Clock::ZERO, 100).unwrap();
        assert!(changes.iter().all(|change| change.type_name == "T"), "{changes:?}");
        assert_eq!(changes.len(), 3);
        assert_eq!(env.check().unwrap().findings, []);
    });
}

/// An environment whose time is told by hand.
fn with_time() -> (Env, Arc<AtomicU64>) {
    let now_ms = Arc::new(AtomicU64::new(1_700_000_000_000));
    let clock = || -> WallClock {
        let now_ms = Arc::clone(&now_ms);
        Box::new(move || now_ms.load(Ordering::Relaxed))
    };
    let engine = Arc::new(Memory::with_wall_clock(clock()));
    let driver =
        Driver { instance: 1, limits: Limits::default(), wall_clock: clock(), outward: None };
    (Env::on_engine("test", engine, driver), now_ms)
}

#[test]
fn d2_a_key_is_kept_for_a_day_and_then_swept() {
    let (env, now_ms) = with_time();
    env.put("Counter", "c", json!({"n": 0})).unwrap();
    let key = IdempotencyKey::new("me", "k", "add one");
    env.write_once(&key, add_one()).unwrap();
    now_ms.fetch_add(DAY_MS - 1, Ordering::Relaxed);
    env.maintain().unwrap();
    env.write_once(&key, add_one()).unwrap();
    assert_eq!(count(&env), 1, "within the day");
    assert_eq!(env.check().unwrap().documents, 2);

    now_ms.fetch_add(1, Ordering::Relaxed);
    let head = env.log().head().unwrap().clock;
    env.maintain().unwrap();
    let report = env.check().unwrap();
    assert_eq!((report.documents, report.expiries), (1, 0), "{report:?}");
    assert_eq!(env.log().head().unwrap().clock, head, "nobody follows the store's own");
    env.write_once(&key, add_one()).unwrap();
    assert_eq!(count(&env), 2, "after the day it is another request");
}

#[test]
fn d2_a_key_that_is_used_again_before_it_was_swept_is_kept_for_another_day() {
    let (env, now_ms) = with_time();
    env.put("Counter", "c", json!({"n": 0})).unwrap();
    let key = IdempotencyKey::new("me", "k", "add one");
    for round in 1..=2 {
        env.write_once(&key, add_one()).unwrap();
        assert_eq!(count(&env), round);
        now_ms.fetch_add(DAY_MS, Ordering::Relaxed);
    }
    now_ms.fetch_sub(1, Ordering::Relaxed);
    env.maintain().unwrap();
    env.write_once(&key, add_one()).unwrap();
    assert_eq!(count(&env), 2);
    assert_eq!(env.check().unwrap().findings, []);
}

//! Documents: what each kind of write does and refuses.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod stores;

use std::time::{Duration, Instant};

use motet_store::{Clock, Error, KeyRange, Op, Patch, Store, Write};
use serde_json::json;
use stores::{on_disk, on_each};

#[test]
fn d2_put_creates_and_replaces_and_versions_grow() {
    on_each(|env| {
        let first = env.put("Order", "o-1", json!({"total": 1})).unwrap();
        let second = env.put("Order", "o-1", json!({"total": 2})).unwrap();
        assert!(second > first);
        let order = env.get("Order", "o-1").unwrap().unwrap();
        assert_eq!((order.version, &order.value["total"]), (second, &json!(2)));
        assert_eq!(env.get("Order", "o-2").unwrap(), None);
        assert_eq!(env.get("Absent", "o-1").unwrap(), None);
    });
}

#[test]
fn d2_create_refuses_what_is_there_and_update_patch_and_remove_what_is_not() {
    on_each(|env| {
        let absent = [
            env.update("Order", "o-1", json!(1)),
            env.patch("Order", "o-1", Patch::new()),
            env.remove("Order", "o-1"),
        ];
        for result in absent {
            assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
        }
        let version = env.create("Order", "o-1", json!(1)).unwrap();
        let again = env.create("Order", "o-1", json!(2));
        assert!(matches!(again, Err(Error::AlreadyExists { version: at, .. }) if at == version));
        assert_eq!(env.get("Order", "o-1").unwrap().unwrap().value, json!(1));
    });
}

#[test]
fn d2_a_version_that_was_removed_never_comes_again() {
    on_each(|env| {
        let first = env.create("Order", "o-1", json!(1)).unwrap();
        let removed = env.remove("Order", "o-1").unwrap();
        let second = env.create("Order", "o-1", json!(1)).unwrap();
        assert!(first < removed && removed < second);
        let stale = env.write(Write::update("Order", "o-1", json!(2)).if_version(first));
        assert!(matches!(stale, Err(Error::VersionMismatch { found, .. }) if found == second));
    });
}

#[test]
fn d2_a_condition_on_the_version_guards_every_kind_of_write() {
    on_each(|env| {
        let absent = Write::put("Order", "o-1", json!(1)).if_version(Clock::ZERO);
        let version = env.write(absent.clone()).unwrap();
        assert!(matches!(env.write(absent), Err(Error::VersionMismatch { .. })));
        let wrong = Clock::new(version.number() + 1);
        for write in [
            Write::put("Order", "o-1", json!(2)),
            Write::update("Order", "o-1", json!(2)),
            Write::patch("Order", "o-1", Patch::new()),
            Write::remove("Order", "o-1"),
        ] {
            let refused = env.write(write.clone().if_version(wrong));
            assert!(matches!(refused, Err(Error::VersionMismatch { .. })), "{write:?}");
        }
        env.write(Write::remove("Order", "o-1").if_version(version)).unwrap();
    });
}

#[test]
fn d2_a_patch_changes_parts_and_one_without_effect_keeps_the_version() {
    on_each(|env| {
        env.put("Order", "o-1", json!({"n": 1, "tags": ["a"]})).unwrap();
        let patch = json!({"inc": {"n": 2}, "append": {"tags": "b"}, "set": {"a.b": true}});
        let version = env.patch("Order", "o-1", Patch::parse(&patch).unwrap()).unwrap();
        let order = env.get("Order", "o-1").unwrap().unwrap();
        assert_eq!(order.value, json!({"n": 3, "tags": ["a", "b"], "a": {"b": true}}));
        let same = Patch::new().set("n", json!(3)).unwrap();
        assert_eq!(env.patch("Order", "o-1", same).unwrap(), version);
        assert_eq!(env.log().head().unwrap().clock, version);
    });
}

#[test]
fn d2_a_batch_is_done_in_order_and_whole_or_not_at_all() {
    on_each(|env| {
        let writes = vec![
            Write::create("Order", "o-1", json!(1)),
            Write::patch("Order", "o-1", Patch::parse(&json!({"merge": {"a": 1}})).unwrap()),
            Write::remove("Order", "o-1"),
            Write::create("Order", "o-1", json!(2)),
            Write::create("Item", "i-1", json!(3)),
        ];
        let versions = env.write_all(writes).unwrap();
        assert!(versions.is_sorted() && versions.len() == 5);
        let failing = vec![Write::put("Item", "i-2", json!(1)), Write::remove("Item", "absent")];
        assert!(matches!(env.write_all(failing), Err(Error::NotFound { .. })));
        assert_eq!(env.get("Item", "i-2").unwrap(), None);
        assert_eq!(env.log().head().unwrap().clock, versions[4]);
        assert!(env.write_all(Vec::new()).unwrap().is_empty());
    });
}

#[test]
fn d1_names_keys_and_values_beyond_their_limits_are_refused_before_anything_is_written() {
    on_each(|env| {
        let long = "k".repeat(481);
        for (type_name, key) in [("", "k"), ("~jobs", "k"), ("a/b", "k")] {
            let refused = env.put(type_name, key, json!(1));
            assert!(matches!(refused, Err(Error::NameInvalid { .. })), "{type_name:?}");
        }
        for key in ["", long.as_str()] {
            assert!(matches!(env.put("Order", key, json!(1)), Err(Error::KeyInvalid { .. })));
            assert!(matches!(env.get("Order", key), Err(Error::KeyInvalid { .. })));
        }
        let large = json!("x".repeat(4 << 20));
        assert!(matches!(env.put("Order", "k", large), Err(Error::ValueTooLarge { .. })));
        assert_eq!(env.log().head().unwrap().clock, Clock::ZERO);
        env.put("Order", &"k".repeat(480), json!("\u{0}\u{10ffff}")).unwrap();
    });
}

#[test]
fn d1_environments_have_clocks_of_their_own() {
    let (store, _directory) = on_disk();
    let (one, two) = (store.env("one").unwrap(), store.env("two").unwrap());
    one.put("Order", "o-1", json!(1)).unwrap();
    one.put("Order", "o-1", json!(2)).unwrap();
    assert_eq!(two.put("Order", "o-1", json!(3)).unwrap(), Clock::new(1));
    assert_eq!(one.get("Order", "o-1").unwrap().unwrap().value, json!(2));
    assert!(matches!(store.env("../x"), Err(Error::NameInvalid { .. })));
}

#[test]
fn d1_what_was_written_is_there_when_the_store_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let version = {
        let store = Store::open(directory.path()).unwrap();
        store.env("default").unwrap().put("Order", "o-1", json!({"b": 1, "a": [2]})).unwrap()
    };
    let env = Store::open(directory.path()).unwrap().env("default").unwrap();
    let order = env.get("Order", "o-1").unwrap().unwrap();
    assert_eq!(order.version, version);
    assert_eq!(order.value.to_string(), r#"{"b":1,"a":[2]}"#, "with its fields in their order");
}

#[test]
fn documents_of_a_type_are_read_in_the_order_of_their_keys() {
    on_each(|env| {
        for key in ["b", "a", "a/1", "\u{e4}", "a/2"] {
            env.put("Order", key, json!(key)).unwrap();
        }
        env.put("Orders", "a/3", json!(1)).unwrap();
        let keys = |range: KeyRange| {
            let documents = env.range("Order", &range).unwrap();
            documents.into_iter().map(|document| document.key).collect::<Vec<_>>()
        };
        assert_eq!(keys(KeyRange::all()), ["a", "a/1", "a/2", "b", "\u{e4}"]);
        assert_eq!(keys(KeyRange::prefix("a/")), ["a/1", "a/2"]);
        assert_eq!(keys(KeyRange::all().after("a").limit(2)), ["a/1", "a/2"]);
        assert_eq!(keys(KeyRange::all().from("b")), ["b", "\u{e4}"]);
        assert!(keys(KeyRange::prefix("x")).is_empty());
    });
}

#[test]
fn d8_an_expired_document_counts_as_absent_at_once_and_is_swept_in_an_idle_environment() {
    on_each(|env| {
        let short = Duration::from_millis(40);
        env.write(Write::put("Session", "s-1", json!(1)).expires_in(short)).unwrap();
        env.write(Write::put("Session", "s-2", json!(1)).expires_in(short)).unwrap();
        env.write(Write::put("Session", "s-3", json!(1)).expires_in(short).never_expires())
            .unwrap();
        let long = Duration::from_secs(1_000);
        env.write(Write::put("Session", "s-4", json!(1)).expires_in(long)).unwrap();
        assert!(env.get("Session", "s-4").unwrap().unwrap().expires_ms.is_some());

        // On a slow disk the first may have ended before the last is written.
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut tail = env.log().tail(Clock::ZERO);
        let mut expired = Vec::new();
        while expired.len() < 2 && Instant::now() < deadline {
            let change = tail.next_within(Duration::from_secs(5)).unwrap();
            if let Some(change) = change.filter(|change| change.op == Op::Expire) {
                assert_eq!(env.get("Session", &change.key).unwrap(), None);
                expired.push(change.key);
            }
        }
        assert_eq!(expired, ["s-1", "s-2"]);
        assert_eq!(env.range("Session", &KeyRange::all()).unwrap().len(), 2);
        assert!(env.get("Session", "s-3").unwrap().is_some());
        assert!(env.maintenance_error().is_none());
    });
}

#[test]
fn d8_an_update_keeps_the_expiry_and_a_put_ends_it() {
    on_each(|env| {
        let long = Duration::from_secs(1_000);
        env.write(Write::create("Session", "s-1", json!(1)).expires_in(long)).unwrap();
        let expires_ms = env.get("Session", "s-1").unwrap().unwrap().expires_ms;
        env.update("Session", "s-1", json!(2)).unwrap();
        assert_eq!(env.get("Session", "s-1").unwrap().unwrap().expires_ms, expires_ms);
        env.put("Session", "s-1", json!(3)).unwrap();
        assert_eq!(env.get("Session", "s-1").unwrap().unwrap().expires_ms, None);
    });
}

#[test]
fn d11_no_write_makes_a_document_that_is_too_deep_to_be_read_again() {
    on_each(|env| {
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
        env.put("Order", "o-1", nested(100)).unwrap();
        let deep = env.put("Order", "o-2", nested(101));
        assert!(matches!(deep, Err(Error::ValueTooDeep { max: 100 })), "{deep:?}");
        let patch = Patch::new().set("b.c", nested(99)).unwrap();
        let deep = env.patch("Order", "o-1", patch);
        assert!(matches!(deep, Err(Error::ValueTooDeep { max: 100 })), "{deep:?}");
        assert_eq!(env.query("Order").rows().unwrap().len(), 1);
    });
}

//! Compaction of an environment that nobody has open.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use motet_store::{Clock, Error, Store};
use serde_json::json;

#[test]
fn d10_compaction_frees_room_and_keeps_documents_log_and_clock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let store = Store::open(&path).unwrap();
    let env = store.env("a").unwrap();
    let text = "x".repeat(2_000);
    for n in 0..300 {
        env.put("T", &format!("k{n}"), json!(text)).unwrap();
    }
    env.set_retention(motet_store::Retention::everything().bytes(10_000)).unwrap();
    for n in 1..300 {
        env.remove("T", &format!("k{n}")).unwrap();
    }
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while env.log().read(Clock::new(200), 1).is_ok() {
        assert!(std::time::Instant::now() < end, "the log is trimmed soon");
        std::thread::yield_now();
    }
    assert!(matches!(store.compact("a"), Err(Error::InUse { .. })), "it is open here");
    assert_eq!(env.get("T", "k0").unwrap().unwrap().value, json!(text));
    drop((env, store));

    let store = Store::open(&path).unwrap();
    let compacted = until_closed(&store);
    assert!(compacted.bytes_after * 2 < compacted.bytes_before, "{compacted:?}");
    let env = store.env("a").unwrap();
    assert_eq!(env.get("T", "k0").unwrap().unwrap().value, json!(text));
    assert_eq!(env.log().head().unwrap().clock, Clock::new(599));
    assert_eq!(env.check().unwrap().findings, []);
    assert_eq!(env.put("T", "k1", json!(1)).unwrap(), Clock::new(600));
    assert!(!path.join("env/a/compacting").exists());
    assert!(matches!(store.compact("absent"), Err(Error::NotAStore { .. })));
}

/// The thread that maintains an environment lets go of it a moment after its last handle.
fn until_closed(store: &Store) -> motet_store::engine::lmdb::Compaction {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        match store.compact("a") {
            Ok(compacted) => return compacted,
            Err(Error::InUse { .. }) => assert!(std::time::Instant::now() < end, "it is closed"),
            Err(error) => panic!("{error}"),
        }
    }
}

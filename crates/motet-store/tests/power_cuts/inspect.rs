//! Opens what a power cut left and checks all of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use motet_store::engine::lmdb::{Lmdb, Options};
use motet_store::{
    Clock, Document, Driver, Env, Error, Hlc, IndexState, KeyRange, Limits, Op, Store, Write,
};
use serde_json::{Value, json};

use super::known::{Documents, Known, replay};
use super::scenario::{Acknowledged, GROUPS};

/// An environment whose wall clock stands at the beginning of time, so that only what had expired by
/// the log's last change has, without a thread in the background.
pub(crate) fn frozen(engine: Lmdb) -> Env {
    let driver = Driver {
        instance: 1,
        limits: Limits::default(),
        wall_clock: Box::new(|| 0),
        outward: None,
    };
    Env::on_engine("main", Arc::new(engine), driver)
}

/// Checks the store in this directory and gives the end of its log.
pub(crate) fn image(
    path: &Path,
    label: &str,
    history: &[Known],
    acknowledged: &Acknowledged,
) -> u64 {
    let _label = Label(label);
    let engine = Lmdb::open(path.join("env/main"), &Options::default()).unwrap();
    let env = frozen(engine);
    let end = env.log().head().unwrap();
    let head = end.clock.number();
    assert!(head >= acknowledged.clock, "{} was acknowledged, {head} is there", acknowledged.clock);
    let log = &history[..head as usize];
    let next = history.get(log.len());
    assert!(next.is_none_or(|next| next.transaction == next.clock), "{head} is in {next:?}");
    let mut documents = replay(log);
    let mut expired = take_expired(&mut documents, end.time);

    check_log(&env, log);
    check_documents(&env, &documents);
    check_catalogue(&env, acknowledged);
    check_queries(&env, &documents);
    env.maintain().unwrap();
    let swept = env.log().head().unwrap();
    expired.extend(take_expired(&mut documents, swept.time));
    check_swept(&env, end.clock, &expired);
    let head = swept.clock.number();
    check_documents(&env, &documents);
    let indexes = env.indexes("Item").unwrap().into_iter().chain(env.indexes("User").unwrap());
    for index in indexes {
        assert_eq!(index.state, IndexState::Ready, "{index:?}");
    }
    check_queries(&env, &documents);

    let next = env.put("Item", "after", json!({"n": 0, "group": 0})).unwrap();
    assert_eq!(next, Clock::new(head + 1));
    check_uniqueness(&env, &documents);
    env.remove("Item", "after").unwrap();
    drop(env);
    check_reopened(path, head + 2);
    end.clock.number()
}

/// Takes out the documents that have ended by then, and gives what each was and its key.
fn take_expired<'h>(documents: &mut Documents<'h>, now: Hlc) -> BTreeSet<(&'h str, &'h str)> {
    let now_ms = now.unix_ms();
    let mut expired = BTreeSet::new();
    for (type_name, of_type) in documents {
        of_type.retain(|key, change| {
            let live = change.expires_ms().is_none_or(|expires_ms| now_ms < expires_ms);
            live || !expired.insert((*type_name, *key))
        });
    }
    expired
}

/// After this clock the log has the ends of what had expired, each once, and nothing else.
fn check_swept(env: &Env, clock: Clock, expired: &BTreeSet<(&str, &str)>) {
    let swept = env.log().read(clock, usize::MAX).unwrap();
    assert!(swept.iter().all(|change| change.op == Op::Expire), "more than expiries: {swept:?}");
    let found: Vec<_> = swept.iter().map(|change| (&*change.type_name, &*change.key)).collect();
    assert_eq!(found.len(), expired.len(), "{found:?}, of {expired:?}");
    assert_eq!(&BTreeSet::from_iter(found), expired, "what was swept");
}

/// The log is that of the process, up to its end; it may have been trimmed at its beginning, or
/// compacted to the changes that made the documents.
fn check_log(env: &Env, log: &[Known]) {
    let kept = match env.log().read(Clock::ZERO, usize::MAX) {
        Err(Error::LogTruncated { kept_from, .. }) => {
            env.log().read(Clock::new(kept_from.number() - 1), usize::MAX).unwrap()
        }
        kept => kept.unwrap(),
    };
    let compacted_to = env.log().compacted_to().unwrap().number();
    let (latest, kept): (Vec<_>, Vec<_>) =
        kept.iter().map(Known::from).partition(|change| change.clock <= compacted_to);
    let mut made: Vec<_> = replay(log).into_values().flat_map(BTreeMap::into_values).collect();
    made.retain(|change| change.clock <= compacted_to);
    made.sort_by_key(|change| change.clock);
    assert!(latest.iter().map(Known::made).eq(made.into_iter().map(Known::made)), "{latest:?}");
    assert!(kept.len() <= log.len() && (log.is_empty() || !kept.is_empty()), "the log is gone");
    assert_eq!(kept, log[log.len() - kept.len()..], "the log differs");
}

fn check_documents(env: &Env, documents: &Documents<'_>) {
    for type_name in TYPES {
        let found = env.range(type_name, &KeyRange::all()).unwrap();
        let expected = documents.get(type_name).into_iter().flatten();
        assert_eq!(found.len(), expected.clone().count(), "documents of {type_name}");
        for (found, (key, change)) in found.iter().zip(expected) {
            assert_eq!((found.key.as_str(), found.version.number()), (*key, change.clock));
            assert_eq!(Some(&found.value), change.value.as_ref(), "{type_name} {key}");
            assert_eq!(found.expires_ms, change.expires_ms(), "{type_name} {key}");
        }
    }
}

fn check_catalogue(env: &Env, acknowledged: &Acknowledged) {
    for (type_name, name) in &acknowledged.indexes {
        let indexes = env.indexes(type_name).unwrap();
        assert!(indexes.iter().any(|index| index.name == *name), "the index {name} is gone");
    }
    for name in &acknowledged.dropped {
        let indexes = env.indexes("Item").unwrap();
        assert!(indexes.iter().all(|index| index.name != *name), "the index {name} is back");
    }
    if let Some(bytes) = acknowledged.retention_bytes {
        assert_eq!(env.retention().unwrap().bytes, Some(bytes));
    }
}

/// Queries give what a look at all documents gives, with and without an index.
fn check_queries(env: &Env, documents: &Documents<'_>) {
    let of = |type_name| documents.get(type_name).into_iter().flatten();
    let keys = |rows: Vec<Document>| -> Vec<(String, u64)> {
        rows.into_iter().map(|row| (row.key, row.version.number())).collect()
    };
    for group in 0..GROUPS {
        let in_group = of("Item").filter(|(_, change)| change.at("group") == Some(&json!(group)));
        let in_group: Vec<_> =
            in_group.map(|(_, change)| (change.key.clone(), change.clock)).collect();
        let mut found = keys(env.query("Item").filter(json!({ "group": group })).rows().unwrap());
        found.sort();
        assert_eq!(found, in_group, "group {group}");
    }
    // The same field under a name that no index has.
    let without_index = env.query("Item").filter(json!({ "group_again": 1 })).rows().unwrap();
    let with_index = env.query("Item").filter(json!({ "group": 1, "group_again": 1 }));
    let used = with_index.explain().unwrap().index;
    assert_eq!(used.as_deref(), is_ready(env, "by_group").then_some("by_group"));
    let (mut with, mut without) = (keys(with_index.rows().unwrap()), keys(without_index));
    with.sort();
    without.sort();
    assert_eq!(with, without, "with the index and without");
    check_sizes(env, documents);
    let all = env.query("User").filter(json!({"name": {"$gte": 0}})).count().unwrap();
    assert_eq!(all, of("User").count(), "users by name");
}

/// An order that an index gives is that of all documents.
fn check_sizes(env: &Env, documents: &Documents<'_>) {
    let mut by_size: Vec<_> = documents
        .get("Item")
        .into_iter()
        .flatten()
        .filter(|(_, change)| change.at("size").is_some())
        .map(|(_, change)| (Reverse(change.number("size")), change.number("n"), change.clock))
        .collect();
    by_size.sort_unstable();
    let query = env.query("Item").filter(json!({"size": {"$gte": 0}}));
    let found = query.sort_descending("size").sort("n").rows().unwrap();
    let number = |row: &Document, field: &str| row.value[field].as_i64().unwrap_or_default();
    let mut found: Vec<_> = found
        .iter()
        .map(|row| (Reverse(number(row, "size")), number(row, "n"), row.version.number()))
        .collect();
    assert!(found.is_sorted_by_key(|(size, n, _)| (*size, *n)), "by size, out of order");
    found.sort_unstable();
    assert_eq!(found, by_size, "by size");
}

fn is_ready(env: &Env, name: &str) -> bool {
    let indexes = env.indexes("Item").unwrap();
    indexes.iter().any(|index| index.name == name && index.state == IndexState::Ready)
}

/// A name that a user has is refused to another, and found.
fn check_uniqueness(env: &Env, documents: &Documents<'_>) {
    if !env.indexes("User").unwrap().iter().any(|index| index.state == IndexState::Ready) {
        return;
    }
    for (key, change) in documents.get("User").into_iter().flatten().step_by(5) {
        let name = change.at("name").unwrap();
        match env.put("User", "another", json!({ "name": name })) {
            Err(Error::UniqueViolation { other, .. }) => assert_eq!(other, *key),
            other => panic!("{name} is taken, and yet {other:?}"),
        }
        let found = env.query("User").filter(json!({ "name": name })).rows().unwrap();
        assert_eq!(found.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), [*key]);
    }
}

/// It can be opened as any store, at this time, and go on.
fn check_reopened(path: &Path, head: u64) {
    let env = Store::open(path).unwrap().env("main").unwrap();
    let written = env.write(Write::put("Item", "again", json!({"n": 0}))).unwrap();
    assert!(written > Clock::new(head));
    assert_eq!(env.get("Item", "again").unwrap().unwrap().version, written);
}

impl Known {
    fn at(&self, field: &str) -> Option<&Value> {
        self.value.as_ref()?.get(field)
    }

    fn number(&self, field: &str) -> i64 {
        self.at(field).and_then(Value::as_i64).unwrap_or_default()
    }

    /// When the document ends, if it was given a time to live.
    fn expires_ms(&self) -> Option<u64> {
        Some(Hlc::from_number(self.time).unix_ms() + self.at("ttl_ms")?.as_u64()?)
    }
}

/// Says which image it is when a check of it fails.
struct Label<'l>(&'l str);

impl Drop for Label<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{}", self.0);
        }
    }
}

const TYPES: [&str; 3] = ["Item", "User", "Lease"];

//! A store that builds of different versions share: none breaks rules that it does not know.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use motet_store::engine::lmdb::{Lmdb, Options};
use motet_store::engine::{Answer, Decide, Decision, Engine, Table, Transaction, Writes};
use motet_store::{Clock, Error, Store};
use serde_json::json;

/// What a later build does that gives a type a rule of a new kind, or takes it away again.
struct LaterBuild {
    at: &'static str,
    record: &'static [u8],
    epoch: u64,
}

impl Decide for LaterBuild {
    fn decide<'a>(&'a mut self, _: &'a dyn Transaction) -> Answer<'a, Result<Decision, Error>> {
        let mut writes = Writes::default();
        writes.put(Table::Catalog, self.at.as_bytes(), self.record);
        writes.put(Table::Catalog, b"epoch", &self.epoch.to_be_bytes());
        Answer::now(Ok(Decision { writes, changes: 0 }))
    }
}

#[test]
fn a_build_writes_nothing_where_a_later_one_has_made_rules_that_it_does_not_know() {
    let dir = tempfile::tempdir().unwrap();
    let env = Store::open(dir.path()).unwrap().env("main").unwrap();
    env.put("Order", "o-1", json!(1)).unwrap();
    let later = Lmdb::open(dir.path().join("env/main"), &Options::default()).unwrap();
    let write_at = |at, record, epoch| {
        let build = LaterBuild { at, record, epoch };
        let results = pollster::block_on(later.write(vec![Box::new(build)]));
        assert!(results.iter().all(Result::is_ok));
    };

    let write = |record, epoch| write_at("type/Order", record, epoch);
    write(br#"{"id":1,"spec":{"encrypted":true}}"#, 100);
    let refused = env.put("Order", "o-1", json!(2)).unwrap_err();
    assert!(
        matches!(&refused, Error::EntryNewer { why, .. } if why.contains("encrypted")),
        "{refused}"
    );
    assert_eq!(refused.code().name(), "STORE_NEWER");
    // Also a type that has nothing to do with it: the rule may be about references to it.
    assert!(matches!(env.put("User", "u-1", json!(1)), Err(Error::EntryNewer { .. })));
    assert_eq!(env.log().head().unwrap().clock, Clock::new(1));

    write(br#"{"id":1,"spec":{}}"#, 101);
    assert_eq!(env.put("Order", "o-1", json!(2)).unwrap(), Clock::new(2));

    write(br#"{"id":"one","spec":{}}"#, 102);
    let damaged = env.put("Order", "o-1", json!(3));
    assert!(matches!(damaged, Err(Error::Damaged { .. })), "no build writes this: {damaged:?}");
    write(br#"{"id":1,"spec":{}}"#, 103);
    write_at("log/compacted", b"\0\0\0\0\0\0\0\x01\x02", 104);
    let refused = env.put("Order", "o-9", json!(1));
    assert!(matches!(refused, Err(Error::EntryNewer { .. })), "{refused:?}");
}

//! Much data, asked for with little: what is refused or done in parts, before it takes the memory.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::time::{Duration, Instant};

use motet_store::{Env, Error, IndexSpec, IndexState, Patch, Store, Write};
use serde_json::json;

fn env() -> Env {
    Store::in_memory().env("test").unwrap()
}

/// Almost the largest value that is allowed.
const TEXT_BYTES: usize = (4 << 20) - 200;

#[test]
fn an_index_with_more_entries_than_fit_into_a_transaction_is_built_and_checked() {
    let env = env();
    let tags: Vec<_> = (0..990).map(|n| format!("{n:0130}")).collect();
    for n in 0..120 {
        env.put("Scan", &format!("{n:0480}"), json!({ "tags": tags })).unwrap();
    }
    env.create_index("Scan", "tags", &IndexSpec::new().field("tags")).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while env.indexes("Scan").unwrap()[0].state != IndexState::Ready {
        assert!(Instant::now() < end, "not built: {:?}", env.maintenance_error());
        std::thread::yield_now();
    }
    // As many documents for one entry as for all of them: each is looked at once.
    let report = env.check().unwrap();
    assert_eq!((report.index_entries, report.findings), (120 * 991, vec![]));
}

#[test]
fn patches_of_a_large_document_are_refused_as_soon_as_they_are_too_much() {
    let env = env();
    env.put("Scan", "s", json!({"n": 0, "text": "x".repeat(TEXT_BYTES)})).unwrap();
    let patch = || Patch::new().inc("n", json!(1)).unwrap();
    let writes = (0..600).map(|_| Write::patch("Scan", "s", patch())).collect();
    match env.write_all(writes) {
        Err(Error::TransactionTooLarge { bytes, max }) => {
            assert!(bytes < max + (10 << 20), "{bytes} bytes were gathered");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(env.get("Scan", "s").unwrap().unwrap().value["n"], 0);
}

#[test]
fn a_query_with_too_much_to_sort_is_refused_and_one_with_a_limit_is_answered() {
    let env = env();
    for n in 0..33 {
        let text = format!("{n:02}{}", "x".repeat(TEXT_BYTES));
        env.put("Scan", &format!("s-{n:02}"), json!({ "text": text })).unwrap();
    }
    let query = env.query("Scan").sort_descending("text");
    assert!(matches!(query.rows(), Err(Error::SortTooLarge { .. })));
    let first = query.clone().limit(2).page().unwrap();
    let keys: Vec<_> = first.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["s-32", "s-31"]);
    let second = query.clone().after(first.next.unwrap()).bytes_max(1).raw_page().unwrap();
    assert_eq!((second.rows.len(), second.rows[0].0.as_str()), (1, "s-30"));
    assert_eq!(query.bytes_max(1).explain().unwrap().returned, 1);
}

//! Pages of a query that end by the size of their documents.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod stores;

use std::time::{Duration, Instant};

use motet_store::{Env, IndexSpec, IndexState, Query};
use serde_json::json;
use stores::on_each;

/// So many that what is read at once ends by their size.
const DOCUMENTS: usize = 12;
const DOCUMENT_BYTES: usize = 300_000;

fn fill(env: &Env) {
    for number in 0..DOCUMENTS {
        let text = "x".repeat(DOCUMENT_BYTES);
        let value = json!({"rank": (number * 5) % DOCUMENTS, "odd": number % 2 == 1, "text": text});
        env.put("Scan", &format!("s-{number:02}"), value).unwrap();
    }
}

fn index(env: &Env, spec: &IndexSpec) {
    env.create_index("Scan", "by", spec).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while env.indexes("Scan").unwrap()[0].state != IndexState::Ready {
        assert!(Instant::now() < deadline, "the index is not built in time");
        std::thread::yield_now();
    }
}

/// The keys on each page of a query.
fn pages(query: &Query) -> Vec<Vec<String>> {
    let (mut pages, mut next) = (Vec::new(), None);
    loop {
        let query = match next {
            None => query.clone(),
            Some(next) => query.clone().after(next),
        };
        let page = query.page().unwrap();
        pages.push(page.rows.into_iter().map(|document| document.key).collect());
        assert!(pages.len() <= 2 * DOCUMENTS, "it does not end");
        next = page.next;
        if next.is_none() {
            return pages;
        }
    }
}

/// The pages of all queries that end by size, with whatever index there is.
fn check(env: &Env) {
    let all = env.query("Scan");
    for query in [
        all.clone(),
        all.clone().sort("rank"),
        all.clone().sort_descending("rank"),
        all.clone().filter(json!({"rank": {"$gte": 3}})),
        all.filter(json!({"odd": true})).sort("rank"),
    ] {
        let whole: Vec<_> = query.rows().unwrap().into_iter().map(|row| row.key).collect();
        for (bytes, limit, on_a_page) in
            [(2 * DOCUMENT_BYTES + 1_000, 100, 2), (5 * DOCUMENT_BYTES, 3, 3), (1, 100, 1)]
        {
            let pages = pages(&query.clone().limit(limit).bytes_max(bytes));
            let (last, before) = pages.split_last().unwrap();
            assert!(before.iter().all(|page| page.len() == on_a_page), "{bytes}: {pages:?}");
            assert!(last.len() <= on_a_page, "{bytes}: {pages:?}");
            assert_eq!(pages.concat(), whole, "{bytes}");
        }
    }
}

#[test]
fn d6_a_page_ends_by_the_size_of_its_documents_and_the_next_one_goes_on() {
    on_each(|env| {
        fill(env);
        check(env);
        index(env, &IndexSpec::new().field("rank"));
        check(env);
    });
}

#[test]
fn d6_a_document_larger_than_the_page_is_a_page_by_itself() {
    on_each(|env| {
        for (key, bytes) in [("a", 10), ("b", 5_000), ("c", 10), ("d", 10)] {
            env.put("Scan", key, json!({"n": bytes, "text": "x".repeat(bytes)})).unwrap();
        }
        for query in [env.query("Scan"), env.query("Scan").sort("key")] {
            assert_eq!(pages(&query.bytes_max(1_000)), [vec!["a"], vec!["b"], vec!["c", "d"]]);
        }
    });
}

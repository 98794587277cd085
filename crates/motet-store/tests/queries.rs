//! Queries: the same answer whichever way it is found, and no more read than needed.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod stores;

use std::time::{Duration, Instant};

use motet_store::filter::Filter;
use motet_store::{Env, Error, IndexSpec, IndexState, Query, Write};
use serde_json::{Value, json};
use stores::on_each;

const DOCUMENTS: usize = 240;

fn fill(env: &Env) {
    let writes = (0..DOCUMENTS).map(|number| {
        let city = ["Bern", "Paris", "Rome"][number % 3];
        let value = json!({
            "n": number % 50,
            "total": (number * 37) % DOCUMENTS,
            "city": city,
            "tags": (0..number % 4).map(|tag| format!("t{tag}")).collect::<Vec<_>>(),
            "maybe": if number % 5 == 0 { Value::Null } else { json!(number) },
        });
        Write::put("Order", format!("o-{number:03}"), value)
    });
    env.write_all(writes.collect()).unwrap();
}

fn ready(env: &Env, name: &str, spec: &IndexSpec) {
    env.create_index("Order", name, spec).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let status = env.indexes("Order").unwrap().into_iter().find(|index| index.name == name);
        match status.unwrap().state {
            IndexState::Ready => return,
            state => assert!(Instant::now() < deadline, "{name} is {state:?}"),
        }
        std::thread::yield_now();
    }
}

fn keys(query: &Query) -> Vec<String> {
    query.rows().unwrap().into_iter().map(|document| document.key).collect()
}

/// All pages of a query, each of `limit` documents.
fn pages(query: &Query, limit: usize) -> Vec<String> {
    let (mut found, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let mut query = query.clone().limit(limit);
        if let Some(after) = after {
            query = query.after(after);
        }
        let page = query.page().unwrap();
        assert!(page.rows.len() <= limit);
        assert!(found.len() < 10 * DOCUMENTS, "it does not end: {:?}", query.explain());
        found.extend(page.rows.into_iter().map(|document| document.key));
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

#[test]
fn d6_filter_sort_limit_projection_and_count_without_any_index() {
    on_each(|env| {
        fill(env);
        let query = env.query("Order").filter(json!({"city": "Bern", "n": {"$lt": 3}}));
        let all = query.clone().sort("total").rows().unwrap();
        assert!(all.is_sorted_by_key(|order| order.value["total"].as_i64()));
        assert_eq!(query.count().unwrap(), all.len());
        let greatest = keys(&query.clone().sort_descending("total").limit(3));
        let expected: Vec<_> = all.iter().rev().take(3).map(|order| order.key.clone()).collect();
        assert_eq!(greatest, expected);
        let projected = query.project(["n"]).limit(1).rows().unwrap();
        assert_eq!(projected[0].value.as_object().unwrap().len(), 1);
        assert!(keys(&env.query("Absent")).is_empty());
    });
}

/// The queries that are asked with and without each of the indexes.
fn queries(env: &Env) -> Vec<Query> {
    let filters = [
        json!({}),
        json!({"city": "Bern"}),
        json!({"city": {"$in": ["Rome", "Bern"]}}),
        json!({"city": "Paris", "total": {"$gte": 40, "$lt": 120}}),
        json!({"n": 7}),
        json!({"tags": "t1"}),
        json!({"tags": {"$gt": "t0", "$lt": "t2"}}),
        json!({"tags": {"$in": ["t0", "t2"]}}),
        json!({"maybe": null}),
        json!({"maybe": {"$gt": 230}}),
        json!({"city": "Bern", "n": {"$in": [1, 2, 3]}, "total": {"$ne": 5}}),
        json!({"$or": [{"n": 1}, {"city": "Rome"}]}),
        json!({"n": {"$gt": 5, "$lt": 3}}),
    ];
    let sorts: [&[(&str, bool)]; 8] = [
        &[],
        &[("total", false)],
        &[("total", true)],
        &[("n", false), ("total", true)],
        &[("city", true), ("n", false)],
        &[("tags", false)],
        &[("maybe", true)],
        &[("city", false), ("total", false)],
    ];
    let mut queries = Vec::new();
    for filter in &filters {
        for sort in sorts {
            let query = env.query("Order").filter(filter.clone());
            queries.push(sort.iter().fold(query, |query, (path, descending)| {
                if *descending { query.sort_descending(*path) } else { query.sort(*path) }
            }));
        }
    }
    queries
}

#[test]
fn d6_every_index_gives_the_same_documents_in_the_same_order_on_one_page_or_many() {
    on_each(|env| {
        fill(env);
        let without: Vec<_> = queries(env).iter().map(keys).collect();
        ready(env, "city_total", &IndexSpec::new().field("city").field("total"));
        ready(env, "city_total_down", &IndexSpec::new().field("city").descending("total"));
        ready(env, "n_total_down", &IndexSpec::new().field("n").descending("total"));
        ready(env, "tags", &IndexSpec::new().field("tags"));
        ready(env, "maybe", &IndexSpec::new().field("maybe"));
        ready(env, "total", &IndexSpec::new().descending("total"));
        for (number, (query, expected)) in queries(env).iter().zip(&without).enumerate() {
            let (mut found, mut expected) = (keys(query), expected.clone());
            let paged = pages(query, 23);
            if number % 8 == 0 {
                // Without a sort the order is the index's.
                assert_eq!(paged, found, "query {number}");
                found.sort_unstable();
                expected.sort_unstable();
            } else {
                assert_eq!(paged, expected, "query {number}: {:?}", query.explain());
            }
            assert_eq!(found, expected, "query {number}: {:?}", query.explain());
            assert_eq!(query.count().unwrap(), expected.len(), "query {number}");
        }
    });
}

#[test]
fn d6_an_index_that_covers_the_query_reads_hardly_more_than_it_gives() {
    on_each(|env| {
        fill(env);
        ready(env, "city_total", &IndexSpec::new().field("city").field("total"));
        let covered = [
            env.query("Order").filter(json!({"city": "Bern"})).sort("total").limit(5),
            env.query("Order").filter(json!({"city": "Bern"})).sort_descending("total").limit(5),
            env.query("Order")
                .filter(json!({"city": "Rome", "total": {"$gt": 100}}))
                .sort("total")
                .limit(20),
            env.query("Order")
                .filter(json!({"city": {"$in": ["Rome", "Bern"]}}))
                .sort("total")
                .limit(9),
            env.query("Order").sort("city").sort("total").limit(10),
            env.query("Order").filter(json!({"city": "Bern", "total": 37})),
        ];
        for query in covered {
            let explain = query.explain().unwrap();
            assert_eq!(explain.index.as_deref(), Some("city_total"), "{explain:?}");
            assert!(!explain.sorts, "{explain:?}");
            assert!(explain.documents_examined * 10 <= explain.returned * 11 + 100, "{explain:?}");
        }
    });
}

#[test]
fn d6_a_cursor_of_another_query_or_of_a_dropped_index_is_refused() {
    on_each(|env| {
        fill(env);
        ready(env, "n", &IndexSpec::new().field("n"));
        let query = env.query("Order").filter(json!({"n": {"$gt": 3}})).limit(2);
        let next = query.page().unwrap().next.unwrap();
        assert_eq!(query.clone().after(&next).rows().unwrap().len(), 2);
        let sorted = query.clone().sort("total").after(&next).rows();
        assert!(matches!(sorted, Err(Error::CursorInvalid { .. })), "{sorted:?}");
        assert!(matches!(query.clone().after("x").rows(), Err(Error::CursorInvalid { .. })));
        env.drop_index("Order", "n").unwrap();
        assert!(matches!(query.after(&next).rows(), Err(Error::CursorInvalid { .. })));
    });
}

#[test]
fn d6_what_is_no_query_is_refused_with_its_place() {
    on_each(|env| {
        let unknown = env.query("Order").filter(json!({"a": {"$where": "1"}})).rows();
        assert!(matches!(unknown, Err(Error::FilterInvalid { .. })), "{unknown:?}");
        assert!(matches!(env.query("Order").sort("a..b").rows(), Err(Error::PathInvalid { .. })));
        assert!(matches!(env.query("~x").rows(), Err(Error::NameInvalid { .. })));
        assert!(matches!(env.query("O").project([""]).rows(), Err(Error::PathInvalid { .. })));
    });
}

#[test]
fn d5_writers_keep_an_index_while_it_is_built_and_after() {
    on_each(|env| {
        fill(env);
        env.create_index("Order", "n", &IndexSpec::new().field("n")).unwrap();
        env.write_all(vec![
            Write::put("Order", "o-000", json!({"n": 999})),
            Write::remove("Order", "o-239"),
            Write::put("Order", "new", json!({"n": 999})),
        ])
        .unwrap();
        ready(env, "n", &IndexSpec::new().field("n"));
        env.put("Order", "later", json!({"n": 999})).unwrap();
        env.put("Order", "new", json!({"n": 998})).unwrap();
        let query = env.query("Order").filter(json!({"n": 999}));
        assert_eq!(query.explain().unwrap().index.as_deref(), Some("n"));
        assert_eq!(keys(&query), ["later", "o-000"]);
        assert_index_equals_a_recomputation(env);
    });
}

/// An index gives for every value what looking at all documents does.
fn assert_index_equals_a_recomputation(env: &Env) {
    let all = env.query("Order").rows().unwrap();
    for n in (0..50).chain([998, 999]) {
        let filter = json!({"n": n});
        let matching = Filter::parse(&filter).unwrap();
        let expected: Vec<_> = all
            .iter()
            .filter(|document| matching.matches(&document.value))
            .map(|document| document.key.clone())
            .collect();
        assert_eq!(keys(&env.query("Order").filter(filter)), expected);
    }
}

#[test]
fn d5_a_unique_index_refuses_a_second_document_with_the_values_and_ignores_absent_ones() {
    on_each(|env| {
        let spec = IndexSpec::new().field("mail").unique();
        env.put("Order", "x", json!({})).unwrap();
        ready(env, "mail", &spec);
        env.put("Order", "a", json!({"mail": "a@x"})).unwrap();
        env.put("Order", "y", json!({"mail": null})).unwrap();
        let taken = env.put("Order", "b", json!({"mail": "a@x"}));
        assert!(matches!(&taken, Err(Error::UniqueViolation { other, .. }) if other == "a"));
        env.put("Order", "a", json!({"mail": "a@x", "again": 1})).unwrap();
        env.write_all(vec![
            Write::remove("Order", "a"),
            Write::put("Order", "b", json!({"mail": "a@x"})),
        ])
        .unwrap();
        let twice = vec![
            Write::put("Order", "c", json!({"mail": "c@x"})),
            Write::put("Order", "d", json!({"mail": "c@x"})),
        ];
        assert!(matches!(env.write_all(twice), Err(Error::UniqueViolation { .. })));
        assert_eq!(env.get("Order", "c").unwrap(), None);
    });
}

#[test]
fn d5_an_index_that_documents_do_not_allow_fails_and_hinders_nobody() {
    on_each(|env| {
        env.put("Order", "a", json!({"mail": "same"})).unwrap();
        env.put("Order", "b", json!({"mail": "same"})).unwrap();
        env.create_index("Order", "mail", &IndexSpec::new().field("mail").unique()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match &env.indexes("Order").unwrap()[0].state {
                IndexState::Failed { reason } => {
                    assert!(reason.contains("unique"), "{reason}");
                    break;
                }
                state => assert!(Instant::now() < deadline, "{state:?}"),
            }
            std::thread::yield_now();
        }
        env.put("Order", "c", json!({"mail": "same"})).unwrap();
        env.drop_index("Order", "mail").unwrap();
        assert!(matches!(env.drop_index("Order", "mail"), Err(Error::IndexNotFound { .. })));
    });
}

#[test]
fn d5_a_partial_index_is_used_only_where_its_filter_is_part_of_the_query() {
    on_each(|env| {
        fill(env);
        ready(env, "bern", &IndexSpec::new().field("total").matching(json!({"city": "Bern"})));
        let within = env.query("Order").filter(json!({"city": "Bern", "total": {"$lt": 50}}));
        let beyond = env.query("Order").filter(json!({"total": {"$lt": 50}}));
        assert_eq!(within.explain().unwrap().index.as_deref(), Some("bern"));
        assert_eq!(beyond.explain().unwrap().index, None);
        let expected =
            beyond.rows().unwrap().into_iter().filter(|order| order.value["city"] == "Bern");
        let mut expected: Vec<_> = expected.map(|order| order.key).collect();
        expected.sort_unstable();
        let mut found = keys(&within);
        found.sort_unstable();
        assert_eq!(found, expected);
    });
}

#[test]
fn d5_descriptions_that_cannot_be_or_that_contradict_an_index_are_refused() {
    on_each(|env| {
        let create = |spec: IndexSpec| env.create_index("Order", "i", &spec);
        assert!(matches!(create(IndexSpec::new()), Err(Error::IndexInvalid { .. })));
        let many = (0..7).fold(IndexSpec::new(), |spec, number| spec.field(format!("f{number}")));
        assert!(matches!(create(many), Err(Error::IndexInvalid { .. })));
        assert!(matches!(create(IndexSpec::new().field("")), Err(Error::PathInvalid { .. })));
        let filter = IndexSpec::new().field("a").matching(json!({"$x": 1}));
        assert!(matches!(create(filter), Err(Error::FilterInvalid { .. })));
        create(IndexSpec::new().field("a")).unwrap();
        create(IndexSpec::new().field("a")).unwrap();
        assert!(matches!(create(IndexSpec::new().field("b")), Err(Error::IndexExists { .. })));
    });
}

//! Ten thousand queries that an index covers: they give what a scan gives and read hardly more.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use motet_store::{Env, IndexSpec, IndexState, Query, Store, Write};
use proptest::prelude::*;
use serde_json::{Value, json};

const DOCUMENTS: u64 = 300;

/// The indexes: their fields, each with whether it descends.
const INDEXES: [&[(&str, bool)]; 5] = [
    &[("a", false), ("b", false), ("c", false)],
    &[("b", true), ("c", false)],
    &[("d", false)],
    &[("a", false), ("d", true)],
    &[("e.f", true), ("a", true)],
];

/// A query that one of the indexes covers: its first fields are fixed, the next may have a range,
/// and the order is that of the fields that are not fixed, or its reverse.
#[derive(Clone, Debug)]
struct Covered {
    index: usize,
    fixed: usize,
    values: Vec<i64>,
    range: Option<(i64, i64)>,
    sorted: bool,
    reversed: bool,
    limit: Option<usize>,
}

impl Covered {
    fn has_order(&self) -> bool {
        self.sorted && self.fixed < INDEXES[self.index].len()
    }

    fn query(&self, env: &Env) -> Query {
        let fields = INDEXES[self.index];
        let (fixed, rest) = fields.split_at(self.fixed.min(fields.len()));
        let mut filter = serde_json::Map::new();
        for ((field, _), value) in fixed.iter().zip(&self.values) {
            filter.insert((*field).into(), json!(value));
        }
        if let (Some((field, _)), Some((from, to))) = (rest.first(), self.range) {
            filter.insert((*field).into(), json!({"$gte": from, "$lt": to}));
        }
        let mut query = env.query("Order").filter(Value::Object(filter));
        for (field, descends) in rest.iter().filter(|_| self.sorted) {
            query = match descends ^ self.reversed {
                false => query.sort(*field),
                true => query.sort_descending(*field),
            };
        }
        // Without an order any documents would do.
        match self.limit.filter(|_| self.has_order()) {
            Some(limit) => query.limit(limit),
            None => query,
        }
    }
}

fn covered() -> impl Strategy<Value = Covered> {
    (
        (0..INDEXES.len(), 0..4_usize, prop::collection::vec(-1..6_i64, 3)),
        (prop::option::of((-1..5_i64, 0..7_i64)), any::<bool>(), any::<bool>()),
        prop::option::of(1..40_usize),
    )
        .prop_map(|((index, fixed, values), (range, sorted, reversed), limit)| Covered {
            index,
            fixed,
            values,
            range,
            sorted,
            reversed,
            limit,
        })
}

fn filled() -> Env {
    let env = Store::in_memory().env("default").unwrap();
    let writes = (0..DOCUMENTS).map(|number| {
        // Some have no value in a field, some null.
        let field = |by: u64, of: u64| match (number * by) % 23 {
            0 => Value::Null,
            _ => json!((number * by / 3) % of),
        };
        let mut value =
            json!({"a": field(7, 3), "b": field(11, 4), "c": field(13, 5), "d": number % 60});
        if number % 5 > 0 {
            value["e"] = json!({"f": field(17, 6)});
        }
        Write::put("Order", format!("o-{:03}", (number * 101) % DOCUMENTS), value)
    });
    env.write_all(writes.collect()).unwrap();
    env
}

/// The same documents with the indexes and without any.
fn environments() -> &'static (Env, Env) {
    static BOTH: OnceLock<(Env, Env)> = OnceLock::new();
    BOTH.get_or_init(|| {
        let indexed = filled();
        for (number, fields) in INDEXES.iter().enumerate() {
            let spec = fields.iter().fold(IndexSpec::new(), |spec, (field, descends)| {
                if *descends { spec.descending(*field) } else { spec.field(*field) }
            });
            indexed.create_index("Order", &format!("i{number}"), &spec).unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while indexed.indexes("Order").unwrap().iter().any(|one| one.state != IndexState::Ready) {
            assert!(Instant::now() < deadline, "{:?}", indexed.indexes("Order"));
            std::thread::yield_now();
        }
        (indexed, filled())
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(10_000)
    })]

    #[test]
    fn d6_a_query_that_an_index_covers_reads_a_tenth_more_than_it_gives_and_ten_documents_at_most(
        covered in covered(),
    ) {
        let (indexed, bare) = environments();
        let keys = |query: &Query| -> Vec<String> {
            let rows = query.rows().unwrap().into_iter();
            let mut keys: Vec<_> = rows.map(|document| document.key).collect();
            if !covered.has_order() {
                // They come in the order of whatever they were found in.
                keys.sort_unstable();
            }
            keys
        };
        let query = covered.query(indexed);
        prop_assert_eq!(keys(&query), keys(&covered.query(bare)));
        let explain = query.explain().unwrap();
        prop_assert!(
            explain.documents_examined * 10 <= explain.returned * 11 + 100,
            "{:?}",
            explain
        );
    }
}

//! What a type asks of its documents: schemas, references, times to live.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod stores;

use std::time::{Duration, Instant};

use motet_store::{Clock, Env, Error, OnDelete, Op, TypeSpec, Write};
use serde_json::{Value, json};
use stores::on_each;

/// Runs something until the index of a reference that was defined just now is ready.
fn when_built<T>(mut run: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match run() {
            Err(Error::ReferencesBuilding { .. }) if Instant::now() < deadline => {
                std::thread::yield_now();
            }
            outcome => return outcome,
        }
    }
}

fn orders_of_customers(env: &Env, on_delete: OnDelete) {
    env.define("Order", &TypeSpec::new().reference("customer", "Customer", on_delete)).unwrap();
    env.put("Customer", "c-1", json!({})).unwrap();
    env.put("Customer", "c-2", json!({})).unwrap();
    env.put("Order", "o-1", json!({"customer": "c-1"})).unwrap();
    env.put("Order", "o-2", json!({"customer": ["c-1", "c-2"]})).unwrap();
    env.put("Order", "o-3", json!({"customer": null})).unwrap();
}

fn value(env: &Env, type_name: &str, key: &str) -> Option<Value> {
    env.get(type_name, key).unwrap().map(|document| document.value)
}

#[test]
fn d1_a_document_that_does_not_fit_the_schema_is_refused_and_says_where() {
    on_each(|env| {
        let schema = json!({
            "type": "object",
            "properties": {"total": {"type": "integer", "minimum": 0}},
            "required": ["total"],
        });
        env.define("Order", &TypeSpec::new().schema(schema)).unwrap();
        env.put("Order", "o-1", json!({"total": 1})).unwrap();
        let refused = env.put("Order", "o-1", json!({"total": -1}));
        assert!(
            matches!(&refused, Err(Error::SchemaViolation { why, .. }) if why.contains("/total"))
        );
        assert!(matches!(env.put("Order", "o-2", json!({})), Err(Error::SchemaViolation { .. })));
        assert_eq!(value(env, "Order", "o-1"), Some(json!({"total": 1})));
        assert!(env.definition("Order").unwrap() != TypeSpec::new());
    });
}

#[test]
fn d1_a_recorded_schema_lists_what_does_not_fit_until_it_does() {
    on_each(|env| {
        let spec = TypeSpec::new().recorded_schema(json!({"required": ["total"]}));
        env.define("Order", &spec).unwrap();
        env.put("Order", "o-1", json!({})).unwrap();
        env.put("Order", "o-2", json!({})).unwrap();
        let keys = |env: &Env| {
            let violations = env.violations("Order").unwrap();
            violations.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(keys(env), ["o-1", "o-2"]);
        env.put("Order", "o-1", json!({"total": 1})).unwrap();
        env.remove("Order", "o-2").unwrap();
        assert!(keys(env).is_empty());
        assert_eq!(env.log().head().unwrap().clock, Clock::new(4), "records are in no log");
        assert_eq!(env.types().unwrap(), ["Order"]);
    });
}

#[test]
fn d1_what_is_no_schema_or_needs_other_files_or_lookaround_is_refused() {
    on_each(|env| {
        for schema in [
            json!({"type": "nonsense"}),
            json!({"$ref": "https://example.com/schema.json"}),
            json!({"pattern": "(?=x)y"}),
        ] {
            let refused = env.define("Order", &TypeSpec::new().schema(schema.clone()));
            assert!(matches!(refused, Err(Error::SchemaInvalid { .. })), "{schema}");
        }
    });
}

#[test]
fn d7_a_reference_must_lead_somewhere_when_the_transaction_ends() {
    on_each(|env| {
        orders_of_customers(env, OnDelete::NoAction);
        let dangling = env.put("Order", "o-4", json!({"customer": "absent"}));
        assert!(
            matches!(dangling, Err(Error::ReferenceMissing(broken)) if broken.target == "absent")
        );
        env.write_all(vec![
            Write::put("Order", "o-4", json!({"customer": "later"})),
            Write::put("Customer", "later", json!({})),
        ])
        .unwrap();
        env.remove("Customer", "later").unwrap();
        assert_eq!(value(env, "Order", "o-4"), Some(json!({"customer": "later"})), "no action");
    });
}

#[test]
fn d7_restrict_refuses_a_removal_unless_nothing_refers_when_the_transaction_ends() {
    on_each(|env| {
        orders_of_customers(env, OnDelete::Restrict);
        let refused = when_built(|| env.remove("Customer", "c-1"));
        assert!(matches!(refused, Err(Error::ReferenceRestricted(_))), "{refused:?}");
        assert!(value(env, "Customer", "c-1").is_some());
        env.write_all(vec![
            Write::remove("Customer", "c-1"),
            Write::remove("Order", "o-1"),
            Write::put("Order", "o-2", json!({"customer": ["c-2"]})),
        ])
        .unwrap();
        env.write_all(vec![
            Write::remove("Customer", "c-2"),
            Write::create("Customer", "c-2", json!(1)),
        ])
        .unwrap();
    });
}

#[test]
fn d7_cascade_removes_whoever_refers_and_ends_in_a_circle() {
    on_each(|env| {
        let spec = TypeSpec::new().reference("next", "Node", OnDelete::Cascade);
        env.define("Node", &spec).unwrap();
        let next = |key: &str| json!({"next": key});
        env.write_all(vec![
            Write::put("Node", "a", next("c")),
            Write::put("Node", "b", next("a")),
            Write::put("Node", "c", next("b")),
            Write::put("Node", "self", next("self")),
            Write::put("Node", "@/odd key\u{0}", next("self")),
        ])
        .unwrap();
        let before = env.log().head().unwrap().clock;
        when_built(|| env.remove("Node", "a")).unwrap();
        let removed = env.log().read(before, 10).unwrap();
        assert_eq!(removed.len(), 3);
        assert!(
            removed
                .iter()
                .all(|change| change.op == Op::Remove && change.transaction == removed[0].clock)
        );
        env.remove("Node", "self").unwrap();
        assert!(env.query("Node").rows().unwrap().is_empty());
    });
}

#[test]
fn d7_set_null_takes_the_reference_out() {
    on_each(|env| {
        orders_of_customers(env, OnDelete::SetNull);
        when_built(|| env.remove("Customer", "c-1")).unwrap();
        assert_eq!(value(env, "Order", "o-1"), Some(json!({"customer": null})));
        assert_eq!(value(env, "Order", "o-2"), Some(json!({"customer": ["c-2"]})));
    });
}

#[test]
fn d8_a_type_gives_new_documents_their_time_to_live() {
    on_each(|env| {
        env.define("Session", &TypeSpec::new().expires_in(Duration::from_secs(60))).unwrap();
        env.put("Session", "s-1", json!(1)).unwrap();
        env.write(Write::put("Session", "s-2", json!(1)).never_expires()).unwrap();
        assert!(env.get("Session", "s-1").unwrap().unwrap().expires_ms.is_some());
        assert_eq!(env.get("Session", "s-2").unwrap().unwrap().expires_ms, None);
    });
}

#[test]
fn d8_the_end_of_a_document_takes_along_what_refers_to_it() {
    on_each(|env| {
        env.define("Item", &TypeSpec::new().reference("of", "Cart", OnDelete::Cascade)).unwrap();
        env.write(Write::put("Cart", "c", json!(1)).expires_in(Duration::from_millis(300)))
            .unwrap();
        env.put("Item", "i", json!({"of": "c"})).unwrap();
        let mut tail = env.log().tail(Clock::new(2));
        let mut ended = Vec::new();
        while ended.len() < 2 {
            let change = tail.next_within(Duration::from_secs(20)).unwrap().unwrap();
            ended.push((change.op, change.key));
        }
        assert_eq!(ended, [(Op::Expire, "c".to_owned()), (Op::Remove, "i".to_owned())]);
    });
}

#[test]
fn d8_a_document_whose_end_is_restricted_counts_as_absent_and_hinders_no_other() {
    on_each(|env| {
        let short = Duration::from_millis(100);
        env.define("Item", &TypeSpec::new().reference("of", "Cart", OnDelete::Restrict)).unwrap();
        env.write(Write::put("Cart", "held", json!(1)).expires_in(short)).unwrap();
        env.put("Item", "i", json!({"of": "held"})).unwrap();
        env.write(Write::put("Cart", "free", json!(1)).expires_in(short)).unwrap();
        let mut tail = env.log().tail(Clock::new(3));
        let change = tail.next_within(Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!((change.op, change.key.as_str()), (Op::Expire, "free"));
        assert_eq!(env.get("Cart", "held").unwrap(), None);
        assert!(env.maintenance_error().is_none());
        let again = env.put("Item", "j", json!({"of": "held"}));
        assert!(matches!(again, Err(Error::ReferenceMissing(_))));
    });
}

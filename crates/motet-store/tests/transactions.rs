//! Transactions: what they read holds when they commit.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod stores;

use std::thread;

use motet_store::{Env, Error, KeyRange, Patch, Transaction};
use serde_json::{Value, json};
use stores::on_each;

/// Runs a transaction in whose first try something else happens between its reads and its commit.
fn with_interference(
    env: &Env,
    mut transaction: impl FnMut(&mut Transaction) -> Result<(), Error>,
    interfere: impl Fn(),
) -> u32 {
    let mut tries = 0;
    env.transact(|tx| {
        tries += 1;
        transaction(tx)?;
        if tries == 1 {
            interfere();
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    tries
}

#[test]
fn d3_concurrent_increments_are_all_counted() {
    on_each(|env| {
        env.put("Counter", "c", json!(0)).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        env.transact(|tx| {
                            let count = tx.get("Counter", "c")?.unwrap().as_i64().unwrap();
                            tx.put("Counter", "c", json!(count + 1));
                            Ok::<_, Error>(())
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(env.get("Counter", "c").unwrap().unwrap().value, json!(100));
    });
}

#[test]
fn d3_a_transaction_reads_its_own_writes_and_one_view_of_everything_else() {
    on_each(|env| {
        env.put("Order", "a", json!(1)).unwrap();
        env.put("Order", "b", json!(1)).unwrap();
        let tries = with_interference(
            env,
            |tx| {
                assert_eq!(tx.get("Order", "a")?, Some(json!(1)));
                tx.put("Order", "c", json!(3));
                tx.patch("Order", "c", Patch::parse(&json!({"merge": {"x": 1}}))?)?;
                tx.remove("Order", "b")?;
                assert_eq!(tx.get("Order", "c")?, Some(json!({"x": 1})));
                assert_eq!(tx.get("Order", "b")?, None);
                assert!(matches!(tx.remove("Order", "b"), Err(Error::NotFound { .. })));
                let range = tx.range("Order", &KeyRange::all().limit(2))?;
                let keys: Vec<_> = range.iter().map(|document| document.key.as_str()).collect();
                assert_eq!(keys, ["a", "c"]);
                Ok(())
            },
            || (),
        );
        assert_eq!(tries, 1);
        assert_eq!(env.range("Order", &KeyRange::all()).unwrap().len(), 2);
    });
}

#[test]
fn d3_write_skew_is_a_conflict() {
    on_each(|env| {
        env.put("Doctor", "a", json!("on call")).unwrap();
        env.put("Doctor", "b", json!("on call")).unwrap();
        let mut on_call = 0;
        let tries = with_interference(
            env,
            |tx| {
                on_call = 0;
                for key in ["a", "b"] {
                    on_call += usize::from(tx.get("Doctor", key)? == Some(json!("on call")));
                }
                if on_call == 2 {
                    tx.put("Doctor", "a", json!("off"));
                }
                Ok(())
            },
            || {
                env.put("Doctor", "b", json!("off")).unwrap();
            },
        );
        assert_eq!((tries, on_call), (2, 1), "the second try sees one left, and leaves it");
        assert_eq!(env.get("Doctor", "a").unwrap().unwrap().value, json!("on call"));
    });
}

#[test]
fn d3_a_document_that_appears_in_a_range_that_was_read_is_a_conflict() {
    on_each(|env| {
        env.put("Seat", "row-1-a", json!("taken")).unwrap();
        let count = |tx: &mut Transaction| {
            let taken = tx.range("Seat", &KeyRange::prefix("row-1-"))?.len();
            tx.put("Summary", "row-1", json!(taken));
            Ok(())
        };
        let appears = with_interference(env, count, || {
            env.put("Seat", "row-1-b", json!("taken")).unwrap();
        });
        let elsewhere = with_interference(env, count, || {
            env.put("Seat", "row-2-a", json!("taken")).unwrap();
        });
        let changes = with_interference(env, count, || {
            env.put("Seat", "row-1-b", json!("free")).unwrap();
        });
        let goes = with_interference(env, count, || {
            env.remove("Seat", "row-1-b").unwrap();
        });
        assert_eq!([appears, elsewhere, changes, goes], [2, 1, 2, 2]);
        assert_eq!(env.get("Summary", "row-1").unwrap().unwrap().value, json!(1));
    });
}

#[test]
fn d3_behind_the_limit_of_a_range_nothing_was_read() {
    on_each(|env| {
        for key in ["a", "b", "c"] {
            env.put("Task", key, json!(1)).unwrap();
        }
        let first = |tx: &mut Transaction| {
            let first = tx.range("Task", &KeyRange::all().limit(1))?.remove(0);
            tx.put("Picked", &first.key, Value::Null);
            Ok(())
        };
        let behind = with_interference(env, first, || {
            env.put("Task", "b", json!(2)).unwrap();
        });
        let before = with_interference(env, first, || {
            env.put("Task", "Z", json!(2)).unwrap();
        });
        assert_eq!([behind, before], [1, 2]);
    });
}

#[test]
fn d3_what_was_absent_must_still_be_absent() {
    on_each(|env| {
        let create_if_absent = |tx: &mut Transaction| {
            if tx.get("User", "ann")?.is_none() {
                tx.put("User", "ann", json!("first"));
            }
            Ok(())
        };
        let tries = with_interference(env, create_if_absent, || {
            env.put("User", "ann", json!("other")).unwrap();
        });
        assert_eq!(tries, 2, "the type did not exist either when it was read");
        assert_eq!(env.get("User", "ann").unwrap().unwrap().value, json!("other"));
    });
}

#[test]
fn d3_an_error_of_the_function_writes_nothing() {
    on_each(|env| {
        let failed: Result<(), Error> = env.transact(|tx| {
            tx.put("Order", "o-1", json!(1));
            tx.remove("Order", "absent")
        });
        assert!(matches!(failed, Err(Error::NotFound { .. })));
        assert_eq!(env.get("Order", "o-1").unwrap(), None);
    });
}

#[test]
fn d3_a_transaction_that_never_wins_ends_with_a_conflict() {
    on_each(|env| {
        env.put("Counter", "c", json!(0)).unwrap();
        let lost: Result<(), Error> = env.transact(|tx| {
            let count = tx.get("Counter", "c")?.unwrap().as_i64().unwrap();
            env.put("Counter", "c", json!(count + 1))?;
            tx.put("Counter", "c", json!(-1));
            Ok(())
        });
        assert!(matches!(&lost, Err(error @ Error::Conflict { .. }) if error.retryable()));
        assert_eq!(env.get("Counter", "c").unwrap().unwrap().value, json!(64));
    });
}

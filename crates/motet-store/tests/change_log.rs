//! The change log: one order, without gaps, for as long as it is kept.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod logs;
mod stores;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use logs::{clocks_after, write_changes};
use motet_store::engine::lmdb::Options;
use motet_store::{Clock, Env, Error, Op, Retention, Store, StoreOptions, Write};
use serde_json::json;
use stores::{on_disk, on_each};

#[test]
fn d4_every_change_is_in_the_log_with_what_it_did() {
    on_each(|env| {
        env.put("Order", "o-1", json!(1)).unwrap();
        env.write_all(vec![Write::put("Order", "o-1", json!(2)), Write::remove("Order", "o-1")])
            .unwrap();
        let changes = env.log().read(Clock::ZERO, 10).unwrap();
        let clocks: Vec<_> = changes.iter().map(|change| change.clock.number()).collect();
        assert_eq!(clocks, [1, 2, 3]);
        let ops: Vec<_> = changes.iter().map(|change| change.op).collect();
        assert_eq!(ops, [Op::Put, Op::Put, Op::Remove]);
        let previous: Vec<_> = changes.iter().map(|change| change.previous).collect();
        assert_eq!(previous, [None, Some(Clock::new(1)), Some(Clock::new(2))]);
        let transactions: Vec<_> =
            changes.iter().map(|change| change.transaction.number()).collect();
        assert_eq!(transactions, [1, 2, 2]);
        assert_eq!(changes[1].value, Some(json!(2)));
        assert_eq!(changes[2].value, None);
        assert!(changes[0].time < changes[1].time);
        assert_eq!((changes[0].type_name.as_str(), changes[0].key.as_str()), ("Order", "o-1"));
    });
}

#[test]
fn d4_a_reader_pages_through_the_log_and_an_empty_rest_is_no_error() {
    on_each(|env| {
        for number in 0..5 {
            env.put("Order", &format!("o-{number}"), json!(number)).unwrap();
        }
        let page = env.log().read(Clock::new(1), 2).unwrap();
        assert_eq!(page.iter().map(|change| change.clock.number()).collect::<Vec<_>>(), [2, 3]);
        assert!(env.log().read(Clock::new(5), 10).unwrap().is_empty());
        let mut seen = 0;
        env.log()
            .visit(Clock::ZERO, |_| {
                seen += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(seen, 5);
    });
}

#[test]
fn d4_a_reader_ahead_of_the_log_is_told_so_and_misses_nothing() {
    on_each(|env| {
        env.put("Order", "o-1", json!(1)).unwrap();
        let is_told = |found: Result<_, Error>, position: Clock| {
            let head = Clock::new(1);
            matches!(found, Err(Error::LogPositionAhead { asked, head: end })
                if asked == position && end == head)
        };
        for position in [2, 99, u64::MAX].map(Clock::new) {
            assert!(is_told(env.log().read(position, 10).map(|_| ()), position), "{position}");
            let mut tail = env.log().tail(position);
            assert!(is_told(tail.next_within(Duration::ZERO).map(|_| ()), position), "{position}");
        }
        let mut tail = env.log().tail(Clock::new(1));
        assert_eq!(tail.next_within(Duration::ZERO).unwrap(), None, "the end is not beyond it");
    });
}

#[test]
fn d4_a_tail_wakes_at_a_commit_and_gives_up_in_time() {
    on_each(|env| {
        let mut tail = env.log().tail(Clock::ZERO);
        assert_eq!(tail.next_within(Duration::from_millis(20)).unwrap(), None);
        let writer = env.clone();
        let started = Instant::now();
        let writing = thread::spawn(move || writer.put("Order", "o-1", json!(1)).unwrap());
        let change = tail.next_within(Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!(change.clock, writing.join().unwrap());
        assert!(started.elapsed() < Duration::from_secs(5), "it was woken, not timed out");
        assert_eq!(tail.position(), change.clock);
    });
}

#[test]
fn clock_concurrent_writers_leave_one_order_without_gaps_in_which_every_change_is_once() {
    on_each(|env| {
        let versions: Vec<Clock> = thread::scope(|scope| {
            let write = |writer: usize| {
                let writes = (0..50).map(move |number| {
                    env.put("Order", &format!("{writer}-{}", number % 7), json!(number)).unwrap()
                });
                writes.collect::<Vec<_>>()
            };
            let writers: Vec<_> = (0..8).map(|writer| scope.spawn(move || write(writer))).collect();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        let mut sorted: Vec<_> = versions.iter().map(|version| version.number()).collect();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=400).collect::<Vec<_>>());
        assert_log_explains_documents(env);
    });
}

/// The documents are what the log says, and each change names the one before it.
fn assert_log_explains_documents(env: &Env) {
    let mut latest = BTreeMap::new();
    for change in env.log().read(Clock::ZERO, usize::MAX).unwrap() {
        let before = latest.insert(change.key.clone(), (change.clock, change.value.clone()));
        assert_eq!(change.previous, before.map(|(clock, _)| clock), "{change:?}");
    }
    for (key, (clock, value)) in latest {
        let document = env.get("Order", &key).unwrap().unwrap();
        assert_eq!((document.version, Some(document.value)), (clock, value));
    }
}

#[test]
fn d4_the_log_is_trimmed_to_the_size_that_is_kept_and_says_so() {
    on_each(|env| {
        env.set_retention(Retention::everything().bytes(2_000)).unwrap();
        assert_eq!(env.retention().unwrap().bytes, Some(2_000));
        let value = json!("x".repeat(100));
        let writes = (0..100).map(|n| Write::put("Order", format!("o-{n}"), value.clone()));
        env.write_all(writes.collect()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let kept_from = loop {
            match env.log().read(Clock::ZERO, 1) {
                Err(Error::LogTruncated { asked, kept_from }) => {
                    assert_eq!(asked, Clock::new(1));
                    break kept_from;
                }
                other => assert!(Instant::now() < deadline, "it is not trimmed: {other:?}"),
            }
        };
        let before = Clock::new(kept_from.number() - 1);
        let kept = env.log().read(before, usize::MAX).unwrap();
        assert_eq!(kept.last().unwrap().clock, Clock::new(100), "the end is kept");
        assert!((10..=14).contains(&kept.len()), "{} entries of about 155 bytes", kept.len());
        assert_eq!(env.get("Order", "o-0").unwrap().unwrap().version, Clock::new(1));
    });
}

#[test]
fn d4_the_log_is_trimmed_by_age_but_for_its_newest_change() {
    on_each(|env| {
        env.put("Order", "o-1", json!(1)).unwrap();
        env.put("Order", "o-2", json!(2)).unwrap();
        env.set_retention(Retention::everything().age(Duration::ZERO)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while env.log().read(Clock::ZERO, 10).is_ok() {
            assert!(Instant::now() < deadline, "it is not trimmed");
            // A change of this millisecond is not old yet, and by itself the environment looks again
            // only after a commit or the backstop.
            env.maintain().unwrap();
        }
        assert_eq!(env.log().read(Clock::new(1), 10).unwrap().len(), 1);
        assert_eq!(env.put("Order", "o-3", json!(3)).unwrap(), Clock::new(3));
    });
}

#[test]
fn d4_what_is_pinned_is_kept_until_the_pin_moves_on_or_is_taken_away() {
    on_each(|env| {
        write_changes(env, 10);
        env.log().pin("near", Clock::new(8)).unwrap();
        env.log().pin("far", Clock::new(3)).unwrap();
        env.set_retention(Retention::everything().bytes(0)).unwrap();
        env.maintain().unwrap();
        assert_eq!(clocks_after(env, 3), [4, 5, 6, 7, 8, 9, 10], "the lowest pin holds");
        assert!(matches!(env.log().read(Clock::new(2), 1), Err(Error::LogTruncated { .. })));
        env.log().pin("far", Clock::new(6)).unwrap();
        env.maintain().unwrap();
        assert_eq!(clocks_after(env, 6), [7, 8, 9, 10]);
        assert!(matches!(env.log().read(Clock::new(5), 1), Err(Error::LogTruncated { .. })));
        env.log().unpin("far").unwrap();
        env.maintain().unwrap();
        assert_eq!(clocks_after(env, 8), [9, 10]);
        assert_eq!(env.log().pins().unwrap(), [("near".to_owned(), Clock::new(8))]);
        env.log().unpin("near").unwrap();
        env.log().unpin("never-there").unwrap();
        env.maintain().unwrap();
        assert_eq!(clocks_after(env, 9), [10], "the newest change is always kept");
    });
}

#[test]
fn d4_a_pin_keeps_no_more_than_it_may_and_its_reader_is_told_what_is_gone() {
    on_each(|env| {
        env.log().pin("paused", Clock::ZERO).unwrap();
        env.set_retention(Retention::everything().bytes(0).pin_bytes(1_000)).unwrap();
        write_changes(env, 5);
        assert_eq!(clocks_after(env, 0), [1, 2, 3, 4, 5], "five changes have less bytes");
        write_changes(env, 5);
        let told = env.log().read(Clock::ZERO, 1);
        let Err(Error::LogTruncated { asked, .. }) = told else { panic!("{told:?}") };
        assert_eq!(asked, Clock::new(1));
        // What keeps nothing whole keeps nothing at all.
        env.maintain().unwrap();
        assert_eq!(clocks_after(env, 9), [10]);
        assert!(env.log().read(Clock::new(8), 1).is_err());
    });
}

#[test]
fn d4_what_is_gone_cannot_be_pinned() {
    on_each(|env| {
        env.set_retention(Retention::everything().bytes(0)).unwrap();
        write_changes(env, 10);
        let refused = env.log().pin("late", Clock::new(8));
        let Err(Error::LogTruncated { asked, kept_from }) = refused else { panic!("{refused:?}") };
        assert_eq!((asked, kept_from), (Clock::new(9), Clock::new(10)));
        assert!(env.log().pins().unwrap().is_empty());
        env.log().pin("late", Clock::new(9)).unwrap();
        let refused = env.log().pin("later", Clock::new(11));
        assert!(matches!(refused, Err(Error::LogPositionAhead { .. })), "{refused:?}");
        assert!(matches!(env.log().pin("~own", Clock::ZERO), Err(Error::NameInvalid { .. })));
        assert!(matches!(env.log().unpin("~own"), Err(Error::NameInvalid { .. })));
    });
}

#[test]
fn d4_d11_a_full_store_is_told_to_keep_less_of_its_log_and_has_room_again() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Options { max_bytes: 1 << 20, ..Options::default() };
    let options = StoreOptions { engine, ..StoreOptions::default() };
    let store = Store::open_with(directory.path().join("data"), options).unwrap();
    let env = store.env("test").unwrap();
    env.log().pin("mirror", Clock::ZERO).unwrap();
    let value = json!("x".repeat(1_000));
    let full = (0..).find_map(|_| env.put("Order", "o-1", value.clone()).err());
    assert!(matches!(full, Some(Error::StoreFull { .. })), "{full:?}");
    let head = env.log().head().unwrap().clock;
    env.set_retention(Retention::everything().bytes(0)).unwrap();
    env.log().pin("mirror", head).unwrap();
    env.maintain().unwrap();
    env.put("Order", "o-2", value).unwrap();
}

#[test]
fn two_environments_of_a_store_on_disk_do_not_hear_of_each_other_in_their_logs() {
    let (store, _directory) = on_disk();
    let (one, two) = (store.env("one").unwrap(), store.env("two").unwrap());
    one.put("Order", "o-1", json!(1)).unwrap();
    assert!(two.log().read(Clock::ZERO, 10).unwrap().is_empty());
}

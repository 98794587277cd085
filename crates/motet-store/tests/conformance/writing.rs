//! Deciders, alone and in groups.

use std::time::Duration;

use motet_store::engine::{Answer, Decide, Decision, Table, Transaction, Writes};
use motet_store::{Clock, Error};

use super::Make;
use crate::engines::{all, decider, get, logging, putting, removing, view, write, write_all};

fn rejecting() -> Box<dyn Decide> {
    decider(|_| Err(Error::LogTruncated { asked: Clock::ZERO, kept_from: Clock::new(7) }))
}

/// Adds one to a number, as it reads it in its transaction.
fn counting() -> Box<dyn Decide> {
    decider(|transaction| {
        let before = get(transaction, Table::Documents, b"count").map_or(0, |bytes| bytes[0]);
        let mut writes = Writes::default();
        writes.put(Table::Documents, b"count", &[before + 1]);
        Ok(Decision { writes, changes: 0 })
    })
}

pub(crate) fn a_decider_sees_what_those_before_it_in_its_group_wrote(make: Make<'_>) {
    let fresh = make();
    let results = write_all(&*fresh.engine, (0..50).map(|_| counting()).collect());
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(get(&*view(&*fresh.engine), Table::Documents, b"count"), Some(vec![50]));
}

pub(crate) fn a_rejection_writes_nothing_and_concerns_nobody_else(make: Make<'_>) {
    let fresh = make();
    let results = write_all(
        &*fresh.engine,
        vec![counting(), rejecting(), logging("first"), rejecting(), counting(), logging("second")],
    );
    for (place, result) in results.iter().enumerate() {
        match (place, result) {
            (1 | 3, Err(Error::LogTruncated { kept_from, .. })) => {
                assert_eq!(*kept_from, Clock::new(7));
            }
            (0 | 2 | 4 | 5, Ok(_)) => {}
            _ => panic!("{place}: {result:?}"),
        }
    }
    let view = view(&*fresh.engine);
    assert_eq!(get(&*view, Table::Documents, b"count"), Some(vec![2]));
    assert_eq!(all(&*view, Table::Log).len(), 2);
    assert_eq!(results[5].as_ref().map(|commit| commit.clock).ok(), Some(Clock::new(2)));
}

pub(crate) fn of_two_writes_to_one_key_the_later_one_holds(make: Make<'_>) {
    let fresh = make();
    let both = decider(|_| {
        let mut writes = Writes::default();
        writes.put(Table::Documents, b"put last", b"1");
        writes.remove(Table::Documents, b"put last");
        writes.put(Table::Documents, b"put last", b"2");
        writes.put(Table::Documents, b"removed last", b"1");
        writes.remove(Table::Documents, b"removed last");
        Ok(Decision { writes, changes: 0 })
    });
    write(&*fresh.engine, both).expect("a write");
    assert_eq!(
        all(&*view(&*fresh.engine), Table::Documents),
        [(b"put last".to_vec(), b"2".to_vec())]
    );
}

pub(crate) fn removing_what_is_absent_is_no_error(make: Make<'_>) {
    let fresh = make();
    write(&*fresh.engine, removing("absent")).expect("a write");
    write(&*fresh.engine, putting("present", "")).expect("a write");
    write(&*fresh.engine, removing("present")).expect("a write");
    assert_eq!(all(&*view(&*fresh.engine), Table::Documents), []);
}

pub(crate) fn a_transaction_that_is_too_large_is_refused_and_the_others_succeed(make: Make<'_>) {
    let fresh = make();
    let max = fresh.engine.capabilities().max_txn_bytes;
    let results = write_all(
        &*fresh.engine,
        vec![putting("a", "1"), putting("b", vec![0; max]), putting("c", "1")],
    );
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    let refused = results[1].as_ref().expect_err("a refusal");
    assert!(matches!(refused, Error::TransactionTooLarge { bytes, .. } if *bytes == max + 1));
    assert_eq!(all(&*view(&*fresh.engine), Table::Documents).len(), 2);
}

pub(crate) fn no_deciders_are_answered_with_no_results(make: Make<'_>) {
    assert_eq!(write_all(&*make().engine, Vec::new()).len(), 0);
}

struct Later;

impl Decide for Later {
    fn decide<'a>(&'a mut self, _: &'a dyn Transaction) -> Answer<'a, Result<Decision, Error>> {
        let (sender, receiver) = futures_channel::oneshot::channel();
        std::thread::spawn(move || {
            std::thread::park_timeout(Duration::from_millis(5));
            let _ = sender.send(b"later".to_vec());
        });
        Answer::later(async move {
            let value = receiver.await.expect("the thread answers");
            let mut writes = Writes::default();
            writes.put(Table::Documents, b"k", &value);
            Ok(Decision { writes, changes: 0 })
        })
    }
}

pub(crate) fn a_decider_that_answers_later_is_waited_for(make: Make<'_>) {
    let fresh = make();
    write(&*fresh.engine, Box::new(Later)).expect("a write");
    assert_eq!(get(&*view(&*fresh.engine), Table::Documents, b"k"), Some(b"later".to_vec()));
}

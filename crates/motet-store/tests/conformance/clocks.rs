//! Numbers and times of changes.

use std::sync::mpsc;
use std::thread;

use motet_store::engine::{Commit, Decision, Table, Writes};
use motet_store::{Clock, Error, Head, Hlc};

use super::Make;
use crate::engines::{
    all, clock_of, decider, logging, putting, removing, stored_head, view, write, write_all,
};

pub(crate) fn concurrent_writers_number_their_changes_without_a_gap_and_each_once(make: Make<'_>) {
    const WRITERS: usize = 8;
    const WRITES: usize = 50;
    let fresh = make();
    let engine = &*fresh.engine;
    let mut commits: Vec<(String, Commit)> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let write = |number| {
                        let name = format!("{writer}:{number}");
                        let commit = write(engine, logging(name.clone())).expect("a write");
                        (name, commit)
                    };
                    (0..WRITES).map(write).collect::<Vec<_>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    });
    commits.sort_by_key(|(_, commit)| commit.clock);
    let log = all(&*view(engine), Table::Log);
    assert_eq!(log.len(), WRITERS * WRITES);
    for (number, ((name, commit), (key, value))) in (1..).zip(commits.iter().zip(&log)) {
        assert_eq!(commit.clock, Clock::new(number));
        assert_eq!(commit.before, Clock::new(number - 1));
        assert_eq!(clock_of(key), commit.clock);
        assert_eq!(value, name.as_bytes());
    }
    assert_eq!(stored_head(&*view(engine)).clock.number(), log.len() as u64);
}

pub(crate) fn a_stamp_is_later_than_that_of_every_change_before(make: Make<'_>) {
    let fresh = make();
    let mut last = Hlc::ZERO;
    for _ in 0..5 {
        for result in write_all(&*fresh.engine, (0..20).map(|_| logging("")).collect()) {
            let commit = result.expect("a write");
            assert!(commit.time > last, "{commit:?} after {last:?}");
            last = commit.time;
        }
    }
    assert_eq!(stored_head(&*view(&*fresh.engine)).time, last);
}

pub(crate) fn what_changes_nothing_in_the_log_uses_no_clock(make: Make<'_>) {
    let fresh = make();
    let logged = write(&*fresh.engine, logging("")).expect("a write");
    let quiet = write(&*fresh.engine, putting("k", "v")).expect("a write");
    assert_eq!((quiet.before, quiet.clock), (logged.clock, logged.clock));
    assert_eq!(stored_head(&*view(&*fresh.engine)).clock, logged.clock);
}

pub(crate) fn whatever_is_written_moves_the_time_and_nothing_else_does(make: Make<'_>) {
    let fresh = make();
    let head = || stored_head(&*view(&*fresh.engine));
    let mut last = write(&*fresh.engine, logging("")).expect("a write").time;
    for quiet in [putting("k", "v"), removing("k"), removing("never there")] {
        let commit = write(&*fresh.engine, quiet).expect("a write");
        assert!(commit.time > last, "{commit:?} after {last:?}");
        last = commit.time;
        assert_eq!(head(), Head { clock: Clock::new(1), time: last });
    }
    let refused = write(&*fresh.engine, decider(|_| Err(Error::Closed)));
    assert!(refused.is_err());
    write(&*fresh.engine, decider(|_| Ok(Decision::default()))).expect("nothing to write");
    assert_eq!(head(), Head { clock: Clock::new(1), time: last });

    // In a group each sees the time of those before it.
    let (sender, seen) = mpsc::channel();
    let looking = decider(move |transaction| {
        sender.send((transaction.head().time, transaction.stamp())).expect("a receiver");
        Ok(Decision::default())
    });
    let mut commits = write_all(&*fresh.engine, vec![putting("k", "v"), looking]);
    let first = commits.swap_remove(0).expect("a write");
    let (before, stamp) = seen.recv().expect("it was asked");
    assert_eq!(before, first.time);
    assert!(stamp > first.time);
}

pub(crate) fn one_decider_may_use_several_clocks(make: Make<'_>) {
    let fresh = make();
    let three = decider(|transaction| {
        let mut writes = Writes::default();
        for change in 1..=3 {
            let clock = transaction.head().clock.plus(change);
            writes.put(Table::Log, &clock.to_bytes(), &transaction.stamp().number().to_be_bytes());
        }
        Ok(Decision { writes, changes: 3 })
    });
    let results = write_all(&*fresh.engine, vec![logging("1"), three, logging("5")]);
    let clocks: Vec<_> = results
        .into_iter()
        .map(|result| result.map(|commit| (commit.before.number(), commit.clock.number())))
        .collect::<Result<_, _>>()
        .expect("writes");
    assert_eq!(clocks, [(0, 1), (1, 4), (4, 5)]);
    let log = all(&*view(&*fresh.engine), Table::Log);
    let numbers: Vec<u64> = log.iter().map(|(key, _)| clock_of(key).number()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
}

//! Four processes on one store, killed and stopped at random, and whether what they saw and what is
//! left can be that of one store.
//!
//! The children are this binary again. Each of their sessions writes its history to a file of its
//! own; when all are dead, the checker replays the log and compares. `MOTET_FAULTS` sets how many
//! faults there are, `MOTET_SEED` which.

#![cfg(unix)]
#![allow(clippy::print_stdout, reason = "figures and seeds are for whoever runs it")]
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod histories;

use std::time::Instant;

use histories::{checker, faults, finale, workload};

/// Not a test by itself: the part of a child process.
#[test]
#[ignore = "the test starts it as a process of its own"]
fn child() {
    workload::play();
}

#[test]
fn d9_d3_the_history_of_four_processes_killed_and_stopped_at_random_is_that_of_one_serial_store() {
    let faults = number_from("MOTET_FAULTS").unwrap_or(150);
    let seed = number_from("MOTET_SEED").unwrap_or(9);
    println!("MOTET_FAULTS={faults} MOTET_SEED={seed}");
    let dir = tempfile::tempdir().unwrap();
    workload::prepare(dir.path());
    let started = Instant::now();
    let injected = faults::inject(dir.path(), faults, seed);
    println!("{injected} in {:?}", started.elapsed());

    let started = Instant::now();
    let left = finale::Left::read(dir.path());
    let mut verdict = checker::check(dir.path(), &left.log);
    left.check(&verdict.replay, injected.stopped_max, &mut verdict.faults);
    println!("{verdict}; checked in {:?}", started.elapsed());
    if !verdict.faults.is_empty() {
        let kept = dir.keep();
        panic!("MOTET_SEED={seed}, kept in {}: {:#?}", kept.display(), verdict.faults);
    }
    assert!(verdict.committed > faults, "the children hardly wrote: {}", verdict.committed);
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}

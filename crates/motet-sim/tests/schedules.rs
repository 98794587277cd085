//! Seeds replay exactly, and every one of them holds.

use motet_sim::{bus, run};

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..5 {
        let first = bus::run_seed(seed, None, true);
        let second = bus::run_seed(seed, None, true);
        assert!(first.trace.len() > 200, "seed {seed} has {} lines", first.trace.len());
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}

#[test]
fn the_first_hundreds_of_schedules_hold() {
    run::keep_panics();
    let totals =
        run::run_seeds(0..400, 2, 1, &|| (), &|seed| bus::run_seed(seed, None, false), &|_| ());
    assert!(totals.failed.is_empty(), "{:?}", totals.failed);
    assert!(
        totals.figures.handed > 10_000,
        "only {} messages were handed out",
        totals.figures.handed
    );
}

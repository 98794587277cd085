//! Seeds replay exactly, and every one of them holds.

use motet_sim::run;

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..5 {
        let first = run::run_seed(seed, None, true);
        let second = run::run_seed(seed, None, true);
        assert!(first.trace.len() > 200, "seed {seed} has {} lines", first.trace.len());
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}

#[test]
fn the_first_hundreds_of_schedules_hold() {
    run::keep_panics();
    let totals = run::run_seeds(0, 400, 2, 1, &|| (), &|_| ());
    assert!(totals.failed.is_empty(), "{:?}", totals.failed);
    assert!(totals.handed > 10_000, "only {} messages were handed out", totals.handed);
}

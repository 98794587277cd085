//! Seeds of the store replay exactly, and every one of them holds.

use motet_sim::run::keep_panics;
use motet_sim::store::run;

#[test]
fn a_seed_of_the_store_replays_exactly() {
    for seed in 0..5 {
        let first = run::run_seed(seed, None, true);
        let second = run::run_seed(seed, None, true);
        assert!(first.trace.len() > 200, "seed {seed} has {} lines", first.trace.len());
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}

#[test]
fn the_first_hundreds_of_runs_hold() {
    keep_panics();
    let totals = run::run_seeds(0, 400, 2, 1, &|| (), &|_| ());
    assert!(totals.failed.is_empty(), "{:?}", totals.failed);
    assert!(totals.changes > 10_000, "only {} changes were made", totals.changes);
    assert!(totals.steps >= 400 * 500);
}

//! Seeds of the store replay exactly, and every one of them holds.

use motet_sim::run::{keep_panics, run_seeds};
use motet_sim::store::run::run_seed;

#[test]
fn a_seed_of_the_store_replays_exactly() {
    for seed in 0..5 {
        let first = run_seed(seed, None, true);
        let second = run_seed(seed, None, true);
        assert!(first.trace.len() > 200, "seed {seed} has {} lines", first.trace.len());
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}

#[test]
fn the_first_hundreds_of_runs_hold() {
    keep_panics();
    let totals = run_seeds(0..400, 2, 1, &|| (), &|seed| run_seed(seed, None, false), &|_| ());
    assert!(totals.failed.is_empty(), "{:?}", totals.failed);
    assert!(totals.figures.changes > 10_000, "only {} changes were made", totals.figures.changes);
    assert!(totals.steps >= 400 * 500);
}

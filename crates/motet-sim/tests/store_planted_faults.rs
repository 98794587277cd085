//! Every planted fault of the store is caught within a bounded number of runs.

mod planting;

use motet_sim::plants as switch;
use motet_sim::run::{keep_panics, run_seeds};
use motet_sim::store::plants;
use motet_sim::store::run::run_seed;

/// Runs within which each planted fault must be caught.
const SEEDS_MAX: u64 = 2_000;

#[test]
fn the_list_names_exactly_the_planted_faults_of_the_store() {
    let listed = planting::check_list(&["motet-store"], plants::ALL);
    assert!(listed >= 15, "{listed} planted faults");
}

#[test]
fn every_planted_fault_of_the_store_is_caught_in_time() {
    keep_panics();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut missed = Vec::new();
    for name in plants::ALL {
        let totals = run_seeds(
            0..SEEDS_MAX,
            jobs,
            1,
            &|| switch::switch_on(Some(name)),
            &|seed| run_seed(seed, None, false),
            &|_| (),
        );
        // A run that fails without the fault as well says nothing about it.
        switch::switch_on(None);
        let is_clean = |seed: u64| run_seed(seed, None, false).violation.is_none();
        if !totals.failed.iter().any(|(seed, _)| is_clean(*seed)) {
            missed.push(name);
        }
    }
    // The hook that keeps panics would keep this one's text as well.
    drop(std::panic::take_hook());
    assert!(missed.is_empty(), "not caught in {SEEDS_MAX} runs: {missed:?}");
}

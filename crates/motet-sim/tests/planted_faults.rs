//! Every planted fault of the cores is caught within a bounded number of schedules.

mod planting;

use motet_sim::{bus, plants, run};

/// Schedules within which each planted fault must be caught: as many as CI runs without faults.
const SEEDS_MAX: u64 = 20_000;

#[test]
fn the_list_names_exactly_the_planted_faults_of_the_cores() {
    let listed = planting::check_list(&["motet-cluster", "motet-realtime"], plants::ALL);
    assert!(listed >= 20, "{listed} planted faults");
}

#[test]
fn every_planted_fault_is_caught_in_time() {
    run::keep_panics();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut missed = Vec::new();
    for name in plants::ALL {
        let totals = run::run_seeds(
            0..SEEDS_MAX,
            jobs,
            1,
            &|| plants::switch_on(Some(name)),
            &|seed| bus::run_seed(seed, None, false),
            &|_| (),
        );
        // A schedule that fails without the fault as well says nothing about it.
        plants::switch_on(None);
        let is_clean = |seed: u64| bus::run_seed(seed, None, false).violation.is_none();
        if !totals.failed.iter().any(|(seed, _)| is_clean(*seed)) {
            missed.push(name);
        }
    }
    // The hook that keeps panics would keep this one's text as well.
    drop(std::panic::take_hook());
    assert!(missed.is_empty(), "not caught in {SEEDS_MAX} schedules: {missed:?}");
}

//! Every planted fault of the cores is caught within a bounded number of schedules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use motet_sim::{plants, run};

/// Schedules within which each planted fault must be caught: as many as CI runs without faults.
const SEEDS_MAX: u64 = 20_000;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_list_names_exactly_the_planted_faults_of_the_cores() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' folder");
    let mut files = Vec::new();
    for core in ["motet-cluster", "motet-realtime"] {
        sources(&crates.join(core).join("src"), &mut files);
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("a source file");
        for part in text.split("planted(\"").skip(1) {
            names.insert(part.split('"').next().expect("a quoted name").to_owned());
        }
    }
    let listed: BTreeSet<String> = plants::ALL.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(listed, names);
    assert!(listed.len() >= 20, "{} planted faults", listed.len());
}

#[test]
fn every_planted_fault_is_caught_in_time() {
    run::keep_panics();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut missed = Vec::new();
    for name in plants::ALL {
        let totals =
            run::run_seeds(0, SEEDS_MAX, jobs, 1, &|| plants::switch_on(Some(name)), &|_| ());
        // A schedule that fails without the fault as well says nothing about it.
        plants::switch_on(None);
        let is_clean = |seed: u64| run::run_seed(seed, None, false).violation.is_none();
        if !totals.failed.iter().any(|(seed, _)| is_clean(*seed)) {
            missed.push(name);
        }
    }
    // The hook that keeps panics would keep this one's text as well.
    drop(std::panic::take_hook());
    assert!(missed.is_empty(), "not caught in {SEEDS_MAX} schedules: {missed:?}");
}

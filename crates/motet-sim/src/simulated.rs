//! What the command needs of a simulation.

use motet_sim::bus::{self, Delivered};
use motet_sim::run::{Figures, Outcome, Totals};
use motet_sim::store::run::Written;
use motet_sim::{plants, store};

/// A simulation whose runs are decided by seeds.
pub(crate) trait Simulated {
    /// How it is called on the command line.
    const COMMAND: &str;
    /// The planted faults of what it simulates.
    const PLANTS: &[&str];
    /// How much virtual time of its traces is a millisecond.
    const TRACE_MS: f64;
    /// What it counts.
    type Figures: Figures;

    /// Runs one seed with all of its steps, or only those that are named.
    fn run_seed(seed: u64, keep: Option<&[usize]>, trace: bool) -> Outcome<Self::Figures>;

    /// The steps that a seed draws.
    fn describe_steps(seed: u64) -> Vec<String>;
}

/// The bus in a virtual browser.
pub(crate) struct Bus;

impl Simulated for Bus {
    const COMMAND: &str = "motet-sim";
    const PLANTS: &[&str] = plants::ALL;
    const TRACE_MS: f64 = 1_000.0;
    type Figures = Delivered;

    fn run_seed(seed: u64, keep: Option<&[usize]>, trace: bool) -> Outcome<Delivered> {
        bus::run_seed(seed, keep, trace)
    }

    fn describe_steps(seed: u64) -> Vec<String> {
        bus::describe_steps(seed)
    }
}

/// The store's processes on one engine.
pub(crate) struct Store;

impl Simulated for Store {
    const COMMAND: &str = "motet-sim store";
    const PLANTS: &[&str] = store::plants::ALL;
    const TRACE_MS: f64 = 1.0;
    type Figures = Written;

    fn run_seed(seed: u64, keep: Option<&[usize]>, trace: bool) -> Outcome<Written> {
        store::run::run_seed(seed, keep, trace)
    }

    fn describe_steps(seed: u64) -> Vec<String> {
        store::run::describe_steps(seed)
    }
}

/// The closing line.
pub(crate) fn summary<F: Figures>(totals: &Totals<F>, seconds: f64) -> String {
    let Totals { seeds, steps, faults, figures, .. } = totals;
    let failed = totals.failed.len();
    format!(
        "sim: {seeds} seeds, {failed} violations, {steps} steps, {faults} faults, {figures}, \
         {seconds:.1} s"
    )
}

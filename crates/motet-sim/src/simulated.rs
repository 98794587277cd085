//! What the command needs of a simulation.

use motet_sim::run::Failure;

use crate::Options;

/// A simulation whose runs are decided by seeds.
pub(crate) trait Simulated {
    /// How it is called on the command line.
    const COMMAND: &str;
    /// The planted faults of what it simulates.
    const PLANTS: &[&str];

    /// Runs the seeds that are asked for; `progress` is told how many are done and have failed.
    fn run_seeds(
        options: &Options,
        plant: Option<&'static str>,
        progress: &(dyn Fn(u64, usize) + Sync),
    ) -> Found;

    /// Runs one seed with all of its steps, or only those that are named, and gives its trace.
    fn run_seed(seed: u64, keep: Option<&[usize]>, trace: bool) -> (Found, Vec<String>);

    /// The steps that a seed draws.
    fn describe_steps(seed: u64) -> Vec<String>;
}

/// What runs found.
pub(crate) struct Found {
    pub(crate) seeds: u64,
    pub(crate) failed: Vec<(u64, Failure)>,
    /// The table of faults, and its cells that stayed empty.
    pub(crate) coverage: String,
    pub(crate) empty_cells: Vec<String>,
    /// What was done, in numbers.
    pub(crate) figures: String,
}

impl Found {
    /// The closing line.
    pub(crate) fn summary(&self, seconds: f64) -> String {
        let (seeds, failed) = (self.seeds, self.failed.len());
        format!("sim: {seeds} seeds, {failed} violations, {}, {seconds:.1} s", self.figures)
    }
}

impl Options {
    /// How many threads.
    pub(crate) fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().ok().map(usize::from);
        self.jobs.or_else(all).unwrap_or(1)
    }
}

/// A line of a trace, with its virtual time in milliseconds.
pub(crate) fn line(at_ms: f64, text: &str) -> String {
    format!("{at_ms:>12.3} ms  {text}")
}

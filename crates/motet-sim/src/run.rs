//! Many seeds at once, and what they found.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::coverage::Coverage;
use crate::invariants::Violation;

/// What a run found.
#[derive(Debug)]
pub struct Outcome<F> {
    /// Its seed.
    pub seed: u64,
    /// Name of the check that failed, when, and what was seen.
    pub violation: Option<Failure>,
    /// Steps that were taken.
    pub steps: u64,
    /// Faults that struck.
    pub faults: u64,
    /// What came of it.
    pub figures: F,
    /// Which faults struck what.
    pub coverage: Coverage,
    /// What happened, if it was asked for: virtual time, in the simulation's own unit, and a line.
    pub trace: Vec<(u64, String)>,
}

/// What a simulation counts beside steps and faults. As text it is a part of the closing line.
pub trait Figures: Default + fmt::Display + Send {
    /// Adds those of another run.
    fn add(&mut self, more: &Self);
}

/// A check that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The check's name in the specification, or `panic`.
    pub check: String,
    /// Virtual microseconds.
    pub at: u64,
    /// What was seen.
    pub detail: String,
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self { check: violation.check.to_owned(), at: violation.at, detail: violation.detail }
    }
}

thread_local! {
    /// Where and why this thread panicked last.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Panics of a core are findings: they are kept with their place instead of being printed.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with(|panic| *panic.borrow_mut() = Some(info.to_string()));
    }));
}

/// Where and why this thread panicked last.
pub(crate) fn take_panic() -> String {
    PANIC.with(|panic| panic.borrow_mut().take()).unwrap_or_default()
}

/// What many runs found.
#[derive(Debug, Default)]
pub struct Totals<F> {
    /// Runs.
    pub seeds: u64,
    /// Steps in all.
    pub steps: u64,
    /// Faults in all.
    pub faults: u64,
    /// What came of them.
    pub figures: F,
    /// Seeds whose checks failed, with what failed.
    pub failed: Vec<(u64, Failure)>,
    /// Which faults struck what, over all runs.
    pub coverage: Coverage,
}

impl<F: Figures> Totals<F> {
    /// Adds what one run found.
    pub fn take(&mut self, outcome: Outcome<F>) {
        self.seeds += 1;
        self.steps += outcome.steps;
        self.faults += outcome.faults;
        self.figures.add(&outcome.figures);
        self.coverage.add(outcome.coverage);
        if let Some(failure) = outcome.violation {
            self.failed.push((outcome.seed, failure));
        }
    }
}

/// Runs seeds on `jobs` threads, until `failures_max` of them have failed. `prepare` is called once on
/// each thread, `progress` after each seed.
pub fn run_seeds<F: Figures>(
    seeds: Range<u64>,
    jobs: usize,
    failures_max: usize,
    prepare: &(dyn Fn() + Sync),
    run: &(dyn Fn(u64) -> Outcome<F> + Sync),
    progress: &(dyn Fn(&Totals<F>) + Sync),
) -> Totals<F> {
    let next = AtomicU64::new(seeds.start);
    let totals = Mutex::new(Totals::default());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                prepare();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let outcome = run(seed);
                    let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
                    totals.take(outcome);
                    progress(&totals);
                    if totals.failed.len() >= failures_max {
                        // Nobody takes another seed.
                        next.store(seeds.end, Ordering::Relaxed);
                        break;
                    }
                }
            });
        }
    });
    totals.into_inner().unwrap_or_else(PoisonError::into_inner)
}

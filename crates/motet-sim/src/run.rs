//! One seed from beginning to end, and many of them at once.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use motet_protocol::Rng;

use crate::coverage::Coverage;
use crate::invariants::Violation;
use crate::schedule::{self, Step};
use crate::setup::Setup;
use crate::world::{SECOND, World};

/// What a run found.
#[derive(Debug)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// Name of the check that failed, when, and what was seen.
    pub violation: Option<Failure>,
    /// Steps that were taken.
    pub steps: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Messages handed to applications.
    pub handed: u64,
    /// Gaps reported to them.
    pub gaps: u64,
    /// Which faults struck when.
    pub coverage: Coverage,
    /// What happened, if it was asked for: virtual microseconds and a line.
    pub trace: Vec<(u64, String)>,
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

fn seed_bytes(seed: u64) -> [u8; 32] {
    let mut bytes = *b"motet-sim seeded world 0 0 0 0 0";
    bytes[24..].copy_from_slice(&seed.to_le_bytes());
    bytes
}

/// The steps that a seed draws, described for people.
#[must_use]
pub fn describe_steps(seed: u64) -> Vec<String> {
    let (_, steps, _) = draw(seed);
    let lines = steps.iter().enumerate();
    lines
        .map(|(index, step)| {
            format!("{index:>4} {:>9.3} ms {:?}", step.at as f64 / 1_000.0, step.action)
        })
        .collect()
}

fn draw(seed: u64) -> (Setup, Vec<Step>, Rng) {
    let mut rng = Rng::from_seed(seed_bytes(seed));
    let setup = Setup::draw(&mut rng.fork());
    let steps = schedule::draw(&setup, &mut rng.fork());
    (setup, steps, rng)
}

/// Runs one seed, with all of its steps or only those that are named.
#[must_use]
pub fn run_seed(seed: u64, keep: Option<&[usize]>, trace: bool) -> Outcome {
    let (setup, mut steps, rng) = draw(seed);
    if let Some(keep) = keep {
        steps = keep.iter().filter_map(|index| steps.get(*index).copied()).collect();
    }
    let count = steps.len() as u64;
    let mut world = World::new(setup, steps, rng, trace);
    let result = catch_unwind(AssertUnwindSafe(|| {
        world.begin();
        let end = world.steps.last().map_or(0, |step| step.at);
        world.run_until(end + SECOND);
        if world.checks.violation.is_none() {
            world.finish();
        }
    }));
    let mut violation = world.checks.violation.take().map(Failure::from);
    if result.is_err() {
        let detail = take_panic();
        violation = Some(Failure { check: "panic".to_owned(), at: world.now, detail });
    }
    Outcome {
        seed,
        violation,
        steps: count,
        faults: world.faults,
        handed: world.checks.streams.handed,
        gaps: world.checks.streams.gaps,
        coverage: core::mem::take(&mut world.coverage),
        trace: world.trace.take().unwrap_or_default(),
    }
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
pub struct Totals {
    /// Runs.
    pub seeds: u64,
    /// Steps in all.
    pub steps: u64,
    /// Faults in all.
    pub faults: u64,
    /// Messages handed to applications in all.
    pub handed: u64,
    /// Gaps reported in all.
    pub gaps: u64,
    /// Seeds whose checks failed, with what failed.
    pub failed: Vec<(u64, Failure)>,
    /// Which faults struck when, over all runs.
    pub coverage: Coverage,
}

impl Totals {
    /// Adds what one run found.
    pub fn take(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.steps += outcome.steps;
        self.faults += outcome.faults;
        self.handed += outcome.handed;
        self.gaps += outcome.gaps;
        self.coverage.add(&outcome.coverage);
        if let Some(failure) = outcome.violation {
            self.failed.push((outcome.seed, failure));
        }
    }
}

/// Runs `count` seeds from `from` on `jobs` threads, until `failures_max` of them have failed.
/// `prepare` is called once on each thread, `progress` after each seed.
pub fn run_seeds(
    from: u64,
    count: u64,
    jobs: usize,
    failures_max: usize,
    prepare: &(dyn Fn() + Sync),
    progress: &(dyn Fn(&Totals) + Sync),
) -> Totals {
    let take = |totals: &mut Totals, outcome| {
        totals.take(outcome);
        progress(totals);
        totals.failed.len() < failures_max
    };
    each_seed(from, count, jobs, prepare, &|seed| run_seed(seed, None, false), &take)
}

/// Runs seeds on several threads, as long as `take` wants more.
pub(crate) fn each_seed<O, T: Default + Send>(
    from: u64,
    count: u64,
    jobs: usize,
    prepare: &(dyn Fn() + Sync),
    run: &(dyn Fn(u64) -> O + Sync),
    take: &(dyn Fn(&mut T, O) -> bool + Sync),
) -> T {
    let next = AtomicU64::new(from);
    let totals = Mutex::new(T::default());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                prepare();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from.saturating_add(count) {
                        break;
                    }
                    let outcome = run(seed);
                    let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
                    if !take(&mut totals, outcome) {
                        // Nobody takes another seed.
                        next.store(from.saturating_add(count), Ordering::Relaxed);
                        break;
                    }
                }
            });
        }
    });
    totals.into_inner().unwrap_or_else(PoisonError::into_inner)
}

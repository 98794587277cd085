//! One seed from beginning to end, and many of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use motet_protocol::Rng;

use super::action::Step;
use super::coverage::Coverage;
use super::schedule::{self, Setup};
use super::world::World;
use crate::run::{Failure, each_seed, take_panic};

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
    /// Changes in the log.
    pub changes: u64,
    /// Which faults struck which operations.
    pub coverage: Coverage,
    /// What happened, if it was asked for: virtual milliseconds and a line.
    pub trace: Vec<(u64, String)>,
}

fn seed_bytes(seed: u64) -> [u8; 32] {
    let mut bytes = *b"motet-sim seeded store 0 0 0 0 0";
    bytes[24..].copy_from_slice(&seed.to_le_bytes());
    bytes
}

fn draw(seed: u64) -> (Setup, Vec<Step>, Rng) {
    let mut rng = Rng::from_seed(seed_bytes(seed));
    let setup = Setup::draw(&mut rng.fork());
    let steps = schedule::draw(&setup, &mut rng.fork());
    (setup, steps, rng)
}

/// The steps that a seed draws, described for people.
#[must_use]
pub fn describe_steps(seed: u64) -> Vec<String> {
    let (_, steps, _) = draw(seed);
    let lines = steps.iter().enumerate();
    lines.map(|(index, step)| format!("{index:>4} {step:?}")).collect()
}

/// Runs one seed, with all of its steps or only those that are named.
#[must_use]
pub fn run_seed(seed: u64, keep: Option<&[usize]>, trace: bool) -> Outcome {
    let (setup, mut steps, rng) = draw(seed);
    if let Some(keep) = keep {
        steps = keep.iter().filter_map(|index| steps.get(*index).cloned()).collect();
    }
    let mut world = World::new(setup, rng, trace);
    let begun = world.now_ms;
    let verdict = catch_unwind(AssertUnwindSafe(|| world.run(&steps)));
    let failed = match verdict {
        Ok(verdict) => verdict.err().map(|(check, detail)| (check.to_owned(), detail)),
        Err(_) => Some(("panic".to_owned(), take_panic())),
    };
    let at = (world.now_ms - begun) * 1_000;
    Outcome {
        seed,
        violation: failed.map(|(check, detail)| Failure { check, at, detail }),
        steps: steps.len() as u64,
        faults: world.faults,
        changes: world.model.head,
        coverage: core::mem::take(&mut world.coverage),
        trace: world.trace.take().unwrap_or_default(),
    }
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
    /// Changes in all logs.
    pub changes: u64,
    /// Seeds whose checks failed, with what failed.
    pub failed: Vec<(u64, Failure)>,
    /// Which faults struck which operations, over all runs.
    pub coverage: Coverage,
}

impl Totals {
    /// Adds what one run found.
    pub fn take(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.steps += outcome.steps;
        self.faults += outcome.faults;
        self.changes += outcome.changes;
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

//! The bus in a virtual browser: one seed from beginning to end.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use motet_protocol::Rng;

use crate::run::{Failure, Figures, Outcome, take_panic};
use crate::schedule::{self, Step};
use crate::setup::Setup;
use crate::world::{SECOND, World};

/// What applications were given.
#[derive(Debug, Default)]
pub struct Delivered {
    /// Messages handed to them.
    pub handed: u64,
    /// Gaps reported to them.
    pub gaps: u64,
}

impl Figures for Delivered {
    fn add(&mut self, more: &Self) {
        self.handed += more.handed;
        self.gaps += more.gaps;
    }
}

impl fmt::Display for Delivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} messages, {} gaps", self.handed, self.gaps)
    }
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
pub fn run_seed(seed: u64, keep: Option<&[usize]>, trace: bool) -> Outcome<Delivered> {
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
    let figures =
        Delivered { handed: world.checks.streams.handed, gaps: world.checks.streams.gaps };
    Outcome {
        seed,
        violation,
        steps: count,
        faults: world.faults,
        figures,
        coverage: core::mem::take(&mut world.coverage),
        trace: world.trace.take().unwrap_or_default(),
    }
}

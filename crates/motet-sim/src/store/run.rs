//! One seed from beginning to end.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use motet_protocol::Rng;

use super::action::Step;
use super::schedule::{self, Setup};
use super::world::World;
use crate::run::{Failure, Figures, Outcome, take_panic};

/// What was written.
#[derive(Debug, Default)]
pub struct Written {
    /// Changes in the log.
    pub changes: u64,
}

impl Figures for Written {
    fn add(&mut self, more: &Self) {
        self.changes += more.changes;
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} changes", self.changes)
    }
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
pub fn run_seed(seed: u64, keep: Option<&[usize]>, trace: bool) -> Outcome<Written> {
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
        figures: Written { changes: world.model.head },
        coverage: core::mem::take(&mut world.coverage),
        trace: world.trace.take().unwrap_or_default(),
    }
}

//! Simulates the bus in a virtual browser.

use motet_sim::{plants, run};

use crate::Options;
use crate::simulated::{Found, Simulated, line};

pub(crate) struct Bus;

impl Simulated for Bus {
    const COMMAND: &str = "motet-sim";
    const PLANTS: &[&str] = plants::ALL;

    fn run_seeds(
        options: &Options,
        plant: Option<&'static str>,
        progress: &(dyn Fn(u64, usize) + Sync),
    ) -> Found {
        let totals = run::run_seeds(
            options.from,
            options.seeds,
            options.threads(),
            options.failures,
            &|| plants::switch_on(plant),
            &|totals| progress(totals.seeds, totals.failed.len()),
        );
        found(totals)
    }

    fn run_seed(seed: u64, keep: Option<&[usize]>, trace: bool) -> (Found, Vec<String>) {
        let outcome = run::run_seed(seed, keep, trace);
        let trace = outcome.trace.iter().map(|(at, text)| line(*at as f64 / 1_000.0, text));
        let trace = trace.collect();
        let mut totals = run::Totals::default();
        totals.take(outcome);
        (found(totals), trace)
    }

    fn describe_steps(seed: u64) -> Vec<String> {
        run::describe_steps(seed)
    }
}

fn found(totals: run::Totals) -> Found {
    let figures = format!(
        "{} steps, {} faults, {} messages, {} gaps",
        totals.steps, totals.faults, totals.handed, totals.gaps,
    );
    Found {
        seeds: totals.seeds,
        coverage: totals.coverage.to_string(),
        empty_cells: totals.coverage.empty_cells(),
        failed: totals.failed,
        figures,
    }
}

//! `motet-sim`: runs seeded schedules of the bus and prints what its checks found.

#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use motet_sim::plants;
use motet_sim::run::{self, Failure, Totals};
use motet_sim::shrink;

/// Runs seeded schedules of the bus in a virtual browser.
#[derive(Debug, Parser)]
#[command(name = "motet-sim", version)]
struct Options {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Threads; all processors when absent.
    #[arg(long)]
    jobs: Option<usize>,
    /// Run this seed alone.
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Only these steps of it, as `1,4-7`.
    #[arg(long, requires = "seed", value_parser = parse_steps)]
    keep: Option<Steps>,
    /// Print everything that happens in it.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Print which faults struck while a route was at which stage; fail when a cell is empty.
    #[arg(long)]
    coverage: bool,
    /// Switch this planted fault on; needs a build with the feature `plants`.
    #[arg(long)]
    plant: Option<String>,
    /// Stop after so many failing seeds.
    #[arg(long, default_value_t = 1)]
    failures: usize,
    /// Do not shorten the schedule of a failing seed.
    #[arg(long)]
    no_shrink: bool,
}

/// Numbers of steps.
#[derive(Clone, Debug)]
struct Steps(Vec<usize>);

fn parse_steps(text: &str) -> Result<Steps, String> {
    let steps = shrink::parse_ranges(text).map(Steps);
    steps.ok_or_else(|| "expected numbers of steps, as 1,4-7".to_owned())
}

fn main() -> ExitCode {
    let options = Options::parse();
    let plant = match plants::find(options.plant.as_deref()) {
        Ok(plant) => plant,
        Err(text) => {
            eprint(&text);
            return ExitCode::from(2);
        }
    };
    run::keep_panics();
    match options.seed {
        Some(seed) => run_one(seed, &options, plant),
        None => run_many(&options, plant),
    }
}

#[expect(clippy::print_stderr, reason = "the usual place for what is no result")]
fn eprint(text: &str) {
    eprintln!("motet-sim: {text}");
}

#[expect(clippy::print_stdout, reason = "results go to standard output")]
fn print(text: &str) {
    println!("{text}");
}

fn run_many(options: &Options, plant: Option<&'static str>) -> ExitCode {
    let started = Instant::now();
    let jobs = options
        .jobs
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let progress = |totals: &Totals| {
        if totals.seeds.is_multiple_of(500) && std::io::stderr().is_terminal() {
            let mut stderr = std::io::stderr();
            // Progress is a courtesy: where it cannot be shown, nothing is amiss.
            let _ = write!(stderr, "\r{} seeds, {} failed", totals.seeds, totals.failed.len());
        }
    };
    let totals = run::run_seeds(
        options.from,
        options.seeds,
        jobs,
        options.failures,
        &|| plants::switch_on(plant),
        &progress,
    );
    if let Some((seed, failure)) = totals.failed.iter().min_by_key(|(seed, _)| *seed) {
        for (seed, failure) in &totals.failed {
            print(&format!("seed {seed}: {}: {}", failure.check, failure.detail));
        }
        plants::switch_on(plant);
        explain(*seed, failure, options);
    }
    let empty = totals.coverage.empty_cells();
    if options.coverage {
        print(&totals.coverage.to_string());
        for cell in &empty {
            print(&format!("empty: {cell}"));
        }
    }
    print(&summary(&totals, started.elapsed().as_secs_f64()));
    let holds = totals.failed.is_empty() && (!options.coverage || empty.is_empty());
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn summary(totals: &Totals, seconds: f64) -> String {
    format!(
        "sim: {} seeds, {} violations, {} steps, {} faults, {} messages, {} gaps, {seconds:.1} s",
        totals.seeds,
        totals.failed.len(),
        totals.steps,
        totals.faults,
        totals.handed,
        totals.gaps,
    )
}

fn run_one(seed: u64, options: &Options, plant: Option<&'static str>) -> ExitCode {
    plants::switch_on(plant);
    let started = Instant::now();
    let keep = options.keep.as_ref().map(|steps| steps.0.as_slice());
    let outcome = run::run_seed(seed, keep, options.trace);
    for (at, line) in &outcome.trace {
        print(&format!("{:>12.3} ms  {line}", *at as f64 / 1_000.0));
    }
    if options.coverage {
        print(&outcome.coverage.to_string());
    }
    if let Some(failure) = &outcome.violation {
        print(&format!("seed {seed}: {}: {}", failure.check, failure.detail));
        if keep.is_none() {
            explain(seed, failure, options);
        }
    }
    let mut totals = Totals::default();
    totals.take(outcome);
    print(&summary(&totals, started.elapsed().as_secs_f64()));
    if totals.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a failing schedule, shortened, and how to replay it.
fn explain(seed: u64, failure: &Failure, options: &Options) {
    if options.no_shrink {
        print(&format!("replay: motet-sim --seed {seed} --trace"));
        return;
    }
    let keep = shrink::shrink(seed, &failure.check);
    let steps = run::describe_steps(seed);
    print(&format!("shortened to {} of {} steps:", keep.len(), steps.len()));
    for index in &keep {
        print(&steps[*index]);
    }
    let plant =
        options.plant.as_ref().map_or_else(String::new, |plant| format!(" --plant {plant}"));
    let keep = shrink::ranges(&keep);
    print(&format!("replay: motet-sim --seed {seed} --keep {keep} --trace{plant}"));
}

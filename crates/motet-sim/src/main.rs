//! `motet-sim`: runs seeded schedules and prints what their checks found.

#![forbid(unsafe_code)]

mod simulated;

use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Parser, Subcommand};
use motet_sim::run::{self, Failure, Totals};
use motet_sim::shrink;

use simulated::{Bus, Simulated, Store, summary};

/// Runs seeded schedules: of the bus in a virtual browser, unless something else is named.
#[derive(Debug, Parser)]
#[command(name = "motet-sim", version, args_conflicts_with_subcommands = true)]
struct Command {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    other: Option<Other>,
}

#[derive(Debug, Subcommand)]
enum Other {
    /// Runs seeded schedules of the store's processes on one engine.
    Store(Options),
}

/// Which seeds to run, and how.
#[derive(Args, Debug)]
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
    /// Print which faults struck what; fail when a cell is empty.
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

impl Options {
    /// How many threads.
    fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().ok().map(usize::from);
        self.jobs.or_else(all).unwrap_or(1)
    }
}

/// Numbers of steps.
#[derive(Clone, Debug)]
struct Steps(Vec<usize>);

fn parse_steps(text: &str) -> Result<Steps, String> {
    let steps = shrink::parse_ranges(text).map(Steps);
    steps.ok_or_else(|| "expected numbers of steps, as 1,4-7".to_owned())
}

fn main() -> ExitCode {
    let command = Command::parse();
    match &command.other {
        None => simulate::<Bus>(&command.options),
        Some(Other::Store(options)) => simulate::<Store>(options),
    }
}

fn simulate<S: Simulated>(options: &Options) -> ExitCode {
    let plant = match motet_sim::plants::find(options.plant.as_deref(), S::PLANTS) {
        Ok(plant) => plant,
        Err(text) => {
            eprint(&text);
            return ExitCode::from(2);
        }
    };
    run::keep_panics();
    match options.seed {
        Some(seed) => run_one::<S>(seed, options, plant),
        None => run_many::<S>(options, plant),
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

fn run_many<S: Simulated>(options: &Options, plant: Option<&'static str>) -> ExitCode {
    let started = Instant::now();
    let progress = |totals: &Totals<S::Figures>| {
        if totals.seeds.is_multiple_of(500) && std::io::stderr().is_terminal() {
            let mut stderr = std::io::stderr();
            // Progress is a courtesy: where it cannot be shown, nothing is amiss.
            let _ = write!(stderr, "\r{} seeds, {} failed", totals.seeds, totals.failed.len());
        }
    };
    let totals = run::run_seeds(
        options.from..options.from.saturating_add(options.seeds),
        options.threads(),
        options.failures,
        &|| motet_sim::plants::switch_on(plant),
        &|seed| S::run_seed(seed, None, false),
        &progress,
    );
    if let Some((seed, failure)) = totals.failed.iter().min_by_key(|(seed, _)| *seed) {
        for (seed, failure) in &totals.failed {
            print(&format!("seed {seed}: {}: {}", failure.check, failure.detail));
        }
        motet_sim::plants::switch_on(plant);
        explain::<S>(*seed, failure, options);
    }
    let empty_cells = totals.coverage.empty_cells();
    if options.coverage {
        print(&totals.coverage.to_string());
        for cell in &empty_cells {
            print(&format!("empty: {cell}"));
        }
    }
    print(&summary(&totals, started.elapsed().as_secs_f64()));
    let holds = totals.failed.is_empty() && (!options.coverage || empty_cells.is_empty());
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_one<S: Simulated>(seed: u64, options: &Options, plant: Option<&'static str>) -> ExitCode {
    motet_sim::plants::switch_on(plant);
    let started = Instant::now();
    let keep = options.keep.as_ref().map(|steps| steps.0.as_slice());
    let outcome = S::run_seed(seed, keep, options.trace);
    for (at, text) in &outcome.trace {
        print(&format!("{:>12.3} ms  {text}", *at as f64 / S::TRACE_MS));
    }
    let mut totals = Totals::default();
    totals.take(outcome);
    if options.coverage {
        print(&totals.coverage.to_string());
    }
    if let Some((_, failure)) = totals.failed.first() {
        print(&format!("seed {seed}: {}: {}", failure.check, failure.detail));
        if keep.is_none() {
            explain::<S>(seed, failure, options);
        }
    }
    print(&summary(&totals, started.elapsed().as_secs_f64()));
    if totals.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a failing schedule, shortened, and how to replay it.
fn explain<S: Simulated>(seed: u64, failure: &Failure, options: &Options) {
    let plant =
        options.plant.as_ref().map_or_else(String::new, |plant| format!(" --plant {plant}"));
    if options.no_shrink {
        print(&format!("replay: {} --seed {seed} --trace{plant}", S::COMMAND));
        return;
    }
    let steps = S::describe_steps(seed);
    let fails = |keep: &[usize]| {
        let found = S::run_seed(seed, Some(keep), false).violation;
        found.is_some_and(|other| other.check == failure.check)
    };
    let keep = shrink::shrink(steps.len(), fails);
    print(&format!("shortened to {} of {} steps:", keep.len(), steps.len()));
    for index in &keep {
        print(&steps[*index]);
    }
    let keep = shrink::ranges(&keep);
    print(&format!("replay: {} --seed {seed} --keep {keep} --trace{plant}", S::COMMAND));
}

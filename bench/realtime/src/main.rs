//! `cargo xtask bench realtime`: the figures of the realtime server, counted at the receivers.
//!
//! The server is `motet serve`, started from the binary that `MOTET_BIN` names. NATS and Redis run
//! beside it where they are installed; the systems take turns within every round, so that whatever
//! else the machine does meets all of them.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks to its user on the standard streams"
)]

mod client;
mod counter;
mod fanout;
mod frame;
mod idle;
mod measure;
mod peers;
mod pubsub;
mod server;
mod statistics;
mod storm;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;

use motet_bench_figures::{Figure, Report};

/// Measures the realtime server beside NATS and Redis.
#[derive(Parser)]
struct Arguments {
    /// A small share of everything, for machines that only check that it runs.
    #[arg(long)]
    quick: bool,
    /// Rounds of each fan-out measurement; the figure is their median.
    #[arg(long)]
    rounds: Option<usize>,
    /// Measure only what has this in its name: fanout, idle, storm.
    #[arg(long)]
    only: Option<String>,
    /// Where the figures go.
    #[arg(long, default_value = "target/bench/realtime.json")]
    output: PathBuf,
}

/// How much is measured.
pub(crate) struct Scale {
    pub(crate) rounds: usize,
    pub(crate) warm_up: Duration,
    pub(crate) span: Duration,
    pub(crate) clients: usize,
    /// Seconds between the server's pings in the measurement of idle connections.
    pub(crate) ping_interval_s: u64,
}

const FULL: Scale = Scale {
    rounds: 5,
    warm_up: Duration::from_secs(1),
    span: Duration::from_secs(4),
    clients: 10_000,
    ping_interval_s: 6,
};
const QUICK: Scale = Scale {
    rounds: 1,
    warm_up: Duration::from_millis(300),
    span: Duration::from_secs(1),
    clients: 1_000,
    ping_interval_s: 2,
};
/// Descriptors beside those of the clients.
const DESCRIPTORS_SPARE: usize = 256;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench realtime: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let binary = std::env::var_os("MOTET_BIN")
        .map(PathBuf::from)
        .context("MOTET_BIN does not name the server: run `cargo xtask bench realtime`")?;
    let mut scale = if arguments.quick { QUICK } else { FULL };
    scale.rounds = arguments.rounds.unwrap_or(scale.rounds).max(1);
    scale.clients = affordable(scale.clients)?;
    println!("{}", usage::machine());

    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only));
    let mut figures: Vec<Figure> = Vec::new();
    if wanted("fanout") {
        figures.extend(measure::fanout(&binary, &scale)?);
    }
    if wanted("idle") {
        figures.extend(idle::measure(&binary, &scale)?);
    }
    if wanted("storm") {
        figures.extend(storm::measure(&binary, &scale)?);
    }
    Report::new(figures).publish(&arguments.output)
}

/// As many clients as the process may have descriptors for; raises its limit first.
fn affordable(clients: usize) -> Result<usize> {
    let limit = usage::raise_descriptor_limit()?;
    let most = limit.saturating_sub(DESCRIPTORS_SPARE);
    if most < clients {
        println!("This process may open {limit} files: {most} clients instead of {clients}");
    }
    Ok(clients.min(most))
}

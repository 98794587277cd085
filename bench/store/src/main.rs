//! `cargo xtask bench store`: the figures of the document store, beside a bare loop that writes the
//! same bytes through LMDB, and beside redb, SQLite and npm `lmdb`, on the same disk in the same run.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks to its user on the standard streams"
)]

mod bare;
mod lmdb_js;
mod peers;
mod reads;
mod rounds;
mod sample;
mod sync;
mod writes;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use motet_bench_figures::Report;

/// Measures the document store beside bare LMDB, redb and SQLite.
#[derive(Parser)]
struct Arguments {
    /// A small share of everything, for machines that only check that it runs.
    #[arg(long)]
    quick: bool,
    /// Measure only what has this in its name: batches, singles, reads.
    #[arg(long)]
    only: Option<String>,
    /// Where the data lies while it is measured; the disk is a part of what is measured.
    #[arg(long, default_value = "target/bench/store-data")]
    data: PathBuf,
    /// Where the figures go.
    #[arg(long, default_value = "target/bench/store.json")]
    output: PathBuf,
}

/// How much is measured.
pub(crate) struct Scale {
    pub(crate) rounds: u64,
    /// Batches of a round.
    pub(crate) batches: u64,
    /// Single writes of a round.
    pub(crate) singles: u64,
    /// Documents that are read.
    pub(crate) documents: u64,
}

const FULL: Scale = Scale { rounds: 5, batches: 60, singles: 6_400, documents: 100_000 };
const QUICK: Scale = Scale { rounds: 1, batches: 2, singles: 640, documents: 2_000 };

/// The type of all documents.
pub(crate) const TYPE: &str = "Order";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench store: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let scale = if arguments.quick { QUICK } else { FULL };
    std::fs::create_dir_all(&arguments.data)?;
    let folder = tempfile::tempdir_in(&arguments.data)?;
    let wanted = |name: &str| arguments.only.as_deref().is_none_or(|only| name.contains(only));
    println!("load average {}", load_average());
    let mut figures = sync::syncs(folder.path())?;
    if wanted("batches") {
        figures.extend(writes::batches(folder.path(), &scale, false)?);
        figures.extend(writes::batches(folder.path(), &scale, true)?);
    }
    if wanted("singles") {
        figures.extend(writes::singles(folder.path(), &scale)?);
    }
    if wanted("reads") {
        figures.extend(reads::reads(folder.path(), &scale)?);
    }
    Report::new(figures).publish(&arguments.output)
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

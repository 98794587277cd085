//! The processes of the store's show: one builds the indexes, four book seats on real flights.
//!
//! Each writes down what it was acknowledged, in a journal of its own, for a judge who trusts
//! neither it nor the store.

#![allow(clippy::print_stdout, reason = "how far it is, is for whoever watches")]

mod indexes;
mod journal;
mod work;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Works on a store of flights.
#[derive(Parser)]
#[command(name = "motet-store-show")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the indexes that the work needs, and say how far they are.
    Index {
        /// The store's directory.
        #[arg(long)]
        data: PathBuf,
    },
    /// Book and move seats until told to stop by a line on standard input, or by its end.
    Work(work::Options),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Index { data } => indexes::build(&data),
        Command::Work(options) => work::run(&options),
    }
}

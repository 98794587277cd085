//! Motet's developer commands: `cargo xtask <command>`.
//!
//! Every command finds or installs what it needs, says so before it does, and otherwise stops with
//! one line that names what is missing and how to get it.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks to its user on the standard streams"
)]

mod bench;
mod browser;
mod check;
mod cli;
mod demo;
mod fuzz;
mod generate;
mod install;
mod npm;
mod process;
mod sim;
mod steps;
mod summary;
mod test;
mod tidy;
mod wasm;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::Arguments::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

//! `cargo xtask sim`: the simulator, built and run. `cargo xtask sim store` simulates the store.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::process;
use crate::workspace::cargo;

/// Everything is passed on to the simulator.
#[derive(Args)]
pub(crate) struct Options {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// What a person may let run over night.
const LIMIT: Duration = Duration::from_secs(24 * 3_600);

/// Builds and runs the simulator.
pub(crate) fn run(options: &Options) -> Result<()> {
    process::run(command().args(&options.arguments), LIMIT)
}

/// `cargo run` of the simulator; arguments that follow are its own.
pub(crate) fn command() -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "motet-sim", "--"]);
    command
}

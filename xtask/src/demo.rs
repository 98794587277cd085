//! `cargo xtask demo`: everything the show needs, then the show.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::workspace::{cargo, command, target};
use crate::{browser, npm, process, wasm, workspace};

const SHOW: &str = "examples/show/show.ts";
const BUILD_LIMIT: Duration = Duration::from_secs(1_800);

/// How to run the show.
#[derive(Args)]
pub(crate) struct Options {
    /// End after the show: exit code 0 only if every bound held.
    #[arg(long)]
    once: bool,
    /// The port of the page; a free one otherwise.
    #[arg(long)]
    port: Option<u16>,
}

/// Builds what is needed and runs the show.
pub(crate) fn run(options: &Options) -> Result<()> {
    wasm::ensure()?;
    npm::build()?;
    let server = server()?;
    let mut show = show(&server)?;
    if options.once || workspace::in_ci() {
        show.arg("--once");
    }
    if let Some(port) = options.port {
        show.args(["--port", &port.to_string()]);
    }
    process::foreground(&mut show)
}

/// Builds the server and gives its path.
///
/// It is the build that the tests use: a fresh clone compiles its dependencies once.
pub(crate) fn server() -> Result<PathBuf> {
    println!("Building the server");
    process::run(
        cargo().args(["build", "--quiet", "--package", "motet-server", "--bin", "motet"]),
        BUILD_LIMIT,
    )?;
    Ok(target().join("debug/motet"))
}

/// The show's script, with what it has to know in its environment.
pub(crate) fn show(server: &std::path::Path) -> Result<Command> {
    let mut show = script(SHOW)?;
    show.env("MOTET_BIN", server).env("MOTET_CHROMIUM", browser::chromium()?);
    Ok(show)
}

/// A TypeScript program of the repository.
pub(crate) fn script(path: &str) -> Result<Command> {
    npm::install()?;
    let mut node = command("node");
    node.args(["--import", "tsx", path]);
    Ok(node)
}

//! `cargo xtask demo`: everything a show needs, then the show.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::workspace::{cargo, command, target};
use crate::{browser, npm, process, wasm, workspace};

const BUS_SHOW: &str = "examples/show/show.ts";
const STORE_SHOW: &str = "examples/store-show/show.ts";
const BUILD_LIMIT: Duration = Duration::from_secs(1_800);

/// What is shown.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Subject {
    /// Real tabs that share one connection while they are killed, frozen and closed
    #[default]
    Bus,
    /// Four processes on one store while one is killed and one is stopped
    Store,
}

/// How to run a show.
#[derive(Args)]
pub(crate) struct Options {
    /// What to show.
    #[arg(value_enum, default_value_t)]
    subject: Subject,
    /// End after the show: exit code 0 only if every bound held.
    #[arg(long)]
    once: bool,
    /// The port of the bus's page; a free one otherwise.
    #[arg(long)]
    port: Option<u16>,
}

/// Builds what is needed and runs the show.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut show = match options.subject {
        Subject::Bus => {
            wasm::ensure()?;
            npm::build()?;
            bus_show(&server()?)?
        }
        Subject::Store => store_show()?,
    };
    if options.once || workspace::in_ci() {
        show.arg("--once");
    }
    match (options.subject, options.port) {
        (_, None) => {}
        (Subject::Bus, Some(port)) => drop(show.args(["--port", &port.to_string()])),
        (Subject::Store, Some(_)) => bail!("the store's show has no page: leave --port out"),
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

/// The bus's show, with what it has to know in its environment.
pub(crate) fn bus_show(server: &Path) -> Result<Command> {
    let mut show = script(BUS_SHOW)?;
    show.env("MOTET_BIN", server).env("MOTET_CHROMIUM", browser::chromium()?);
    Ok(show)
}

/// The store's show, with its programs built.
pub(crate) fn store_show() -> Result<Command> {
    let server = server()?;
    let mut build = cargo();
    build.args(["build", "--quiet", "--package", "motet-store-show"]);
    process::run(&mut build, BUILD_LIMIT)?;
    let mut show = script(STORE_SHOW)?;
    show.env("MOTET_BIN", server).env("MOTET_CHROMIUM", browser::chromium()?);
    show.env("MOTET_STORE_SHOW", target().join("debug/motet-store-show"));
    Ok(show)
}

/// A TypeScript program of the repository.
pub(crate) fn script(path: &str) -> Result<Command> {
    npm::install()?;
    let mut node = command("node");
    node.args(["--import", "tsx", path]);
    Ok(node)
}

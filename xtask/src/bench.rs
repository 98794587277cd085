//! `cargo xtask bench`: optimised builds of what is measured, then the measurement.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::workspace::{cargo, root, target};
use crate::{browser, demo, npm, process, wasm};

const BUS: &str = "bench/bus/main.ts";
const REALTIME: &str = "motet-bench-realtime";
const STORE: &str = "motet-bench-store";
const LMDB_JS: &str = "bench/store/lmdb-js.ts";
const BUILD_LIMIT: Duration = Duration::from_secs(3_600);

/// Measures the bus in real tabs.
pub(crate) fn bus(rest: &[String]) -> Result<()> {
    wasm::ensure()?;
    npm::build()?;
    let server = server()?;
    let mut bench = demo::script(BUS)?;
    bench.env("MOTET_BIN", server).env("MOTET_CHROMIUM", browser::chromium()?).args(rest);
    process::foreground(&mut bench)
}

/// Measures the document store.
pub(crate) fn store(rest: &[String]) -> Result<()> {
    println!("Building the store and its peers, optimised");
    process::run(cargo().args(["build", "--quiet", "--release", "--package", STORE]), BUILD_LIMIT)?;
    npm::install()?;
    let mut bench = crate::workspace::command(target().join("release").join(STORE));
    bench.env("MOTET_LMDB_JS", root().join(LMDB_JS)).args(rest);
    process::foreground(&mut bench)
}

/// Measures the realtime server.
pub(crate) fn realtime(rest: &[String]) -> Result<()> {
    let server = server()?;
    process::run(
        cargo().args(["build", "--quiet", "--release", "--package", REALTIME]),
        BUILD_LIMIT,
    )?;
    let mut bench = crate::workspace::command(target().join("release").join(REALTIME));
    process::foreground(bench.env("MOTET_BIN", server).args(rest))
}

fn server() -> Result<PathBuf> {
    println!("Building the server, optimised");
    process::run(
        cargo().args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "motet-server",
            "--bin",
            "motet",
        ]),
        BUILD_LIMIT,
    )?;
    Ok(target().join("release/motet"))
}

//! `cargo xtask test`: every test there is.

mod browser_tests;
mod foreign;
mod oracle;
mod packed;

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::steps::{self, Report, Selection, Step, passed};
use crate::summary::Runner;
use crate::workspace::{cargo, root};
use crate::{demo, install, npm, process, sim, wasm};

const MINUTE: Duration = Duration::from_secs(60);
/// How many schedules continuous integration simulates.
const SEEDS: &str = "20000";

const STEPS: [Step; 14] = [
    Step { name: "rust", what: "unit and integration tests, fuzz corpora", run: rust },
    Step { name: "doctest", what: "examples in the documentation", run: doctest },
    Step { name: "plants", what: "planted faults are caught", run: planted },
    Step { name: "sim", what: "simulated schedules", run: simulated },
    Step { name: "sim-store", what: "simulated schedules of the store", run: simulated_store },
    Step { name: "wasm", what: "browser modules", run: modules },
    Step { name: "npm", what: "npm package", run: package },
    Step { name: "foreign", what: "foreign clients against the server", run: foreign::run },
    Step { name: "oracle", what: "filters beside npm sift", run: oracle::run },
    Step { name: "judge", what: "the judge of the store's show", run: judge },
    Step { name: "store-show", what: "the store's show, with its bounds", run: store_show },
    Step { name: "browser", what: "real tabs in Chromium", run: browser_tests::run },
    Step { name: "packed", what: "the packed package in a fresh application", run: packed::run },
    Step { name: "demo", what: "the show, with its bounds", run: show },
];

/// Runs the tests; the last line printed is `N passed, N failed`.
pub(crate) fn run(selection: &Selection) -> Result<()> {
    steps::run(&STEPS, selection)
}

/// Runs a test runner to its end and reads its closing line.
fn counted(command: &mut Command, runner: Runner, limit: Duration) -> Result<Report> {
    let outcome = process::tee(command, limit)?;
    if outcome.timed_out {
        bail!("the limit of {} s was reached", limit.as_secs());
    }
    Ok(Report::Counted(runner.counts(&outcome.output, outcome.success)))
}

fn rust() -> Result<Report> {
    install::cargo_tool("cargo-nextest")?;
    let mut nextest = cargo();
    nextest.args(["nextest", "run", "--workspace", "--no-fail-fast", "--profile", "ci"]);
    if !install::tracer()? {
        println!("This machine lets no process trace another: power cuts are left out");
        nextest.args(["--filterset", "not binary(power_cut)"]);
    }
    counted(&mut nextest, Runner::Nextest, 35 * MINUTE)
}

fn doctest() -> Result<Report> {
    let mut doctest = cargo();
    doctest.args(["test", "--quiet", "--doc", "--workspace", "--no-fail-fast"]);
    counted(&mut doctest, Runner::Libtest, 15 * MINUTE)
}

/// Apart from the other tests, since no other build may have the faults in it.
fn planted() -> Result<Report> {
    install::cargo_tool("cargo-nextest")?;
    let mut nextest = cargo();
    nextest.args(["nextest", "run", "--package", "motet-sim", "--features", "plants"]);
    nextest.args(["--test", "planted_faults", "--test", "store_planted_faults"]);
    nextest.args(["--no-fail-fast", "--profile", "ci"]);
    counted(&mut nextest, Runner::Nextest, 15 * MINUTE)
}

fn simulated() -> Result<Report> {
    let mut sim = sim::command();
    counted(sim.args(["--seeds", SEEDS, "--coverage"]), Runner::Simulator, 20 * MINUTE)
}

fn simulated_store() -> Result<Report> {
    let mut sim = sim::command();
    let store = ["store", "--seeds", SEEDS, "--coverage"];
    counted(sim.args(store), Runner::Simulator, 20 * MINUTE)
}

fn modules() -> Result<Report> {
    wasm::ensure()?;
    Ok(passed())
}

fn package() -> Result<Report> {
    npm::build()?;
    Ok(passed())
}

fn judge() -> Result<Report> {
    let mut judge = browser_tests::node_test(&root().join("examples/store-show"))?;
    counted(&mut judge, Runner::NodeTest, MINUTE)
}

fn store_show() -> Result<Report> {
    counted(demo::store_show()?.arg("--once"), Runner::ExitCode, 5 * MINUTE)
}

fn show() -> Result<Report> {
    let server = demo::server()?;
    counted(demo::bus_show(&server)?.arg("--once"), Runner::ExitCode, 10 * MINUTE)
}

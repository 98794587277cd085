//! `cargo xtask check`: everything that can be said about the code without running it.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::steps::{self, Report, Selection, Step, passed};
use crate::wasm::{self, MODULES, Toolchain};
use crate::workspace::{cargo, command, in_ci};
use crate::{generate, install, npm, process, tidy};

const SHORT: Duration = Duration::from_secs(300);
const LONG: Duration = Duration::from_secs(1_800);
/// Steps that take minutes on a machine that has not run them before.
const SLOW: [&str; 3] = ["docs", "clippy-wasm", "deny"];

const STEPS: [Step; 9] = [
    Step { name: "format", what: "cargo fmt", run: format },
    Step { name: "generated", what: "files made from the error table", run: generated },
    Step { name: "tidy", what: "house rules", run: house_rules },
    Step { name: "types", what: "TypeScript types", run: types },
    Step { name: "lint", what: "oxlint", run: lint },
    Step { name: "clippy", what: "Clippy, all targets", run: clippy },
    Step { name: "docs", what: "rustdoc", run: docs },
    Step { name: "clippy-wasm", what: "Clippy, browser modules", run: clippy_wasm },
    Step { name: "deny", what: "licences, bans, sources", run: deny },
];

/// Runs the checks; `fast` leaves out those that take minutes.
pub(crate) fn run(fast: bool, mut selection: Selection) -> Result<()> {
    if fast {
        selection.skip.extend(SLOW.map(str::to_owned));
    }
    steps::run(&STEPS, &selection)
}

fn format() -> Result<Report> {
    process::run(cargo().args(["fmt", "--all", "--check"]), SHORT)?;
    Ok(passed())
}

fn generated() -> Result<Report> {
    let stale = generate::stale();
    if !stale.is_empty() {
        bail!("stale: {}; run `cargo xtask generate`", stale.join(", "));
    }
    Ok(passed())
}

fn house_rules() -> Result<Report> {
    tidy::report()?;
    Ok(passed())
}

fn types() -> Result<Report> {
    // The declarations of the package are made from those of its modules.
    wasm::ensure()?;
    npm::compile()?;
    let mut types = command("npm");
    types.args(["run", "types", "--workspaces", "--if-present", "--loglevel=error"]);
    process::run(&mut types, SHORT)?;
    Ok(passed())
}

fn lint() -> Result<Report> {
    let mut oxlint = command(npm::tool("oxlint")?);
    process::run(oxlint.args(["--deny-warnings", "--format=unix"]), SHORT)?;
    Ok(passed())
}

fn clippy() -> Result<Report> {
    let mut clippy = cargo();
    clippy.args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    process::run(&mut clippy, LONG)?;
    Ok(passed())
}

fn docs() -> Result<Report> {
    let mut doc = cargo();
    doc.args(["doc", "--quiet", "--workspace", "--no-deps"]);
    process::run(doc.env("RUSTDOCFLAGS", "-D warnings"), LONG)?;
    Ok(passed())
}

fn clippy_wasm() -> Result<Report> {
    let toolchain = Toolchain::find_or_install()?;
    for module in MODULES {
        let mut check = cargo();
        check
            .args(["check", "--quiet", "--package", "motet-web", "--no-default-features"])
            .args(["--features", module.feature])
            .env("CLIPPY_ARGS", "-Dwarnings");
        if !toolchain.apply_clippy(&mut check) {
            let how = "no Clippy for this compiler: apt-get install rust-web-clippy".to_owned();
            return Ok(Report::Skipped(how));
        }
        process::run(&mut check, LONG)?;
    }
    Ok(passed())
}

fn deny() -> Result<Report> {
    const TOOL: &str = "cargo-deny";
    if in_ci() && !install::has_cargo_tool(TOOL) {
        // Building it takes longer than all other checks together.
        return Ok(Report::Skipped(format!("{TOOL} is not installed on this machine")));
    }
    install::cargo_tool(TOOL)?;
    let mut deny = cargo();
    deny.args(["deny", "--all-features", "check", "licenses", "bans", "sources"]);
    process::run(&mut deny, SHORT)?;
    Ok(passed())
}

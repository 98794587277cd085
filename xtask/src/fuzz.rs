//! `cargo xtask fuzz`: coverage-guided search on stable, for a bounded time.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::workspace::{cargo, root};
use crate::{install, process};

const BUILD_LIMIT: Duration = Duration::from_secs(1_200);
/// One input that takes longer than this is a finding.
const INPUT_SECONDS_MAX: u64 = 10;

/// What to search in and for how long.
#[derive(Args)]
pub(crate) struct Options {
    /// Search in this target only; all of them otherwise.
    #[arg(long)]
    target: Option<String>,
    /// How long to search in each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

struct Target {
    folder: PathBuf,
    name: String,
}

/// Searches in one target or in all; the first crash ends the search with its input's path.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut targets = targets()?;
    if let Some(wanted) = &options.target {
        let known: Vec<_> = targets.iter().map(|target| target.name.clone()).collect();
        targets.retain(|target| target.name == *wanted);
        if targets.is_empty() {
            bail!("no fuzz target is called {wanted:?}; the targets are {}", known.join(", "));
        }
    }
    install::cargo_tool("cargo-fuzz")?;
    for target in targets {
        println!("Fuzzing {} for {} s", target.name, options.seconds);
        search(&target, options.seconds)?;
    }
    Ok(())
}

fn search(target: &Target, seconds: u64) -> Result<()> {
    let seeds = target.folder.join("corpus").join(&target.name);
    if !seeds.is_dir() {
        bail!("{} has no inputs to begin with: put one there", seeds.display());
    }
    let found = root().join("target/fuzz/corpus").join(&target.name);
    fs::create_dir_all(&found)?;
    let mut fuzz = cargo();
    fuzz.args(["fuzz", "run", "--fuzz-dir"])
        .arg(&target.folder)
        // One for all, so that what several targets need is built once.
        .arg("--target-dir")
        .arg(root().join("target/fuzz"))
        .arg(&target.name)
        // What is found goes into the first folder; the seeds stay as they are.
        .arg(found)
        .arg(seeds)
        .args([
            "--",
            &format!("-max_total_time={seconds}"),
            &format!("-timeout={INPUT_SECONDS_MAX}"),
        ])
        // The sanitizer flags are unstable, the compiler is not.
        .env("RUSTC_BOOTSTRAP", "1");
    process::run(&mut fuzz, BUILD_LIMIT + Duration::from_secs(seconds)).with_context(|| {
        format!("the input is kept in {}", target.folder.join("artifacts").display())
    })
}

/// The targets of every crate that has a `fuzz` folder.
fn targets() -> Result<Vec<Target>> {
    let mut targets = Vec::new();
    for entry in root().join("crates").read_dir()? {
        let folder = entry?.path().join("fuzz");
        let Ok(files) = folder.join("fuzz_targets").read_dir() else { continue };
        for file in files {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "rs") {
                let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                targets.push(Target { folder: folder.clone(), name });
            }
        }
    }
    targets.sort_by(|one, other| one.name.cmp(&other.name));
    if targets.is_empty() {
        bail!("no crate has a fuzz/fuzz_targets folder");
    }
    Ok(targets)
}

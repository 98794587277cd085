//! The tests of `tests/browser`, two files at a time.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::counted;
use crate::steps::Report;
use crate::summary::Runner;
use crate::workspace::root;
use crate::{browser, demo, npm};

const LIMIT: Duration = Duration::from_secs(1_500);
/// Each has a browser with several renderers; more of them stretch the times that tests look at.
const AT_ONCE: &str = "2";
const TEST_LIMIT_MS: &str = "120000";

pub(super) fn run() -> Result<Report> {
    let server = demo::server()?;
    let folder = root().join("tests/browser");
    let mut node = node_test(&folder)?;
    node.env("MOTET_BIN", server).env("MOTET_CHROMIUM", browser::chromium()?);
    counted(&mut node, Runner::NodeTest, LIMIT)
}

/// node:test over every `*.test.ts` of a folder.
pub(super) fn node_test(folder: &Path) -> Result<std::process::Command> {
    npm::install()?;
    let mut files = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".test.ts") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("{} holds no *.test.ts file", folder.display());
    }
    let mut node = crate::workspace::command("node");
    node.current_dir(folder)
        .args(["--import", "tsx", "--test", "--test-reporter=spec"])
        .arg(format!("--test-concurrency={AT_ONCE}"))
        .arg(format!("--test-timeout={TEST_LIMIT_MS}"))
        .args(files);
    Ok(node)
}

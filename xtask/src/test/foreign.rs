//! The clients of others against our server: npm and PyPI packages, unchanged.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};

use super::browser_tests::node_test;
use super::counted;
use crate::steps::Report;
use crate::summary::Runner;
use crate::workspace::{command, on_path, root, target};
use crate::{demo, install, process};

const INSTALL_LIMIT: Duration = Duration::from_secs(300);
const LIMIT: Duration = Duration::from_secs(900);

pub(super) fn run() -> Result<Report> {
    let server = demo::server()?;
    let python = python_environment()?;
    let mut node = node_test(&root().join("tests/foreign"))?;
    node.env("MOTET_BIN", server).env("MOTET_PYTHON", python);
    counted(&mut node, Runner::NodeTest, LIMIT)
}

/// A Python of our own with the packages of `tests/foreign/requirements.txt`; gives its path.
fn python_environment() -> Result<PathBuf> {
    let folder = target().join("python");
    let python = folder.join("bin/python");
    if !python.is_file() {
        let base = base_python()?;
        println!("Creating a Python environment in {}", folder.display());
        process::capture(command(base).args(["-m", "venv"]).arg(&folder), INSTALL_LIMIT)?;
    }
    let mut pip = command(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--requirement", "tests/foreign/requirements.txt"]);
    process::capture(&mut pip, INSTALL_LIMIT)?;
    Ok(python)
}

fn base_python() -> Result<PathBuf> {
    let works = |python: &PathBuf| {
        process::capture(command(python).args(["-c", "import venv, ensurepip"]), INSTALL_LIMIT)
            .is_ok()
    };
    if let Some(python) = on_path("python3").filter(works) {
        return Ok(python);
    }
    if !install::is_debian_root() {
        bail!("Python 3 with venv is missing: install it, then run this again");
    }
    install::debian(&["python3", "python3-venv"])?;
    Ok(PathBuf::from("/usr/bin/python3"))
}

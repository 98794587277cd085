//! Installing what a command needs, announced before it is done.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process;
use crate::workspace::{self, command, on_path};

const MINUTE: Duration = Duration::from_secs(60);

/// Whether Debian packages can be installed here without asking anybody.
pub(crate) fn is_debian_root() -> bool {
    Path::new("/usr/bin/apt-get").is_file() && rustix::process::geteuid().is_root()
}

/// Installs Debian packages.
pub(crate) fn debian(packages: &[&str]) -> Result<()> {
    println!("Installing Debian packages: {}", packages.join(" "));
    let install = || {
        let mut apt = command("apt-get");
        apt.args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages);
        process::capture(apt.env("DEBIAN_FRONTEND", "noninteractive"), 10 * MINUTE)
    };
    if install().is_err() {
        // The usual cause is a package list that is old or not there yet.
        process::capture(command("apt-get").args(["update", "-qq"]), 5 * MINUTE)?;
        install().with_context(|| format!("apt-get install {}", packages.join(" ")))?;
    }
    Ok(())
}

/// Makes sure that `strace` is there, and says whether it may trace. Only Linux has it.
pub(crate) fn tracer() -> Result<bool> {
    if !cfg!(target_os = "linux") {
        return Ok(false);
    }
    if on_path("strace").is_none() {
        if !is_debian_root() {
            bail!("strace is missing: install it, the tests of power cuts record writes with it");
        }
        debian(&["strace"])?;
    }
    let mut probe = command("strace");
    probe.args(["-o", "/dev/null", "true"]);
    Ok(process::capture(&mut probe, MINUTE).is_ok())
}

/// Makes sure that a cargo subcommand is there; builds it when it is not.
pub(crate) fn cargo_tool(name: &str) -> Result<()> {
    if has_cargo_tool(name) {
        return Ok(());
    }
    println!("Installing {name} with cargo install; this takes some minutes once");
    let install = |locked: &[&str]| {
        let mut cargo = workspace::cargo();
        cargo.args(["install", "--quiet"]).args(locked).arg(name);
        process::run(&mut cargo, 20 * MINUTE)
    };
    // A lock file can name a crate version that the index at hand does not carry.
    if install(&["--locked"]).is_err() {
        install(&[]).with_context(|| format!("run `cargo install {name}` by hand"))?;
    }
    Ok(())
}

/// Whether a cargo subcommand is installed.
pub(crate) fn has_cargo_tool(name: &str) -> bool {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    on_path(name).is_some() || home.is_some_and(|home| home.join("bin").join(name).is_file())
}

/// Makes sure that Node.js and npm are there and new enough.
pub(crate) fn node() -> Result<()> {
    const MAJOR_MIN: u32 = 20;
    if on_path("node").is_none() || on_path("npm").is_none() {
        if !is_debian_root() {
            bail!(
                "Node.js {MAJOR_MIN} or newer with npm is missing: install it, then run this again"
            );
        }
        debian(&["nodejs", "npm"])?;
    }
    let version = process::capture(command("node").arg("--version"), MINUTE)?;
    let major = version.trim().trim_start_matches('v').split('.').next();
    let major: u32 = major.and_then(|text| text.parse().ok()).unwrap_or_default();
    if major < MAJOR_MIN {
        bail!("Node.js {MAJOR_MIN} or newer is needed, this is {}: update it", version.trim());
    }
    Ok(())
}

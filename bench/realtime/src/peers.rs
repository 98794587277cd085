//! The systems that run beside ours: found, or installed where this process may do so.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::pubsub::Protocol;
use crate::server::Server;

/// A peer that runs.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) server: Server,
}

/// Starts the peers that are there; says in one line each which are not.
pub(crate) fn start() -> Result<Vec<Peer>> {
    let mut peers = Vec::new();
    if let Some(binary) = find("nats-server", "nats-server") {
        let name = format!("NATS {}", version(&binary, "--version")?);
        peers.push(Peer { name, protocol: Protocol::Nats, server: Server::nats(&binary)? });
    }
    if let Some(binary) = find("redis-server", "redis-server") {
        let name = format!("Redis {}", version(&binary, "--version")?);
        peers.push(Peer { name, protocol: Protocol::Redis, server: Server::redis(&binary)? });
    }
    Ok(peers)
}

fn find(program: &str, package: &str) -> Option<PathBuf> {
    if let Some(path) = on_path(program) {
        return Some(path);
    }
    if !rustix::process::geteuid().is_root() || on_path("apt-get").is_none() {
        println!("Not beside it: {program} is not installed (Debian: apt-get install {package})");
        return None;
    }
    println!("Installing {package}");
    let installed = apt(&["install", "--yes", "--no-install-recommends", package])
        || (apt(&["update"]) && apt(&["install", "--yes", "--no-install-recommends", package]));
    let found = on_path(program);
    if !installed || found.is_none() {
        println!("Not beside it: {package} could not be installed");
    }
    found
}

fn apt(arguments: &[&str]) -> bool {
    let mut apt = Command::new("apt-get");
    // In run level 1 the package's own service is not started.
    apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    apt.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    apt.status().is_ok_and(|status| status.success())
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .chain(["/usr/sbin", "/usr/bin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The first word of the answer that looks like a version.
fn version(binary: &Path, argument: &str) -> Result<String> {
    let output = Command::new(binary)
        .arg(argument)
        .output()
        .with_context(|| format!("asking {} for its version", binary.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_version =
        |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    let words = text.split([' ', '=', '\n', 'v']);
    Ok(words.into_iter().find(is_version).unwrap_or("(unknown version)").to_owned())
}

//! Where things are, and child commands that see a clean environment.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

/// The root folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies one folder below the root")
        .to_path_buf()
}

/// The folder that build products go to.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The user's cache folder for what is expensive to make again.
pub(crate) fn cache() -> Result<PathBuf> {
    if let Some(dir) = env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        return Ok(PathBuf::from(dir).join("motet"));
    }
    let home =
        env::home_dir().context("no home folder: set XDG_CACHE_HOME to a writable folder")?;
    Ok(home.join(".cache").join("motet"))
}

/// Whether a continuous-integration run is under way, where nobody can answer a question.
pub(crate) fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// The file called `name` on the user's PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// A command that runs in the root folder.
///
/// What `cargo run` added to the environment is taken away again: build scripts that watch those
/// variables would otherwise run anew each time xtask and a shell take turns.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    for (key, _) in env::vars_os() {
        let name = key.to_string_lossy();
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        if own || name == "CARGO_PRIMARY_PACKAGE" || name == "OUT_DIR" {
            command.env_remove(&key);
        }
    }
    if let Some(paths) = env::var_os("LD_LIBRARY_PATH") {
        let kept = env::split_paths(&paths).filter(|dir| !is_cargo_library_folder(dir));
        match env::join_paths(kept) {
            Ok(kept) if !kept.is_empty() => command.env("LD_LIBRARY_PATH", kept),
            _ => command.env_remove("LD_LIBRARY_PATH"),
        };
    }
    command
}

fn is_cargo_library_folder(dir: &Path) -> bool {
    dir.starts_with(target())
        || dir.components().any(|part| part.as_os_str() == "rustlib")
        || dir.components().any(|part| part.as_os_str() == "toolchains")
}

/// `cargo`, the same one that runs xtask.
pub(crate) fn cargo() -> Command {
    command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

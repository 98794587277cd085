//! The hash that pairs JavaScript and WASM of one build.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::workspace::root;

/// What the modules and the facade are made of.
const SOURCES: [&str; 6] = [
    "Cargo.lock",
    "Cargo.toml",
    "crates/motet-protocol",
    "crates/motet-cluster",
    "crates/motet-realtime",
    "crates/motet-web",
];
const FACADE: &str = "packages/motet/src";

/// Twelve hexadecimal digits that change with any source of the browser part.
pub(crate) fn of_sources() -> Result<String> {
    let mut files = Vec::new();
    for source in SOURCES.iter().chain([&FACADE]) {
        collect(&root().join(source), &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let name = file.strip_prefix(root()).unwrap_or(&file).to_string_lossy().into_owned();
        let bytes = fs::read(&file).with_context(|| format!("cannot read {name}"))?;
        hash.update(name.as_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
    }
    Ok(hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_file() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let entries = path.read_dir().with_context(|| format!("cannot list {}", path.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_source = matches!(name.rsplit('.').next(), Some("rs" | "toml" | "ts" | "lock"));
        let is_test = matches!(name.as_str(), "tests" | "benches" | "fuzz" | "target");
        if (path.is_dir() && !is_test) || (path.is_file() && is_source) {
            collect(&path, files)?;
        }
    }
    Ok(())
}

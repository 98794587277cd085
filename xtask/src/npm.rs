//! `cargo xtask npm`: the npm package `motet`, and the tools that npm brings.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::workspace::{command, root, target};
use crate::{install, process, wasm};

const INSTALL_LIMIT: Duration = Duration::from_secs(600);
const BUILD_LIMIT: Duration = Duration::from_secs(300);
/// npm writes this at the end of an install; it is older than the lock file when one is due.
const INSTALLED: &str = "node_modules/.package-lock.json";

/// A tool of the root package, installed if it is not there yet.
pub(crate) fn tool(name: &str) -> Result<PathBuf> {
    install()?;
    let path = root().join("node_modules/.bin").join(name);
    if !path.exists() {
        bail!("npm did not install {name}: remove node_modules and run this again");
    }
    Ok(path)
}

/// Installs all npm workspaces; does nothing when they are installed as the manifests say.
pub(crate) fn install() -> Result<()> {
    install::node()?;
    if is_installed()? {
        return Ok(());
    }
    println!("Installing npm packages");
    let exact = || process::run(command("npm").args(["ci", "--loglevel=error"]), INSTALL_LIMIT);
    if !root().join("package-lock.json").is_file() || exact().is_err() {
        println!("package-lock.json does not match the manifests: running npm install");
        process::run(command("npm").args(["install", "--loglevel=error"]), INSTALL_LIMIT)?;
    }
    // npm leaves the file as it is when there was nothing to do.
    let marker = root().join(INSTALLED);
    let content = fs::read(&marker).context("npm wrote no record of what it installed")?;
    fs::write(&marker, content)?;
    Ok(())
}

fn is_installed() -> Result<bool> {
    let Ok(installed) = fs::metadata(root().join(INSTALLED)) else {
        return Ok(false);
    };
    let installed = installed.modified()?;
    let mut manifests = vec![root().join("package.json"), root().join("package-lock.json")];
    manifests.extend(workspaces()?.into_iter().map(|folder| folder.join("package.json")));
    for manifest in manifests {
        match fs::metadata(&manifest) {
            Ok(data) if data.modified()? <= installed => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The folders of the root manifest's `workspaces` that hold a package.
pub(crate) fn workspaces() -> Result<Vec<PathBuf>> {
    let manifest = fs::read_to_string(root().join("package.json"))?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest)?;
    let patterns = manifest["workspaces"].as_array().context("package.json lists no workspaces")?;
    let mut folders = Vec::new();
    for pattern in patterns.iter().filter_map(|pattern| pattern.as_str()) {
        match pattern.strip_suffix("/*") {
            Some(parent) => folders.extend(folders_in(&root().join(parent))),
            None => folders.push(root().join(pattern)),
        }
    }
    folders.retain(|folder| folder.join("package.json").is_file());
    folders.sort();
    Ok(folders)
}

fn folders_in(parent: &Path) -> Vec<PathBuf> {
    let entries = parent.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Builds the package and packs it; gives the tarball.
pub(crate) fn build() -> Result<PathBuf> {
    compile()?;
    pack()
}

/// Builds the package's JavaScript, declarations and source maps.
pub(crate) fn compile() -> Result<()> {
    for module in wasm::MODULES {
        if !module.wasm().is_file() {
            bail!("{} is missing: run `cargo xtask wasm` first", module.wasm().display());
        }
    }
    install()?;
    println!("Building packages/motet");
    process::run(
        command("npm").args(["run", "build", "--workspace", "motet", "--loglevel=error"]),
        BUILD_LIMIT,
    )
}

fn package() -> PathBuf {
    root().join("packages/motet")
}

fn pack() -> Result<PathBuf> {
    let folder = target().join("npm");
    fs::create_dir_all(&folder)?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(root().join(licence), package().join(licence))?;
    }
    for old in folder.read_dir()?.flatten().filter(|file| file.path().extension().is_some()) {
        fs::remove_file(old.path())?;
    }
    let mut npm = command("npm");
    npm.args(["pack", "--workspace", "motet", "--json", "--loglevel=error", "--ignore-scripts"]);
    let printed = process::capture(npm.arg("--pack-destination").arg(&folder), BUILD_LIMIT)?;
    let packed: serde_json::Value = serde_json::from_str(&printed).context("npm pack --json")?;
    // Some npm versions print a list, others an object by package name.
    let package = packed.get(0).or_else(|| packed.get("motet")).unwrap_or(&packed);
    let name = package["filename"].as_str().context("npm pack names no file")?;
    let tarball = folder.join(name);
    let size = fs::metadata(&tarball)?.len();
    println!("Packed: {} ({} KiB)", tarball.display(), size / 1024);
    Ok(tarball)
}

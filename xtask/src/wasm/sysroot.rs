//! The standard library for WASM, built once from a distribution's sources and kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use super::toolchain::TARGET;
use crate::process;
use crate::workspace::{cache, cargo, command};

const BUILD_LIMIT: Duration = Duration::from_secs(600);
/// Part of the key: a change here makes every machine build the library anew.
const RECIPE: &str = "std opt-level=3 bitcode v1";

/// A finished sysroot.
pub(crate) struct Sysroot {
    pub(crate) folder: PathBuf,
    pub(crate) linker: PathBuf,
}

impl Sysroot {
    pub(crate) fn rustc(&self) -> PathBuf {
        self.folder.join("bin/rustc")
    }

    pub(crate) fn rustdoc(&self) -> PathBuf {
        self.folder.join("bin/rustdoc")
    }
}

/// The sysroot for this compiler, from the cache or built now.
pub(crate) fn cached(rustc: &Path, linker: &Path) -> Result<Sysroot> {
    let version = process::capture(command(rustc).arg("-vV"), BUILD_LIMIT)?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc -vV names no host")?;
    let key = Sha256::new().chain_update(RECIPE).chain_update(&version).finalize();
    let key: String = key.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let folder = cache()?.join(format!("wasm-std-{key}"));
    if !folder.join("bin/rustc").is_file() {
        println!("Building the WASM standard library once into {}", folder.display());
        build(rustc, linker, host, &folder)?;
    }
    Ok(Sysroot { folder, linker: linker.to_path_buf() })
}

/// Builds beside the final place and renames, so that a half-built sysroot is never found.
fn build(rustc: &Path, linker: &Path, host: &str, folder: &Path) -> Result<()> {
    let parent = folder.parent().context("the cache folder has a parent")?;
    fs::create_dir_all(parent)?;
    let work = tempfile::Builder::new().prefix("wasm-std-").tempdir_in(parent)?;
    let libraries = build_std(rustc, linker, work.path())?;

    let staged = work.path().join("sysroot");
    let target_lib = staged.join("lib/rustlib").join(TARGET).join("lib");
    let host_dir = staged.join("lib/rustlib").join(host);
    fs::create_dir_all(&target_lib)?;
    fs::create_dir_all(host_dir.join("bin"))?;
    fs::create_dir_all(staged.join("bin"))?;
    for library in libraries {
        let name = library.file_name().context("a library is a file")?;
        fs::copy(&library, target_lib.join(name))?;
    }
    let base = process::capture(command(rustc).args(["--print", "sysroot"]), BUILD_LIMIT)?;
    let base = Path::new(base.trim()).join("lib/rustlib").join(host).join("lib");
    symlink(&base, &host_dir.join("lib"))?;
    symlink(linker, &host_dir.join("bin/rust-lld"))?;
    let tools = rustc.parent().context("rustc lies in a folder")?;
    for tool in ["rustc", "rustdoc"] {
        let script = format!(
            "#!/bin/sh\nexec {} --sysroot {} \"$@\"\n",
            tools.join(tool).display(),
            folder.display()
        );
        write_executable(&staged.join("bin").join(tool), &script)?;
    }
    match fs::rename(&staged, folder) {
        // Another process was faster; its sysroot is the same.
        Err(_) if folder.join("bin/rustc").is_file() => Ok(()),
        renamed => renamed.with_context(|| format!("cannot create {}", folder.display())),
    }
}

/// Compiles the library for an empty crate and lists what came out of it.
fn build_std(rustc: &Path, linker: &Path, work: &Path) -> Result<Vec<PathBuf>> {
    let manifest = "[package]\nname = \"stdhost\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
                    [workspace]\n[profile.release]\nopt-level = 3\ncodegen-units = 1\n\
                    panic = \"abort\"\n";
    fs::create_dir(work.join("src"))?;
    fs::write(work.join("src/lib.rs"), "#![no_std]\n")?;
    fs::write(work.join("Cargo.toml"), manifest)?;
    let target = work.join("target");
    let mut build = cargo();
    build
        .current_dir(work)
        .args(["build", "--quiet", "--release", "--offline", "--target", TARGET])
        .arg("-Zbuild-std=std,panic_abort,proc_macro,test")
        // Confined to this one build: stable compilers refuse -Zbuild-std without it.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTC", rustc)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
        // Without bitcode in the library, link-time optimisation of the modules fails.
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", "-Cembed-bitcode=yes");
    process::capture(&mut build, BUILD_LIMIT)?;

    let products = target.join(TARGET).join("release/deps");
    let mut libraries = Vec::new();
    for entry in products.read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".rlib") && !name.contains("stdhost") {
            libraries.push(path);
        }
    }
    if libraries.is_empty() {
        bail!("building the WASM standard library gave no libraries");
    }
    Ok(libraries)
}

#[cfg(unix)]
fn symlink(original: &Path, link: &Path) -> Result<()> {
    std::os::unix::fs::symlink(original, link)
        .with_context(|| format!("cannot link {}", link.display()))
}

#[cfg(unix)]
fn write_executable(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

//! Which compiler builds for `wasm32-unknown-unknown`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::sysroot;
use crate::workspace::{command, on_path};
use crate::{install, process};

/// The target that all browser modules are built for.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

const SHORT: Duration = Duration::from_secs(60);
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// The oldest compiler that the workspace builds with (`rust-version` of the root manifest).
const MINOR_MIN: u32 = 95;

/// A compiler that has the target's standard library.
pub(crate) enum Toolchain {
    /// The active toolchain has the target.
    Active,
    /// A distribution's compiler over a sysroot of our own.
    Sysroot(sysroot::Sysroot),
}

impl Toolchain {
    /// Finds a compiler for the target, or installs what makes one.
    pub(crate) fn find_or_install() -> Result<Self> {
        let active = active_sysroot()?;
        if has_target(&active) {
            return Ok(Self::Active);
        }
        if install::is_debian_root()
            && !debian_is_ready()
            && let Err(error) = install::debian(&["rustc-web", "rust-web-src"])
        {
            println!("Debian's WASM toolchain cannot be installed: {error:#}");
        }
        if debian_is_ready() {
            let linker = linker(&active).context(
                "no WASM linker: rust-lld of the active toolchain or Debian's lld is needed",
            )?;
            return sysroot::cached(Path::new(DEBIAN_RUSTC), &linker).map(Self::Sysroot);
        }
        if on_path("rustup").is_some() {
            println!("Running: rustup target add {TARGET}");
            process::run(command("rustup").args(["target", "add", TARGET]), 10 * SHORT)
                .with_context(|| format!("run `rustup target add {TARGET}` by hand"))?;
            return Ok(Self::Active);
        }
        bail!(
            "the {TARGET} target is missing: run `rustup target add {TARGET}`, or as root on \
             Debian `apt-get install rustc-web rust-web-src`"
        );
    }

    /// Makes a cargo command build with this compiler.
    pub(crate) fn apply(&self, cargo: &mut Command) {
        cargo.args(["--target", TARGET]);
        if let Self::Sysroot(sysroot) = self {
            cargo
                .env("RUSTC", sysroot.rustc())
                .env("RUSTDOC", sysroot.rustdoc())
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &sysroot.linker);
        }
    }

    /// Makes a `cargo check` lint the target's code, if a Clippy of the same compiler is there.
    pub(crate) fn apply_clippy(&self, cargo: &mut Command) -> bool {
        const DEBIAN_CLIPPY: &str = "/usr/bin/clippy-driver";
        self.apply(cargo);
        match self {
            Self::Active => {
                let driver = on_path("clippy-driver");
                driver.map(|driver| cargo.env("RUSTC_WORKSPACE_WRAPPER", driver)).is_some()
            }
            Self::Sysroot(_) if Path::new(DEBIAN_CLIPPY).is_file() => {
                cargo.env("RUSTC_WORKSPACE_WRAPPER", DEBIAN_CLIPPY);
                true
            }
            Self::Sysroot(_) => false,
        }
    }

    /// One line that says which compiler it is.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Active => format!("the active toolchain's {TARGET}"),
            Self::Sysroot(sysroot) => {
                format!("{DEBIAN_RUSTC} over {}", sysroot.folder.display())
            }
        }
    }
}

fn active_sysroot() -> Result<PathBuf> {
    let printed = process::capture(command("rustc").args(["--print", "sysroot"]), SHORT)?;
    Ok(PathBuf::from(printed.trim()))
}

fn has_target(sysroot: &Path) -> bool {
    let Ok(entries) = sysroot.join("lib/rustlib").join(TARGET).join("lib").read_dir() else {
        return false;
    };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    })
}

fn debian_is_ready() -> bool {
    let source = Path::new("/usr/lib/rustlib/src/rust/library/std/Cargo.toml");
    let version = || process::capture(command(DEBIAN_RUSTC).arg("--version"), SHORT).ok();
    source.is_file() && version().is_some_and(|text| is_new_enough(&text))
}

fn is_new_enough(version: &str) -> bool {
    let minor = version.split_whitespace().nth(1).and_then(|text| text.split('.').nth(1));
    minor.and_then(|minor| minor.parse::<u32>().ok()).is_some_and(|minor| minor >= MINOR_MIN)
}

fn linker(active: &Path) -> Option<PathBuf> {
    let hosts = active.join("lib/rustlib").read_dir().ok()?;
    let bundled = hosts.flatten().map(|host| host.path().join("bin/rust-lld"));
    bundled.into_iter().find(|file| file.is_file()).or_else(|| on_path("wasm-ld"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_older_than_the_workspace_asks_for_is_refused() {
        assert!(is_new_enough("rustc 1.96.0 (ac68faa20 2026-05-25)"));
        assert!(!is_new_enough("rustc 1.78.0 (9b00956e5 2024-04-29)"));
        assert!(!is_new_enough("rustc"));
    }
}

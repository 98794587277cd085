//! Finding or installing Chromium.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::install;
use crate::workspace::on_path;

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/// The Chromium to run tabs in: `MOTET_CHROMIUM`, else what is on the PATH, else Debian's.
pub(crate) fn chromium() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("MOTET_CHROMIUM") {
        let path = PathBuf::from(path);
        if path.is_file() {
            return Ok(path);
        }
        bail!("MOTET_CHROMIUM names no file: {}", path.display());
    }
    if let Some(path) = NAMES.iter().find_map(|name| on_path(name)) {
        return Ok(path);
    }
    if !install::is_debian_root() {
        bail!("Chromium is missing: install it, or set MOTET_CHROMIUM to its executable");
    }
    install::debian(&["chromium", "chromium-driver"])?;
    match on_path("chromium") {
        Some(path) => Ok(path),
        None => bail!("apt-get installed chromium, but it is not on the PATH"),
    }
}

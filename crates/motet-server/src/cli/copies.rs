//! `motet backup` and `motet restore`.

use std::path::{Path, PathBuf};

use clap::Args;
use motet_protocol::ErrorCode;

use super::failure::CommandError;
use super::output::Progress;
use super::place::{VIEW_MAX, open_existing};

/// What to back up, and where to.
#[derive(Debug, Args)]
pub struct BackupOptions {
    /// The store's directory. Servers may have it open and write to it meanwhile.
    #[arg(long, value_name = "DIR", env = "MOTET_DATA")]
    data: PathBuf,
    /// The directory to make the backup in, absent or empty.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Only this environment. May be given several times.
    #[arg(long = "env", value_name = "NAME")]
    environments: Vec<String>,
}

/// What to restore, and where to.
#[derive(Debug, Args)]
pub struct RestoreOptions {
    /// The backup's directory.
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The directory to make the store in, absent or empty.
    #[arg(long, value_name = "DIR", env = "MOTET_DATA")]
    data: PathBuf,
}

impl BackupOptions {
    /// Makes the backup.
    ///
    /// # Errors
    /// `NOT_A_STORE` if something is in the directory already.
    pub fn run(self) -> Result<(), CommandError> {
        copy("backed up", &self.data, &self.to, self.environments)
    }
}

impl RestoreOptions {
    /// Makes a store of a backup.
    ///
    /// # Errors
    /// `NOT_A_STORE` if something is in the directory already: nothing is overwritten.
    pub fn run(self) -> Result<(), CommandError> {
        copy("restored", &self.from, &self.data, Vec::new())
    }
}

fn copy(
    what: &'static str,
    from: &Path,
    to: &Path,
    wanted: Vec<String>,
) -> Result<(), CommandError> {
    let store = open_existing(from, VIEW_MAX)?;
    let there = store.environments()?;
    if let Some(missing) = wanted.iter().find(|name| !there.contains(name)) {
        let what = format!("{}: environment {missing:?}", from.display());
        return Err(CommandError::Refused { code: ErrorCode::EnvironmentNotFound, what });
    }
    let environments = if wanted.is_empty() { there } else { wanted };
    let names: Vec<_> = environments.iter().map(String::as_str).collect();
    Progress::of_files(what, to, || Ok(store.copy_to(to, &names)?))?;
    super::note(&format!("copied to {}: {}", to.display(), names.join(", ")));
    Ok(())
}

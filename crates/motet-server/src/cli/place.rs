//! Where a command finds its documents.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use motet_protocol::ErrorCode;
use motet_store::engine::lmdb;
use motet_store::{Env, Store, StoreOptions};

use super::failure::CommandError;

/// A store and one of its environments.
#[derive(Debug, Args)]
pub struct Place {
    /// The store's directory. Servers and other commands may have it open too.
    #[arg(long, value_name = "DIR", env = "MOTET_DATA")]
    pub data: PathBuf,
    /// The environment.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub env: String,
}

impl Place {
    /// The environment, which has to be there.
    ///
    /// # Errors
    /// What is in the way, and `ENVIRONMENT_NOT_FOUND`.
    pub fn existing(&self) -> Result<Env, CommandError> {
        let store = open_existing(&self.data, VIEW_MAX)?;
        store.existing_env(&self.env)?.ok_or_else(|| {
            let what = format!("{}: environment {:?}", self.data.display(), self.env);
            CommandError::Refused { code: ErrorCode::EnvironmentNotFound, what }
        })
    }

    /// The environment, made where there is none.
    ///
    /// # Errors
    /// What is in the way.
    pub fn made(&self) -> Result<Env, CommandError> {
        Ok(Store::open(&self.data)?.env(&self.env)?)
    }
}

/// Opens a store that has to be there: a misspelt path is no new store.
pub(super) fn open_existing(
    path: &std::path::Path,
    view_max: Duration,
) -> Result<Store, CommandError> {
    let engine = lmdb::Options { view_max, ..lmdb::Options::default() };
    Ok(Store::open_existing(path, StoreOptions { engine, ..StoreOptions::default() })?)
}

/// How long a command may look at one state of the store.
pub(super) const VIEW_MAX: Duration = Duration::from_secs(10);

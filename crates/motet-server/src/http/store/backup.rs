//! Backups: a copy of an environment in the directory that is configured for them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use motet_protocol::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::StoreApi;
use super::call::{Administers, Call};
use super::document::Nothing;
use super::failure::Failure;
use super::params::Parameters;

/// A backup that was made.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Backup {
    /// Its directory within `store.backup_path`; `motet restore` takes it.
    name: String,
    /// Bytes of its files.
    bytes: u64,
}

pub(super) async fn backup(
    call: Call<Administers>,
    _: Parameters<Nothing>,
) -> Result<Json<Backup>, Failure> {
    if call.api().keys.backup_path.is_empty() {
        return Err(Failure::new(ErrorCode::BackupUnavailable));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("{}-{}", call.environment(), now.as_millis());
    let copied = name.clone();
    let made = call.with_existing(|api, env| copy(api, env.name(), copied)).await;
    made.map(Json).map_err(|failure| match failure.code {
        ErrorCode::OutcomeUnknown => {
            let message = format!("the backup {name:?} takes longer; until it is whole, who opens it is told COPY_UNFINISHED");
            Failure::because(ErrorCode::OutcomeUnknown, message)
        }
        _ => failure,
    })
}

fn copy(api: &StoreApi, environment: &str, name: String) -> Result<Backup, Failure> {
    let path = PathBuf::from(&api.keys.backup_path).join(&name);
    api.store.copy_to(&path, &[environment])?;
    Ok(Backup { name, bytes: bytes_under(&path) })
}

/// Bytes of the files in a directory and those below it, as far as they can be seen.
fn bytes_under(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_under(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

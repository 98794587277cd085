//! The environments that each case runs on: in memory and on disk.

use motet_store::{Env, Store};
use tempfile::TempDir;

/// Runs a case on a fresh environment of every kind.
pub(crate) fn on_each(case: impl Fn(&Env)) {
    case(&Store::in_memory().env("test").unwrap());
    let (store, _directory) = on_disk();
    case(&store.env("test").unwrap());
}

/// A fresh store on disk.
pub(crate) fn on_disk() -> (Store, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Store::open(directory.path().join("data")).unwrap(), directory)
}

//! A store's directory: whether it is one, how it comes into being, and how a copy of one does.
//!
//! The file `MOTET-STORE` says that the directory is a store. A copy has the same file under the name
//! `MOTET-COPY` until everything is there, so that one which was cut short is never taken for a store.
//! Stores from before there was such a file are known by an environment of theirs.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::engine::lmdb;

/// What a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Absent, or without anything in it: a store may come into being here.
    Vacant,
    /// A store.
    Store,
    /// A store from before there was a marker.
    Unmarked,
}

/// The store in this directory, which is made where it is absent or empty.
///
/// # Errors
/// [`Error::NotAStore`] if the directory holds something else, [`Error::CopyUnfinished`],
/// [`Error::StoreNewer`], and what the medium does.
pub(crate) fn open_or_make(path: &Path) -> Result<PathBuf, Error> {
    let failed = |cause| from_io(cause, path, "making the store");
    match examine(path)? {
        Found::Store => {}
        Found::Unmarked => {
            // It went on without one so far.
            let _stays_unmarked = mark(path);
        }
        Found::Vacant => {
            fs::create_dir_all(path).map_err(failed)?;
            mark(path)?;
        }
    }
    fs::create_dir_all(path.join(ENVIRONMENTS)).map_err(failed)?;
    path.canonicalize().map_err(failed)
}

/// The store in this directory, in which nothing is made.
///
/// # Errors
/// As for [`open_or_make`], and [`Error::NotAStore`] if there is none.
pub(crate) fn find(path: &Path) -> Result<PathBuf, Error> {
    if examine(path)? == Found::Vacant {
        let why = if path.is_dir() { "it is empty" } else { "there is no such directory" };
        return Err(not_a_store(path, why));
    }
    path.canonicalize().map_err(|cause| from_io(cause, path, "looking for the store"))
}

fn examine(path: &Path) -> Result<Found, Error> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Vacant),
        Err(error) => return Err(from_io(error, path, "looking at the store")),
        Ok(found) if !found.is_dir() => return Err(not_a_store(path, "it is no directory")),
        Ok(_) => {}
    }
    if has_marker(path)? {
        return Ok(Found::Store);
    }
    if path.join(COPYING).exists() {
        return Err(Error::CopyUnfinished { path: path.into() });
    }
    if has_environment(path) {
        return Ok(Found::Unmarked);
    }
    let holds_nothing = holds_only(path, &[ENVIRONMENTS])
        .and_then(|only| Ok(only && holds_only(&path.join(ENVIRONMENTS), &[])?));
    match holds_nothing {
        Ok(true) => Ok(Found::Vacant),
        // Another process may have made the store between the two looks.
        Ok(false) if has_marker(path)? => Ok(Found::Store),
        Ok(false) => Err(not_a_store(path, "it is not empty and has no environments")),
        Err(error) => Err(from_io(error, path, "listing the directory")),
    }
}

fn has_marker(path: &Path) -> Result<bool, Error> {
    let text = match fs::read(path.join(MARKER)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(from_io(error, path, "reading MOTET-STORE")),
    };
    // A cut of power may have taken a part of what was never synced.
    if marker_text().as_bytes().starts_with(&text) {
        return Ok(true);
    }
    let number = str::from_utf8(&text).ok().and_then(|text| text.strip_prefix(MARKER_NAME));
    match number.and_then(|number| number.trim_end().parse::<u32>().ok()) {
        Some(found) if found > MARKER_NUMBER => {
            Err(Error::StoreNewer { found, known: MARKER_NUMBER })
        }
        _ => Err(not_a_store(path, "its MOTET-STORE is something else's")),
    }
}

/// Whether the directory has an environment with data of ours.
fn has_environment(path: &Path) -> bool {
    let entries = fs::read_dir(path.join(ENVIRONMENTS)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| lmdb::is_environment(&path))
}

/// Whether a directory holds at most these names. An absent one does.
fn holds_only(path: &Path, names: &[&str]) -> io::Result<bool> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        if !names.iter().any(|known| name == *known) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes the marker, unless another process has.
fn mark(path: &Path) -> Result<(), Error> {
    let failed = |cause| from_io(cause, path, "marking the store");
    let marker = path.join(MARKER);
    match File::create_new(&marker) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        file => file.and_then(|file| fill(&file)).map_err(failed)?,
    }
    // A copy may have begun between the look and this. It sees the marker and gives up, or it looked
    // before, and then is seen here.
    if path.join(COPYING).exists() {
        fs::remove_file(&marker).map_err(failed)?;
        return Err(Error::CopyUnfinished { path: path.into() });
    }
    File::open(path).and_then(|directory| directory.sync_all()).map_err(failed)
}

fn fill(mut marker: &File) -> io::Result<()> {
    marker.write_all(marker_text().as_bytes())?;
    marker.sync_all()
}

fn marker_text() -> String {
    format!("{MARKER_NAME}{MARKER_NUMBER}\n")
}

/// A copy of a store that comes into being. Unless it is finished it takes away again what it has
/// made, and nothing else.
pub(crate) struct Copying {
    path: PathBuf,
    made: Vec<Made>,
}

/// What a copy has made.
enum Made {
    File(PathBuf),
    /// Others may put something into it.
    Folder(PathBuf),
    /// With all that is in it.
    Environment(PathBuf),
}

impl Copying {
    /// Begins in a directory that is absent or empty. Of several that begin there, one does.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if something is there already or if the directory is within a store,
    /// [`Error::CopyUnfinished`] if another copy has begun there, and what the medium does.
    pub(crate) fn begin(path: &Path) -> Result<Self, Error> {
        expect_vacant(path, &[])?;
        expect_outside_stores(path)?;
        let mut copying = Self { path: path.into(), made: Vec::new() };
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).map_err(|cause| copying.failed(cause))?;
        }
        copying.make_root()?;
        let claim = path.join(COPYING);
        let file = match File::create_new(&claim) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::CopyUnfinished { path: path.into() });
            }
            file => file.map_err(|cause| copying.failed(cause))?,
        };
        copying.made.push(Made::File(claim));
        fill(&file).map_err(|cause| copying.failed(cause))?;
        // Another may have finished, or made a store, since the first look.
        expect_vacant(path, &[COPYING])?;
        copying.make_dir(path.join(ENVIRONMENTS), Made::Folder)?;
        Ok(copying)
    }

    /// A new directory for the copy of this environment.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if it is there already, and what the medium does.
    pub(crate) fn environment(&mut self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(ENVIRONMENTS).join(name);
        self.make_dir(path.clone(), Made::Environment)?;
        Ok(path)
    }

    /// Makes a store of it.
    ///
    /// # Errors
    /// What the medium does.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        let marker = self.path.join(MARKER);
        fs::rename(self.path.join(COPYING), &marker).map_err(|cause| self.failed(cause))?;
        self.made.push(Made::File(marker));
        File::open(&self.path)
            .and_then(|directory| directory.sync_all())
            .map_err(|cause| self.failed(cause))?;
        self.made.clear();
        Ok(())
    }

    /// The directory itself, which may be there.
    fn make_root(&mut self) -> Result<(), Error> {
        match fs::create_dir(&self.path) {
            Ok(()) => self.made.push(Made::Folder(self.path.clone())),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(self.failed(error)),
        }
        Ok(())
    }

    fn make_dir(&mut self, path: PathBuf, made: fn(PathBuf) -> Made) -> Result<(), Error> {
        match fs::create_dir(&path) {
            Ok(()) => self.made.push(made(path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(not_a_store(&self.path, "it is not empty"));
            }
            Err(error) => return Err(self.failed(error)),
        }
        Ok(())
    }

    fn failed(&self, cause: io::Error) -> Error {
        from_io(cause, &self.path, "copying the store")
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        // The last first: as long as anything is left, so is the file that says what it is.
        for made in self.made.drain(..).rev() {
            let _the_first_error_is_told = made.remove();
        }
    }
}

impl Made {
    fn remove(self) -> io::Result<()> {
        match self {
            Self::File(path) => fs::remove_file(path),
            Self::Folder(path) => fs::remove_dir(path),
            Self::Environment(path) => fs::remove_dir_all(path),
        }
    }
}

/// Refuses a directory that holds anything but these names.
fn expect_vacant(path: &Path, names: &[&str]) -> Result<(), Error> {
    match holds_only(path, names) {
        Ok(true) => Ok(()),
        Ok(false) if is_unfinished(path) && names.is_empty() => {
            Err(Error::CopyUnfinished { path: path.into() })
        }
        Ok(false) => Err(not_a_store(path, "it is not empty")),
        Err(error) => Err(from_io(error, path, "listing the directory")),
    }
}

fn is_unfinished(path: &Path) -> bool {
    path.join(COPYING).exists() && !path.join(MARKER).exists()
}

/// Refuses a directory somewhere within a store.
fn expect_outside_stores(path: &Path) -> Result<(), Error> {
    let failed = |cause| from_io(cause, path, "looking for the directory");
    let path_whole = std::path::absolute(path).map_err(failed)?;
    let Some(existing) = path_whole.ancestors().find(|above| above.exists()) else {
        return Ok(());
    };
    let existing = existing.canonicalize().map_err(failed)?;
    let is_store = |above: &Path| above.join(MARKER).is_file() || has_environment(above);
    if existing.ancestors().any(is_store) {
        return Err(not_a_store(path, "it is within a store"));
    }
    Ok(())
}

fn not_a_store(path: &Path, why: &'static str) -> Error {
    Error::NotAStore { path: path.into(), why }
}

fn from_io(cause: io::Error, path: &Path, doing: &str) -> Error {
    match cause.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Error::ReadOnly { path: path.into() }
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::DiskFull,
        _ => Error::io(format!("{doing} {}", path.display()), cause),
    }
}

/// The folder of environments within a store.
pub(crate) const ENVIRONMENTS: &str = "env";
/// Says that a directory is a store.
const MARKER: &str = "MOTET-STORE";
/// Says that a directory is a copy which is being made, or was cut short.
const COPYING: &str = "MOTET-COPY";
const MARKER_NAME: &str = "motet-store ";
const MARKER_NUMBER: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(marker: &str) -> Result<Found, Error> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(MARKER), marker).unwrap();
        examine(dir.path())
    }

    #[test]
    fn a_marker_is_ours_whole_or_cut_short_and_a_newer_one_is_told() {
        for ours in ["motet-store 1\n", "motet-sto", ""] {
            assert_eq!(text_of(ours).unwrap(), Found::Store, "{ours:?}");
        }
        assert!(matches!(text_of("motet-store 2\n"), Err(Error::StoreNewer { found: 2, .. })));
        assert!(matches!(text_of("motet"), Ok(Found::Store)));
        assert!(matches!(text_of("a poem"), Err(Error::NotAStore { .. })));
    }

    #[test]
    fn a_copy_that_is_given_up_leaves_what_others_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy");
        let mut copying = Copying::begin(&path).unwrap();
        fs::write(copying.environment("a").unwrap().join("half"), "x").unwrap();
        assert!(matches!(examine(&path), Err(Error::CopyUnfinished { .. })));
        assert!(matches!(Copying::begin(&path), Err(Error::CopyUnfinished { .. })));
        fs::create_dir(path.join(ENVIRONMENTS).join("theirs")).unwrap();
        drop(copying);
        assert!(path.join(ENVIRONMENTS).join("theirs").is_dir());
        assert!(!path.join(ENVIRONMENTS).join("a").exists());
        assert!(!path.join(COPYING).exists());
    }

    #[test]
    fn a_store_that_begins_beside_a_copy_gives_way_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let copying = Copying::begin(&dir.path().join("copy")).unwrap();
        let told = mark(&dir.path().join("copy"));
        assert!(matches!(told, Err(Error::CopyUnfinished { .. })), "{told:?}");
        copying.finish().unwrap();
        assert_eq!(examine(&dir.path().join("copy")).unwrap(), Found::Store);
    }
}

//! What an environment's directory holds, and how it comes into being.
//!
//! A creation can end at any point, and whoever opens the directory next goes on with it: first a
//! directory `creating`, then `FORMAT`, then the data file, complete, and `creating` goes again. So
//! where `FORMAT` is, the directory is ours; where `creating` is not, the data file must be there.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{data_file, failure};
use crate::Error;

/// What a directory is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Absent, empty, or an unfinished creation: a store may come into being here.
    Vacant,
    /// A store that this build can read, as far as its headers say.
    Store,
}

/// Looks at a directory without touching it.
pub(super) fn examine(path: &Path) -> Result<Found, Error> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Vacant),
        Err(error) => return Err(Error::io(format!("looking at {}", path.display()), error)),
        Ok(metadata) if !metadata.is_dir() => return Err(not_a_store(path, "it is no directory")),
        Ok(_) => {}
    }
    if let Some(format) = read_format(path)? {
        return judge(path, &format);
    }
    if holds_only(path, &BEFORE_FORMAT).map_err(|error| listing(path, error))? {
        return Ok(Found::Vacant);
    }
    // A creation by another process may have gone on between the two looks.
    match read_format(path)? {
        Some(format) => judge(path, &format),
        None => Err(not_a_store(path, "it holds files and no FORMAT")),
    }
}

/// Whether `FORMAT` says that the directory is ours.
pub(super) fn is_ours(path: &Path) -> bool {
    read_format(path).is_ok_and(|format| format.is_some_and(|format| parse(&format).is_some()))
}

/// Refuses a directory that holds anything.
pub(super) fn expect_vacant(path: &Path) -> Result<(), Error> {
    match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(listing(path, error)),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(not_a_store(path, "it is not empty")),
        },
    }
}

fn read_format(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path.join(FORMAT)) {
        Ok(format) => Ok(Some(format)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("reading FORMAT", error)),
    }
}

fn judge(path: &Path, format: &[u8]) -> Result<Found, Error> {
    match parse(format) {
        None => Err(not_a_store(path, "its FORMAT is something else's")),
        Some(found) if found > FORMAT_NUMBER => {
            Err(Error::StoreNewer { found, known: FORMAT_NUMBER })
        }
        // In this order: `creating` goes only once the data file is there.
        Some(_) if path.join(CREATING).exists() => Ok(Found::Vacant),
        Some(_) => data_file::check_header(&path.join(DATA)).map(|()| Found::Store),
    }
}

fn parse(format: &[u8]) -> Option<u32> {
    let number = str::from_utf8(format).ok()?.strip_prefix(FORMAT_NAME)?.strip_suffix('\n')?;
    number.parse().ok().filter(|number| *number > 0)
}

fn holds_only(path: &Path, names: &[&str]) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if !names.iter().any(|known| name == *known) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn not_a_store(path: &Path, why: &'static str) -> Error {
    Error::NotAStore { path: path.to_owned(), why }
}

fn listing(path: &Path, error: io::Error) -> Error {
    failure::from_io(error, path, "listing the directory")
}

/// A store that comes into being; its data file is made aside.
pub(super) struct Creation<'p> {
    path: &'p Path,
}

impl<'p> Creation<'p> {
    /// Begins or resumes. The caller has made sure that the directory is vacant, and that nobody
    /// else creates.
    pub(super) fn begin(path: &'p Path) -> io::Result<Self> {
        let creation = Self { path };
        let creating = path.join(CREATING);
        if !creation.has_data() {
            remove_dir(&creating)?;
        }
        fs::create_dir_all(&creating)?;
        sync_dir(path)?;
        sync_way_to(path)?;
        if !path.join(FORMAT).exists() {
            write_format(&creating)?;
            fs::rename(creating.join(FORMAT), path.join(FORMAT))?;
            sync_dir(path)?;
        }
        Ok(creation)
    }

    /// Whether only [`finish`](Self::finish) is left to do.
    pub(super) fn has_data(&self) -> bool {
        self.path.join(DATA).exists()
    }

    /// The directory in which the data file is made.
    pub(super) fn aside(&self) -> PathBuf {
        self.path.join(CREATING)
    }

    /// Where the data file is made.
    pub(super) fn data_path(&self) -> PathBuf {
        self.aside().join(DATA)
    }

    /// Puts the complete data file in its place.
    pub(super) fn finish(self) -> io::Result<()> {
        if !self.has_data() {
            fs::rename(self.data_path(), self.path.join(DATA))?;
            sync_dir(self.path)?;
        }
        remove_dir(&self.aside())?;
        sync_dir(self.path)
    }
}

/// A copy of a store that comes into being. `FORMAT` comes last: until then the directory is no
/// store, lest half a copy be taken for a new one.
pub(super) struct Copying<'p> {
    path: &'p Path,
}

impl<'p> Copying<'p> {
    /// Begins in a directory that is absent or empty.
    pub(super) fn begin(path: &'p Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        fs::create_dir(path.join(COPYING))?;
        Ok(Self { path })
    }

    /// Where the data file is made.
    pub(super) fn data_path(&self) -> PathBuf {
        self.path.join(COPYING).join(DATA)
    }

    /// Makes a store of the complete data file.
    pub(super) fn finish(self) -> io::Result<()> {
        let copying = self.path.join(COPYING);
        write_format(&copying)?;
        fs::rename(copying.join(DATA), self.path.join(DATA))?;
        sync_dir(self.path)?;
        fs::rename(copying.join(FORMAT), self.path.join(FORMAT))?;
        remove_dir(&copying)?;
        sync_dir(self.path)?;
        sync_way_to(self.path)
    }
}

fn write_format(directory: &Path) -> io::Result<()> {
    let mut format = File::create(directory.join(FORMAT))?;
    writeln!(format, "{FORMAT_NAME}{FORMAT_NUMBER}")?;
    format.sync_all()
}

pub(super) fn remove_dir(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes the way to a directory durable: each on it may be as new as the directory itself.
fn sync_way_to(path: &Path) -> io::Result<()> {
    for above in path.canonicalize()?.ancestors().skip(1) {
        match sync_dir(above).map_err(|error| error.kind()) {
            // What this user may not even read, it has not made; some media sync no directories.
            Err(ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
                break;
            }
            synced => synced?,
        }
    }
    Ok(())
}

/// LMDB's name of the data file.
pub(super) const DATA: &str = "data.mdb";
/// LMDB's name of the table of readers.
pub(super) const READERS: &str = "lock.mdb";
/// Taken first by every writer.
pub(super) const TURNSTILE_LOCK: &str = "turnstile.lock";
/// Held by the one that writes.
pub(super) const WRITER_LOCK: &str = "writer.lock";
const FORMAT: &str = "FORMAT";
const CREATING: &str = "creating";
const COPYING: &str = "copying";
const FORMAT_NAME: &str = "motet-store ";
const FORMAT_NUMBER: u32 = 1;
/// What an unfinished creation may have left where there is no `FORMAT` yet.
const BEFORE_FORMAT: [&str; 3] = [TURNSTILE_LOCK, WRITER_LOCK, CREATING];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_a_name_and_a_number() {
        assert_eq!(parse(b"motet-store 1\n"), Some(1));
        assert_eq!(parse(b"motet-store 17\n"), Some(17));
        for foreign in [&b""[..], b"motet-store", b"motet-store 1", b"motet-store x\n", b"\xff\n"] {
            assert_eq!(parse(foreign), None, "{foreign:?}");
        }
    }

    #[test]
    fn a_creation_that_ended_anywhere_leaves_a_vacant_directory_or_a_store() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(examine(dir.path()).unwrap(), Found::Vacant);
        fs::create_dir(dir.path().join(CREATING)).unwrap();
        assert_eq!(examine(dir.path()).unwrap(), Found::Vacant);
        let creation = Creation::begin(dir.path()).unwrap();
        assert_eq!(examine(dir.path()).unwrap(), Found::Vacant);
        fs::write(creation.data_path(), b"half").unwrap();
        assert_eq!(examine(dir.path()).unwrap(), Found::Vacant);
        assert!(!Creation::begin(dir.path()).unwrap().data_path().exists());
        fs::write(dir.path().join(DATA), b"renamed").unwrap();
        assert_eq!(examine(dir.path()).unwrap(), Found::Vacant);
        assert!(Creation::begin(dir.path()).unwrap().has_data());
    }

    #[test]
    fn half_a_copy_is_no_store_and_no_place_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let copying = Copying::begin(dir.path()).unwrap();
        let is_refused = || matches!(examine(dir.path()), Err(Error::NotAStore { .. }));
        assert!(is_refused());
        fs::write(copying.data_path(), b"half").unwrap();
        assert!(is_refused());
        fs::rename(copying.data_path(), dir.path().join(DATA)).unwrap();
        assert!(is_refused());
    }
}

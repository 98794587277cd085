//! Compaction: a data file without free pages takes the place of the one that there is.
//!
//! Nobody may have the environment open meanwhile. Whoever has holds a lock on LMDB's table of
//! readers for as long as that lasts, so having this lock alone says that nobody does; the locks of
//! the turnstile keep others from opening until the new file is in its place. A compaction that ends
//! before leaves everything as it was, and what it had made is removed by the next. A lock on the
//! directory itself, from beginning to end, keeps two of them apart.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::PoisonError;

use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;

use super::directory::{self, DATA, READERS, TURNSTILE_LOCK, WRITER_LOCK};
use super::{Lmdb, Options, data_file, failure, open};
use crate::Error;

/// Bytes of a data file before and after its compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Before.
    pub bytes_before: u64,
    /// After.
    pub bytes_after: u64,
}

/// Compacts the environment in this directory, which nobody may have open.
///
/// # Errors
/// [`Error::InUse`] if somebody has it open or writes to it meanwhile; otherwise as for
/// [`Lmdb::open`] and [`Lmdb::copy_to`]. The environment is as it was then.
pub fn compact(path: impl AsRef<Path>, options: &Options) -> Result<Compaction, Error> {
    let given = path.as_ref();
    let path = given
        .canonicalize()
        .map_err(|cause| failure::from_io(cause, given, "looking for the store"))?;
    let failed = |cause| failure::from_io(cause, &path, "compacting the store");
    let directory = File::open(&path).map_err(failed)?;
    let claimed = is_taken(flock(&directory, FlockOperation::NonBlockingLockExclusive));
    if !claimed.map_err(failed)? {
        return Err(Error::InUse { path });
    }
    let compacted = compact_at(&path, options);
    if compacted.is_err() {
        // What is left there harms nobody, and the first error is the one to tell.
        fs::remove_dir_all(path.join(ASIDE)).ok();
    }
    compacted
}

fn compact_at(path: &Path, options: &Options) -> Result<Compaction, Error> {
    let failed = |cause| failure::from_io(cause, path, "compacting the store");
    let (data, aside) = (path.join(DATA), path.join(ASIDE));
    directory::remove_dir(&aside).map_err(failed)?;
    let engine = Lmdb::open(path, options)?;
    let copied_from = data_file::last_transaction(&data)?;
    engine.copy_to(&aside)?;
    drop(engine);

    let place = open::place_of(path);
    let place = place.lock().unwrap_or_else(PoisonError::into_inner);
    let in_use = || Error::InUse { path: path.to_owned() };
    if place.strong_count() > 0 {
        return Err(in_use());
    }
    open::wait_for_former(path)?;
    let _locks = Locks::take(path).map_err(failed)?.ok_or_else(in_use)?;
    if data_file::last_transaction(&data)? != copied_from {
        return Err(in_use());
    }
    let size = |path: &Path| fs::metadata(path).map(|data| data.len()).map_err(failed);
    let bytes_before = size(&data)?;
    fs::rename(aside.join(DATA), &data)
        .and_then(|()| directory::sync_dir(path))
        .and_then(|()| directory::remove_dir(&aside))
        .map_err(failed)?;
    Ok(Compaction { bytes_before, bytes_after: size(&data)? })
}

/// Everything that one who opens or writes would have to take, in the order in which he does.
///
/// Freed in the opposite order: who came through the turnstile while the table of readers is still
/// locked would take it for damaged.
struct Locks(Vec<File>);

impl Locks {
    /// `None` if somebody has one of them.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        let open = |name| {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false).open(path.join(name))
        };
        let mut locks = Self(Vec::new());
        for name in [TURNSTILE_LOCK, WRITER_LOCK, READERS] {
            let file = open(name)?;
            let exclusive = FlockOperation::NonBlockingLockExclusive;
            // LMDB's own is a lock of a record.
            let taken = if name == READERS {
                fcntl_lock(&file, exclusive)
            } else {
                flock(&file, exclusive)
            };
            locks.0.push(file);
            if !is_taken(taken)? {
                return Ok(None);
            }
        }
        Ok(Some(locks))
    }

    /// Frees the last one that is held.
    fn free_last(&mut self) -> Option<File> {
        self.0.pop()
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        while self.free_last().is_some() {}
    }
}

/// Whether a lock was free, and now is held.
fn is_taken(taken: Result<(), Errno>) -> io::Result<bool> {
    match taken {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::ACCESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Where the new data file is made, within the environment's directory.
const ASIDE: &str = "compacting";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_readers_is_free_before_anybody_comes_through_the_turnstile() {
        let dir = tempfile::tempdir().unwrap();
        let is_held = |name| {
            let file = File::open(dir.path().join(name)).unwrap();
            !is_taken(flock(&file, FlockOperation::NonBlockingLockExclusive)).unwrap()
        };
        let mut locks = Locks::take(dir.path()).unwrap().unwrap();
        assert!(Locks::take(dir.path()).unwrap().is_none());
        drop(locks.free_last());
        assert!(is_held(WRITER_LOCK) && is_held(TURNSTILE_LOCK));
        drop(locks.free_last());
        assert!(!is_held(WRITER_LOCK) && is_held(TURNSTILE_LOCK));
        drop(locks);
        assert!(!is_held(TURNSTILE_LOCK));
    }

    #[test]
    fn what_another_compaction_has_begun_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        drop(Lmdb::open(dir.path(), &Options::default()).unwrap());
        let begun = dir.path().join(ASIDE).join(DATA);
        fs::create_dir(dir.path().join(ASIDE)).unwrap();
        fs::write(&begun, "half").unwrap();
        let other = File::open(dir.path()).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        let told = compact(dir.path(), &Options::default());
        assert!(matches!(told, Err(Error::InUse { .. })), "{told:?}");
        assert_eq!(fs::read_to_string(&begun).unwrap(), "half");
        drop(other);
        compact(dir.path(), &Options::default()).unwrap();
        assert!(!dir.path().join(ASIDE).exists());
    }
}

//! Compaction: a data file without free pages takes the place of the one that there is.
//!
//! Nobody may have the environment open meanwhile. Whoever has holds a lock on LMDB's table of
//! readers for as long as that lasts, so having this lock alone says that nobody does; the locks of
//! the turnstile keep others from opening until the new file is in its place. A compaction that ends
//! before leaves everything as it was, and what it had made is removed by the next.

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

/// Everything that one who opens or writes would have to take; freed when it is dropped.
struct Locks([File; 3]);

impl Locks {
    /// `None` if somebody has one of them.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        let open = |name| {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false).open(path.join(name))
        };
        let locks = Self([open(TURNSTILE_LOCK)?, open(WRITER_LOCK)?, open(READERS)?]);
        let [gate, writer, readers] = &locks.0;
        let taken = flock(gate, FlockOperation::NonBlockingLockExclusive)
            .and_then(|()| flock(writer, FlockOperation::NonBlockingLockExclusive))
            .and_then(|()| fcntl_lock(readers, FlockOperation::NonBlockingLockExclusive));
        match taken {
            Ok(()) => Ok(Some(locks)),
            Err(Errno::WOULDBLOCK | Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Where the new data file is made, within the environment's directory.
const ASIDE: &str = "compacting";

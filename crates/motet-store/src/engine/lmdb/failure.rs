//! What LMDB and the system say, as errors of the store.

use std::io;
use std::path::Path;

use heed::MdbError;
use rustix::io::Errno;

use super::Core;
use crate::Error;

/// What the system said about a file or directory.
pub(super) fn from_io(cause: io::Error, path: &Path, doing: &str) -> Error {
    match Errno::from_io_error(&cause) {
        Some(Errno::NOSPC | Errno::DQUOT) => Error::DiskFull,
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
            Error::ReadOnly { path: path.to_owned() }
        }
        _ => Error::io(doing, cause),
    }
}

/// What LMDB said about the files under this path.
pub(super) fn from_heed(error: heed::Error, path: &Path, doing: &str) -> Error {
    match error {
        heed::Error::Io(cause) => from_io(cause, path, doing),
        heed::Error::Mdb(
            mdb @ (MdbError::Corrupted
            | MdbError::PageNotFound
            | MdbError::Invalid
            | MdbError::VersionMismatch),
        ) => Error::Corrupt { path: path.to_owned(), why: mdb.to_string() },
        heed::Error::Mdb(mdb @ MdbError::Panic) => Error::Poisoned { cause: mdb.to_string() },
        other => Error::io(doing, into_io(other)),
    }
}

/// An LMDB error where the system's are expected.
pub(super) fn into_io(error: heed::Error) -> io::Error {
    match error {
        heed::Error::Io(cause) => cause,
        other => io::Error::other(other),
    }
}

impl Core {
    /// What LMDB said while the open environment was used.
    pub(super) fn failure(&self, error: heed::Error, doing: &str) -> Error {
        match error {
            heed::Error::Mdb(MdbError::MapFull | MdbError::MapResized) => Error::StoreFull {
                bytes: self.data.metadata().map_or(0, |data| data.len()),
                max: self.options.max_bytes,
            },
            heed::Error::Mdb(MdbError::ReadersFull) => {
                Error::ReadersFull { max: self.env.max_readers() }
            }
            other => from_heed(other, &self.path, doing),
        }
    }

    /// Whether a commit that failed like this leaves nothing in doubt: it found no room.
    pub(super) fn found_no_room(&self, error: &heed::Error, bytes: usize) -> bool {
        match error {
            heed::Error::Mdb(MdbError::MapFull | MdbError::TxnFull) => true,
            heed::Error::Io(cause) => match Errno::from_io_error(cause) {
                Some(Errno::NOSPC | Errno::DQUOT) => true,
                // LMDB's answer to a write that the system cut short, as it does where room ends.
                Some(Errno::IO) => self.disk_is_full(bytes as u64),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the medium has not even room for these bytes once more.
    fn disk_is_full(&self, bytes: u64) -> bool {
        rustix::fs::statvfs(&self.path).is_ok_and(|disk| {
            disk.f_bavail.saturating_mul(disk.f_frsize) < bytes + DISK_SLACK_BYTES
        })
    }
}

/// What a transaction may take beyond its own bytes: inner pages and the list of free ones.
const DISK_SLACK_BYTES: u64 = 1 << 20;

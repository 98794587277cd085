//! Where the sockets of a store's processes lie: the same place for all of them, whatever their
//! environment variables say.
//!
//! It is a directory within the store's own. Paths of sockets are short, so a long one leads through
//! an open descriptor. Where the store takes no sockets, as on some shared file systems, the
//! processes of one user meet in a directory under `/tmp` that the store's device and inode name.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown,
};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A directory of sockets, and this process's own in it.
pub(super) struct Meeting {
    directory: PathBuf,
    /// The directory, in as few bytes as addresses need.
    base: PathBuf,
    /// What `base` leads through, if it is not the directory's path.
    _opened: Option<File>,
    own: PathBuf,
}

impl Meeting {
    /// Binds a socket of this name at the store's place.
    ///
    /// # Errors
    /// What the system says where no place takes it.
    pub(super) fn join(store: &Path, name: &str) -> io::Result<(Self, UnixDatagram)> {
        let found = fs::metadata(store)?;
        let within = store.join(WITHIN_STORE);
        join_at(&within, name, || make_within(&within, &found)).or_else(|_| {
            let user = rustix::process::geteuid().as_raw();
            let (device, inode) = (found.dev(), found.ino());
            let private = Path::new("/tmp").join(format!("motet-{user}-{device:x}-{inode:x}"));
            join_at(&private, name, || make_private(&private))
        })
    }

    /// The address of this process's own socket.
    pub(super) fn own(&self) -> &Path {
        &self.own
    }

    /// The addresses of the others.
    pub(super) fn others(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let entries = fs::read_dir(&self.base).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(move |address| *address != self.own)
    }

    /// Removes the sockets of processes that were killed.
    pub(super) fn sweep(&self) {
        for address in self.others() {
            // Connecting finds out without waking anybody.
            let probed = UnixDatagram::unbound().and_then(|probe| probe.connect(&address));
            if probed.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                remove_dead(&address);
            }
        }
    }

    /// Takes the own socket away, and the directory after the last one.
    pub(super) fn leave(&self) {
        let _already_gone = fs::remove_file(&self.own);
        let _others_are_there = fs::remove_dir(&self.directory);
    }
}

/// Removes a socket that nobody listens on.
pub(super) fn remove_dead(address: &Path) {
    let Ok(found) = fs::symlink_metadata(address) else { return };
    // One that is being bound just now refuses for a moment.
    let has_settled = || {
        let age = found.modified().ok().and_then(|modified| modified.elapsed().ok());
        age.is_some_and(|age| age > SETTLING)
    };
    if found.file_type().is_socket() && has_settled() {
        let _already_gone = fs::remove_file(address);
    }
}

fn join_at(
    directory: &Path,
    name: &str,
    make: impl Fn() -> io::Result<()>,
) -> io::Result<(Meeting, UnixDatagram)> {
    let mut tries = 0;
    loop {
        make()?;
        match enter(directory, name) {
            // Whoever left took the directory away in between.
            Err(error) if error.kind() == ErrorKind::NotFound && tries < TRIES_MAX => tries += 1,
            joined => return joined,
        }
    }
}

fn enter(directory: &Path, name: &str) -> io::Result<(Meeting, UnixDatagram)> {
    let is_short = directory.as_os_str().len() + 1 + name.len() <= ADDRESS_BYTES_MAX;
    let opened = if is_short { None } else { Some(File::open(directory)?) };
    let base = opened.as_ref().map_or_else(
        || directory.to_owned(),
        |opened| format!("/proc/self/fd/{}", opened.as_raw_fd()).into(),
    );
    let own = base.join(name);
    let socket = UnixDatagram::bind(&own)?;
    // Who may come to the directory may send here, whoever's process this is.
    let _others_are_not_heard = fs::set_permissions(&own, Permissions::from_mode(0o666));
    Ok((Meeting { directory: directory.to_owned(), base, _opened: opened, own }, socket))
}

/// Makes the directory within a store, for all who may use the store.
fn make_within(directory: &Path, store: &fs::Metadata) -> io::Result<()> {
    match fs::create_dir(directory) {
        Ok(()) => {
            // What the superuser makes in another's store is that other's.
            let _not_allowed = chown(directory, Some(store.uid()), Some(store.gid()));
            fs::set_permissions(directory, Permissions::from_mode(store.mode() & 0o777))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let is_dir = fs::symlink_metadata(directory)?.is_dir();
            if is_dir { Ok(()) } else { Err(ErrorKind::NotADirectory.into()) }
        }
        Err(error) => Err(error),
    }
}

/// Makes a directory that nobody else may enter, or makes sure that it is one.
fn make_private(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let found = fs::symlink_metadata(directory)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && is_own && found.mode() & 0o077 == 0 {
        Ok(())
    } else {
        Err(ErrorKind::PermissionDenied.into())
    }
}

/// The directory of sockets within a store's.
const WITHIN_STORE: &str = "pokes";

/// Bytes of a socket's path: 103 on macOS, 107 on Linux.
const ADDRESS_BYTES_MAX: usize = 103;

/// How often a directory that was taken away is made again.
const TRIES_MAX: usize = 8;

/// A socket is bound, and heard, in much less than this.
const SETTLING: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn who_leaves_last_takes_the_directory_away() {
        let store = tempfile::tempdir().unwrap();
        let (first, _first_socket) = Meeting::join(store.path(), "1").unwrap();
        let (second, _second_socket) = Meeting::join(store.path(), "2").unwrap();
        assert_eq!(first.others().collect::<Vec<_>>(), [second.own().to_owned()]);
        first.leave();
        assert_eq!(second.others().count(), 0);
        second.leave();
        assert_eq!(fs::read_dir(store.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_a_directory_of_ones_own_that_nobody_else_may_enter_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let private = dir.path().join("private");
        make_private(&private).unwrap();
        make_private(&private).unwrap();
        for mode in [0o711, 0o770, 0o777] {
            fs::set_permissions(&private, Permissions::from_mode(mode)).unwrap();
            assert!(make_private(&private).is_err(), "{mode:o}");
        }
        fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
        let link = dir.path().join("link");
        symlink(&private, &link).unwrap();
        assert!(make_private(&link).is_err());
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(make_private(&dir.path().join("file")).is_err());
    }
}

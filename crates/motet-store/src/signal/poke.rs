//! Pokes between the processes of one store: empty datagrams that say "look at the heads".
//!
//! Every process that has the store open listens on a socket of its own in a directory that the
//! store's path names. A poke may get lost (a full queue, a process that is just starting); whoever
//! waits looks for itself after the backstop.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::Wake;
use crate::Error;

/// This process's end of the signal plane of one store.
pub(crate) struct Poker {
    shared: Arc<Shared>,
    /// The socket's file.
    address: PathBuf,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    directory: PathBuf,
    address: PathBuf,
    socket: UnixDatagram,
    pending: Mutex<Pending>,
    changed: Condvar,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Pending {
    poke: bool,
    stop: bool,
}

impl Poker {
    /// Listens for the pokes of other processes, which go to `wake`.
    ///
    /// # Errors
    /// What the system says of the directory or the socket.
    pub(crate) fn start(store: &Path, name: u64, wake: Arc<dyn Wake>) -> Result<Self, Error> {
        let directory = directory(store)?;
        let address = directory.join(format!("{name:016x}"));
        let socket = UnixDatagram::bind(&address)
            .map_err(|cause| Error::io(format!("listening on {}", address.display()), cause))?;
        let shared = Arc::new(Shared {
            directory,
            address: address.clone(),
            socket,
            pending: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        let (listening, sending) = (Arc::clone(&shared), Arc::clone(&shared));
        let threads = vec![
            spawn("motet-listen", move || listening.listen(wake.as_ref()))?,
            spawn("motet-poke", move || sending.send())?,
        ];
        Ok(Self { shared, address, threads })
    }
}

impl Wake for Poker {
    /// Pokes the other processes: at once, or as soon as the last poke is 10 ms ago.
    fn wake(&self) {
        self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner).poke = true;
        self.shared.changed.notify_one();
    }
}

impl Drop for Poker {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
        self.shared.changed.notify_one();
        // The listener is woken by a datagram to itself; should it get lost, the thread ends with
        // the process.
        let woken = self.shared.socket.send_to(&POKE, &self.address).is_ok();
        let _already_gone = fs::remove_file(&self.address);
        for thread in self.threads.drain(..) {
            if woken || thread.thread().name() == Some("motet-poke") {
                let _panicked = thread.join();
            }
        }
    }
}

impl Shared {
    fn listen(&self, wake: &dyn Wake) {
        let mut buffer = [0; 8];
        while !self.stopped.load(Ordering::SeqCst) {
            match self.socket.recv(&mut buffer) {
                Ok(_) => wake.wake(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Without the socket there are no pokes; the backstop is left.
                Err(_) => return,
            }
        }
    }

    fn send(&self) {
        loop {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            while !pending.poke && !pending.stop {
                pending = self.changed.wait(pending).unwrap_or_else(PoisonError::into_inner);
            }
            if pending.stop {
                return;
            }
            pending.poke = false;
            drop(pending);
            self.poke_all();
            thread::sleep(POKE_INTERVAL);
        }
    }

    fn poke_all(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for address in entries.flatten().map(|entry| entry.path()) {
            if address == self.address {
                continue;
            }
            let sent = self.socket.send_to(&POKE, &address);
            if sent.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                // Its process was killed.
                let _already_gone = fs::remove_file(&address);
            }
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let thread = thread::Builder::new().name(name.into()).spawn(run);
    thread.map_err(|cause| Error::io(format!("starting the thread {name}"), cause))
}

/// The directory of a store's sockets. Paths of sockets are short (104 bytes on macOS), so it has a
/// short name in the user's directory for such files, and not one in the store.
fn directory(store: &Path) -> Result<PathBuf, Error> {
    let metadata = fs::metadata(store)
        .map_err(|cause| Error::io(format!("looking at {}", store.display()), cause))?;
    let base = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let (device, inode, user) =
        (metadata.dev(), metadata.ino(), rustix::process::geteuid().as_raw());
    let directory = base.join(format!("motet-{user}-{device:x}-{inode:x}"));
    match DirBuilder::new().mode(0o700).create(&directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(cause) => return Err(Error::io(format!("making {}", directory.display()), cause)),
    }
    Ok(directory)
}

const POKE: [u8; 1] = [1];

/// At most one poke in this time: whoever is poked reads everything that has come since.
const POKE_INTERVAL: Duration = Duration::from_millis(10);

//! Pokes between the processes of one store: empty datagrams that say "look at the heads".
//!
//! Every process that has an environment of the store open listens on a socket of its own where they
//! all meet. A poke may get lost (a full queue, a process that is just starting); whoever waits looks
//! for itself after the backstop. So nobody ever waits to send one.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};

use super::Wake;
use super::meeting::{self, Meeting};

/// This process's end of the signal plane of one store.
pub(crate) struct Poker {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    meeting: Meeting,
    socket: UnixDatagram,
    /// Sends without waiting: a peer that stands still has a full queue.
    sender: UnixDatagram,
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
    /// What the system says of the directory, the socket or the threads.
    pub(crate) fn start(store: &Path, name: u64, wake: Arc<dyn Wake>) -> io::Result<Self> {
        let sender = UnixDatagram::unbound()?;
        sender.set_nonblocking(true)?;
        let (meeting, socket) = Meeting::join(store, &format!("{name:016x}"))?;
        let shared = Arc::new(Shared {
            meeting,
            socket,
            sender,
            pending: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        // From here on the socket is taken away again, whatever fails.
        let mut poker = Self { shared, threads: Vec::new() };
        poker.shared.meeting.sweep();
        let (listening, sending) = (Arc::clone(&poker.shared), Arc::clone(&poker.shared));
        poker.threads.push(spawn("motet-listen", move || listening.listen(wake.as_ref()))?);
        poker.threads.push(spawn("motet-poke", move || sending.send())?);
        Ok(poker)
    }
}

impl Wake for Poker {
    /// Pokes the other processes: at once, or as soon as the last poke is 10 ms ago.
    fn wake(&self) {
        self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner).poke = true;
        self.shared.changed.notify_one();
    }

    fn flush(&self) {
        let mut pending = self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if mem::take(&mut pending.poke) {
            self.shared.poke_all();
        }
    }
}

impl Drop for Poker {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
        self.shared.changed.notify_one();
        // The listener is woken by a datagram to itself, or has some to read. Should it get lost, the
        // thread ends with the process.
        let sent = self.shared.sender.send_to(&POKE, self.shared.meeting.own());
        let woken = sent.map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |_| true);
        self.shared.meeting.leave();
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
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
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
            // A process that ends tells of its last commit too, and waits here until that is done.
            if mem::take(&mut pending.poke) {
                self.poke_all();
            }
            if pending.stop {
                return;
            }
            drop(pending);
            thread::sleep(POKE_INTERVAL);
        }
    }

    fn poke_all(&self) {
        for address in self.meeting.others() {
            let sent = self.sender.send_to(&POKE, &address);
            // A full queue has pokes that its process has yet to look at, so one more says nothing.
            if sent.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                meeting::remove_dead(&address);
            }
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(run)
}

const POKE: [u8; 1] = [1];

/// At most one poke in this time: whoever is poked reads everything that has come since.
const POKE_INTERVAL: Duration = Duration::from_millis(10);

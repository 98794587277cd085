//! The thread that ends what would go on too long: views, waiting for a turn, the reader slots of
//! processes that are gone. It sleeps while there is nothing of that kind.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::queue::Queue;
use super::turnstile::{Turnstile, Watch};
use super::{Core, Options};
use crate::Error;
use crate::clock::millis;

/// Wakes the keeper.
#[derive(Default)]
pub(super) struct Bell {
    /// It sleeps until it is called. Read on every view, so apart from the lock.
    asleep: AtomicBool,
    ended: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    /// Whether the keeper makes no rounds until it is rung.
    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// There is something to watch. The caller has made it visible before.
    pub(super) fn ring(&self) {
        if self.is_asleep() {
            let _ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            self.asleep.store(false, Ordering::SeqCst);
            self.rung.notify_one();
        }
    }

    fn end(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rung.notify_one();
    }

    /// Sleeps until rung, or for a tick while there is something to watch. False at the end.
    fn rest(&self, watching: bool, tick: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if watching {
            let rested = self.rung.wait_timeout_while(ended, tick, |ended| !*ended);
            return !*rested.unwrap_or_else(PoisonError::into_inner).0;
        }
        // What appeared just now rang nobody: look once more before sleeping.
        if !self.asleep.swap(true, Ordering::SeqCst) {
            return !*ended;
        }
        let asleep = |ended: &mut bool| !*ended && self.is_asleep();
        !*self.rung.wait_while(ended, asleep).unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Keeper {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn start(
        core: &Arc<Core>,
        queue: &Arc<Queue>,
        turnstile: &Arc<Turnstile>,
        bell: Arc<Bell>,
    ) -> io::Result<Self> {
        let mut rounds = Rounds {
            core: Arc::downgrade(core),
            queue: Arc::clone(queue),
            turnstile: Arc::clone(turnstile),
            watch: Watch::default(),
            cleared: Instant::now(),
        };
        let (rung, tick) = (Arc::clone(&bell), tick(&core.options));
        let thread = thread::Builder::new().name("motet-keeper".into()).spawn(move || {
            while let Some(watching) = rounds.go() {
                if !rung.rest(watching, tick) {
                    return;
                }
            }
        })?;
        Ok(Self { bell, thread: Some(thread) })
    }

    pub(super) fn end(&mut self) {
        self.bell.end();
        if let Some(thread) = self.thread.take() {
            // How it ended concerns nobody any more.
            let _ = thread.join();
        }
    }
}

/// How long the keeper rests between two rounds.
pub(super) fn tick(options: &Options) -> Duration {
    (options.view_max / 4).clamp(TICK_MIN, TICK_MAX)
}

struct Rounds {
    core: Weak<Core>,
    queue: Arc<Queue>,
    turnstile: Arc<Turnstile>,
    watch: Watch,
    cleared: Instant,
}

impl Rounds {
    /// Looks at everything once: whether something is to be watched further. None when the engine
    /// is gone.
    fn go(&mut self) -> Option<bool> {
        let core = self.core.upgrade()?;
        let views = core.views.sweep(&core);
        let turn = self.watch_turn();
        let readers = self.clear_readers(&core);
        Some(views || turn || readers)
    }

    fn watch_turn(&mut self) -> bool {
        if !self.queue.is_waiting_for_turn() {
            self.watch.reset();
            return false;
        }
        if let Some((pid, held)) = self.watch.stalled(&self.turnstile) {
            let error = Error::WriterStalled { pid, held_ms: millis(held) };
            self.queue.give_up(Duration::ZERO, |_| error.clone());
        }
        self.queue.give_up(TURN_MAX, |waited| Error::WriterBusy { waited_ms: millis(waited) });
        true
    }

    /// Frees the slots of readers that were killed, which would keep the file growing.
    fn clear_readers(&mut self, core: &Core) -> bool {
        if !core.wrote.load(Ordering::Relaxed) {
            return false;
        }
        if self.cleared.elapsed() >= CLEAR_EVERY {
            self.cleared = Instant::now();
            core.wrote.store(false, Ordering::Relaxed);
            // Tried again with the next write.
            let _ = core.env.clear_stale_readers();
        }
        true
    }
}

const TICK_MIN: Duration = Duration::from_millis(1);
const TICK_MAX: Duration = Duration::from_millis(100);
const CLEAR_EVERY: Duration = Duration::from_secs(1);
/// How long a write waits while others take turns.
pub(super) const TURN_MAX: Duration = Duration::from_secs(30);

//! Views, and the read transactions they share.
//!
//! A read transaction that was given back serves the next view too, as long as nothing was
//! committed since: most of a point read's time would else go into beginning and ending one. An
//! idle one keeps pages from being used again, so the committer and the keeper drop what is stale.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Instant;

use heed::{MdbError, RoTxn, WithoutTls};

use super::keeper::{Bell, tick};
use super::{Core, Open, Options, read};
use crate::Error;
use crate::clock::millis;
use crate::engine::{Answer, OnEntry, OnValue, Range, Read, Table, View};

type Txn = RoTxn<'static, WithoutTls>;

/// All views of an engine.
pub(super) struct Views {
    idle: Mutex<Idle>,
    /// For the keeper, who ends those that are kept too long.
    slots: Mutex<Vec<Weak<Slot>>>,
    started: Instant,
    /// Milliseconds since then, as of the keeper's last round: reading the clock would be a tenth of
    /// a point read.
    now_ms: AtomicU64,
    /// How old a view may be by that clock.
    age_max_ms: u64,
    bell: Arc<Bell>,
}

#[derive(Default)]
struct Idle {
    slots: Vec<Arc<Slot>>,
    /// Whether any was taken since the keeper's last round.
    used: bool,
}

/// A place for a read transaction, which a view holds for a time.
struct Slot {
    /// Taken away where the view is too old.
    txn: Mutex<Option<Txn>>,
    /// When it was taken for a view, in milliseconds since the engine started; or [`IDLE`].
    taken_ms: AtomicU64,
}

impl Views {
    pub(super) fn new(options: &Options, bell: Arc<Bell>) -> Self {
        Self {
            idle: Mutex::default(),
            slots: Mutex::default(),
            started: Instant::now(),
            now_ms: AtomicU64::new(0),
            // A round can be that long ago.
            age_max_ms: millis(options.view_max + tick(options)),
            bell,
        }
    }

    fn take(&self, core: &Core) -> Result<Arc<Slot>, Error> {
        let slot = self.pop().unwrap_or_else(|| self.add());
        if let Err(error) = self.refresh(&slot, core) {
            self.give_back(slot);
            return Err(core.failure(error, "taking a view"));
        }
        if self.bell.is_asleep() {
            self.look_at_clock();
        }
        slot.taken_ms.store(self.now_ms.load(Ordering::Relaxed), Ordering::SeqCst);
        self.bell.ring();
        Ok(slot)
    }

    fn give_back(&self, slot: Arc<Slot>) {
        slot.taken_ms.store(IDLE, Ordering::Release);
        let mut idle = self.idle();
        if idle.slots.len() < IDLE_MAX {
            idle.slots.push(slot);
        }
    }

    fn pop(&self) -> Option<Arc<Slot>> {
        let mut idle = self.idle();
        idle.used = true;
        idle.slots.pop()
    }

    fn add(&self) -> Arc<Slot> {
        let slot = Arc::new(Slot { txn: Mutex::new(None), taken_ms: AtomicU64::new(IDLE) });
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.push(Arc::downgrade(&slot));
        slot
    }

    /// Makes the slot's transaction one that sees everything committed.
    fn refresh(&self, slot: &Slot, core: &Core) -> heed::Result<()> {
        let mut txn = slot.lock();
        if !txn.as_ref().is_some_and(|txn| is_current(txn, core)) {
            *txn = None;
            *txn = Some(self.begin(core)?);
        }
        Ok(())
    }

    /// Begins a transaction that sees what its number says.
    ///
    /// LMDB takes the number of the last transaction, and then the roots of that transaction's trees
    /// from one of two places, which transactions use in turn. A thread that is held up in between
    /// for two commits finds there what the second one is just writing, before it is synced, and the
    /// next view would see less. Such a transaction is given up for a new one.
    fn begin(&self, core: &Core) -> heed::Result<Txn> {
        for _ in 0..OVERTAKEN_MAX {
            let txn = self.begin_any(core)?;
            if core.env.info().last_txn_id <= txn.id() + 1 {
                return Ok(txn);
            }
        }
        self.begin_any(core)
    }

    fn begin_any(&self, core: &Core) -> heed::Result<Txn> {
        match core.env.clone().static_read_txn() {
            Err(heed::Error::Mdb(MdbError::ReadersFull)) => {
                self.idle().slots.clear();
                core.env.clear_stale_readers()?;
                core.env.clone().static_read_txn()
            }
            begun => begun,
        }
    }

    /// Ends idle transactions that no view will use again.
    pub(super) fn drop_stale(&self, core: &Core) {
        self.idle().slots.retain(|slot| {
            let txn = slot.lock();
            txn.as_ref().is_some_and(|txn| is_current(txn, core))
        });
    }

    /// Ends what is too old. Whether anything is left that may become so.
    pub(super) fn sweep(&self, core: &Core) -> bool {
        let mut idle = self.idle();
        if !std::mem::take(&mut idle.used) {
            idle.slots.clear();
        }
        drop(idle);
        self.drop_stale(core);
        let now_ms = self.look_at_clock();
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|slot| {
            let Some(slot) = slot.upgrade() else { return false };
            // An idle slot's time lies beyond every age.
            if now_ms.saturating_sub(slot.taken_ms.load(Ordering::SeqCst)) >= self.age_max_ms {
                // One that is being read looks at its age itself.
                if let Some(mut txn) = slot.try_lock() {
                    *txn = None;
                }
            }
            true
        });
        !slots.is_empty()
    }

    fn look_at_clock(&self) -> u64 {
        let now_ms = millis(self.started.elapsed());
        self.now_ms.store(now_ms, Ordering::Relaxed);
        now_ms
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Txn>> {
        self.txn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Txn>>> {
        match self.txn.try_lock() {
            Ok(txn) => Some(txn),
            // A reader's closure panicked; the transaction is as it was.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

fn is_current(txn: &Txn, core: &Core) -> bool {
    txn.id() == core.env.info().last_txn_id
}

/// A view of an environment on disk; it keeps the engine open.
pub(super) struct LmdbView {
    open: Arc<Open>,
    /// There until the view is dropped.
    slot: Option<Arc<Slot>>,
    reading: Cell<bool>,
}

impl LmdbView {
    pub(super) fn take(open: &Arc<Open>) -> Result<Self, Error> {
        let slot = Some(open.core.views.take(&open.core)?);
        Ok(Self { open: Arc::clone(open), slot, reading: Cell::new(false) })
    }

    /// Reads, unless the view is too old.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&RoTxn<'_>) -> heed::Result<T>,
    ) -> Result<T, Error> {
        let mut txn = self.lock();
        self.read_locked(&mut txn, read)
    }

    fn read_locked<T>(
        &self,
        txn: &mut Option<Txn>,
        read: impl FnOnce(&RoTxn<'_>) -> heed::Result<T>,
    ) -> Result<T, Error> {
        let Some(txn) = txn.as_ref() else { return Err(self.open.core.view_expired()) };
        let _reading = Reading::begin(&self.reading);
        read(txn).map_err(|error| self.open.core.failure(error, "reading"))
    }

    fn visit(&self, range: Range<'_>, each: &mut OnEntry<'_>) -> Result<(), Error> {
        let mut txn = self.lock();
        let table = self.open.core.tables.of(range.table);
        let (mut visited, mut expired) = (0_u64, false);
        self.read_locked(&mut txn, |txn| {
            read::range(table, txn, range, &mut |key, value| {
                visited += 1;
                if visited.is_multiple_of(AGE_CHECK_ENTRIES) && self.is_old() {
                    expired = true;
                    return ControlFlow::Break(());
                }
                each(key, value)
            })
        })?;
        if expired {
            *txn = None;
            return Err(self.open.core.view_expired());
        }
        Ok(())
    }

    fn is_old(&self) -> bool {
        let views = &self.open.core.views;
        let taken_ms = self.slot().taken_ms.load(Ordering::Relaxed);
        views.look_at_clock().saturating_sub(taken_ms) >= views.age_max_ms
    }

    fn lock(&self) -> MutexGuard<'_, Option<Txn>> {
        self.slot().try_lock().unwrap_or_else(|| {
            assert!(!self.reading.get(), "a view is not read from within a read of it");
            self.slot().lock()
        })
    }

    fn slot(&self) -> &Arc<Slot> {
        self.slot.as_ref().expect("a view has its slot until it is dropped")
    }
}

/// Says that a view is being read, also where a reader's closure panics.
struct Reading<'v>(&'v Cell<bool>);

impl<'v> Reading<'v> {
    fn begin(reading: &'v Cell<bool>) -> Self {
        reading.set(true);
        Self(reading)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Drop for LmdbView {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.open.core.views.give_back(slot);
        }
    }
}

impl View for LmdbView {}

impl Read for LmdbView {
    fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
        each: &'a mut OnValue<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        let table = self.open.core.tables.of(table);
        Answer::now(self.read(|txn| read::get_many(table, txn, keys, each)))
    }

    fn range<'a>(
        &'a self,
        range: Range<'a>,
        each: &'a mut OnEntry<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        Answer::now(self.visit(range, each))
    }
}

const IDLE: u64 = u64::MAX;
/// Idle transactions kept for the next views.
const IDLE_MAX: usize = 64;
/// How often a transaction is begun anew because it was overtaken: each time takes two commits.
const OVERTAKEN_MAX: usize = 16;
const AGE_CHECK_ENTRIES: u64 = 1_024;

//! What all handles of one environment share.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Error;
use crate::catalog::Cache;
use crate::engine::{Engine, WallClock};
use crate::signal::{Signal, Wake};

pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) catalog: Cache,
    /// The number of this process's handle on the environment, drawn when it is opened.
    pub(crate) instance: u64,
    pub(crate) limits: Limits,
    /// Woken after every commit.
    pub(crate) signal: Arc<Signal>,
    /// Tells the store's other processes of a commit.
    pub(crate) outward: Option<Arc<dyn Wake>>,
    wall_clock: WallClock,
    /// Why the background's last work failed, until it succeeds.
    maintenance_error: Mutex<Option<Error>>,
    /// An expired document that is too much to remove, by its key in `Documents`, and why.
    too_large: Mutex<Option<(Vec<u8>, Error)>>,
}

/// What an environment needs of its surroundings.
pub struct Driver {
    /// A number that no other handle on the environment has: changes name their writer by it.
    pub instance: u64,
    /// Sizes that are allowed.
    pub limits: Limits,
    /// Wall time in milliseconds since 1970: for expiries and ages, never for order.
    pub wall_clock: WallClock,
    /// Tells other processes of a commit, if there are any.
    pub outward: Option<Arc<dyn Wake>>,
}

impl Shared {
    pub(crate) fn new(name: &str, engine: Arc<dyn Engine>, driver: Driver) -> Self {
        Self {
            name: name.into(),
            engine,
            catalog: Cache::default(),
            instance: driver.instance,
            limits: driver.limits,
            signal: Arc::default(),
            outward: driver.outward,
            wall_clock: driver.wall_clock,
            maintenance_error: Mutex::default(),
            too_large: Mutex::default(),
        }
    }

    pub(crate) fn unix_ms(&self) -> u64 {
        (self.wall_clock)()
    }

    /// Wakes all that wait for changes, in this process and in others.
    pub(crate) fn notify(&self) {
        self.signal.notify();
        if let Some(outward) = &self.outward {
            outward.wake();
        }
    }
}

impl Shared {
    pub(crate) fn set_maintenance_error(&self, error: Option<Error>) {
        *self.maintenance_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    pub(crate) fn maintenance_error(&self) -> Option<Error> {
        let failed = self.maintenance_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        failed.or_else(|| self.too_large().map(|(_, error)| error))
    }

    pub(crate) fn too_large(&self) -> Option<(Vec<u8>, Error)> {
        self.too_large.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_too_large(&self, found: Option<(Vec<u8>, Error)>) {
        *self.too_large.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The maintaining thread waits on the signal, and ends when there is nothing to maintain.
        self.signal.notify();
    }
}

/// Sizes that a store allows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest value, in bytes of JSON text. 4 MiB unless set.
    pub value_bytes_max: usize,
    /// The most writes of one batch or transaction. 100,000 unless set.
    pub batch_writes_max: usize,
    /// How often [`Env::transact`](crate::Env::transact) runs its function before it gives up. 64
    /// unless set.
    pub transact_tries_max: u32,
    /// The most documents or entries that one transaction in the background takes, so that no writer
    /// waits for long. What is done has lower bounds of its own unless this is lower still.
    pub background_batch_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            value_bytes_max: 4 << 20,
            batch_writes_max: 100_000,
            transact_tries_max: 64,
            background_batch_max: usize::MAX,
        }
    }
}

impl Limits {
    /// How much one transaction in the background takes of work that has this bound of its own.
    pub(crate) fn background_batch(&self, own: usize) -> usize {
        own.min(self.background_batch_max).max(1)
    }

    pub(crate) const fn check_value(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.value_bytes_max {
            return Err(Error::ValueTooLarge { bytes, max: self.value_bytes_max });
        }
        Ok(())
    }
}

//! The durable engine: one LMDB environment, shared by any number of processes.
//!
//! An environment is a directory with the data file, LMDB's table of readers, two lock files that
//! order the writers of all processes (`turnstile`), and `FORMAT`, which says whose it is
//! (`directory`). One thread per engine writes (`committer`); another ends views that are kept too
//! long and speaks for writes whose turn does not come (`keeper`).

mod attempt;
mod committer;
mod compact;
mod data_file;
mod directory;
mod failure;
mod keeper;
mod open;
mod queue;
mod read;
mod room;
mod turnstile;
mod view;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use heed::types::Bytes;
use heed::{CompactionOption, RoTxn, WithoutTls};

pub use self::compact::{Compaction, compact};

use self::committer::Committer;
use self::keeper::{Bell, Keeper};
use self::queue::Queue;
use self::turnstile::Turnstile;
use self::view::{LmdbView, Views};
use super::{
    Answer, Capabilities, Commit, Decide, Engine, KEY_BYTES_MAX, Table, TimeSource, View, WallClock,
};
use crate::Error;
use crate::clock::millis;

type Env = heed::Env<WithoutTls>;
type Database = heed::Database<'static, Bytes, Bytes>;

/// How an environment is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most bytes that live entries may take. What would go beyond is refused with
    /// [`Error::StoreFull`]; what removes, and settings, are always possible.
    pub max_bytes: u64,
    /// What an answered write survives.
    pub durability: Durability,
    /// How many views all processes together may hold at once. The process that creates the table
    /// of readers decides it for those that join.
    pub max_readers: u32,
    /// How long a view may be kept: pages that it sees cannot be used again, so that the file grows.
    pub view_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_bytes: 64 << 30,
            durability: Durability::Durable,
            max_readers: 1_024,
            view_max: Duration::from_secs(10),
        }
    }
}

/// What an answered write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A loss of power.
    #[default]
    Durable,
    /// The end of the process. A loss of power may take the last transactions with it, whole and in
    /// order, and never damages what is left.
    Relaxed,
}

/// An open environment on disk. Clones, and openings of the same path, share one engine, which is
/// closed when the last of them and the last view are gone.
#[derive(Clone)]
pub struct Lmdb {
    open: Arc<Open>,
}

/// What the threads of an engine work on.
struct Core {
    env: Env,
    tables: Tables,
    options: Options,
    path: PathBuf,
    /// LMDB's own descriptor of the data file, duplicated.
    data: File,
    page_bytes: u64,
    views: Views,
    /// Whether a transaction was written since the keeper looked.
    wrote: AtomicBool,
    /// Stamps transactions.
    wall_clock: WallClock,
    /// Why nothing more is written.
    poison: OnceLock<String>,
}

/// An engine with its threads; closed when it is dropped.
struct Open {
    core: Arc<Core>,
    queue: Arc<Queue>,
    committer: Committer,
    keeper: Keeper,
}

#[derive(Clone, Copy)]
struct Tables([Database; Table::ALL.len()]);

impl Tables {
    const fn of(&self, table: Table) -> &Database {
        &self.0[table as usize]
    }
}

impl Lmdb {
    /// Opens the environment in this directory, or creates it in an empty or absent one. If this
    /// process has it open already, that engine is shared and `options` have no effect.
    ///
    /// # Errors
    /// [`Error::NotAStore`], [`Error::StoreNewer`] or [`Error::Corrupt`] if the directory holds
    /// something else; it is left as it is then. [`Error::ReadOnly`], [`Error::DiskFull`],
    /// [`Error::WriterStalled`] if a stopped process keeps others from opening, and [`Error::Io`].
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self, Error> {
        open::open(path.as_ref(), options).map(|open| Self { open })
    }

    /// Copies the environment as it is now into this directory, which is created or empty. Writers
    /// go on meanwhile; free pages are left out.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if there is something in the directory, [`Error::DiskFull`],
    /// [`Error::ReadOnly`] and [`Error::Io`].
    pub fn copy_to(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        directory::expect_vacant(path)?;
        self.copy_into(path).map_err(|cause| failure::from_io(cause, path, "copying the store"))
    }

    fn copy_into(&self, path: &Path) -> io::Result<()> {
        let copying = directory::Copying::begin(path)?;
        // Compacting reads through a view; a plain copy would hold LMDB's own writer lock, which no
        // other process could tell from a stall.
        let copied = self
            .core()
            .env
            .copy_to_path(copying.data_path(), CompactionOption::Enabled)
            .map_err(failure::into_io)?;
        copied.sync_all()?;
        copying.finish()
    }

    /// Bytes of the pages that hold entries.
    ///
    /// # Errors
    /// As [`Engine::view`].
    pub fn used_bytes(&self) -> Result<u64, Error> {
        LmdbView::take(&self.open)?.read(|txn| self.core().used_bytes(txn))
    }

    /// Bytes of the data file, with its free pages.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn file_bytes(&self) -> Result<u64, Error> {
        let metadata = self.core().data.metadata();
        metadata.map(|data| data.len()).map_err(|cause| Error::io("measuring the data file", cause))
    }

    /// The most views that all processes together have held at once since the first of them opened
    /// the environment.
    #[must_use]
    pub fn reader_count_max(&self) -> u32 {
        self.core().env.info().number_of_readers
    }

    fn core(&self) -> &Core {
        &self.open.core
    }
}

/// Whether there is no environment in this directory, and one may come into being.
pub(crate) fn is_vacant(path: &Path) -> bool {
    matches!(directory::examine(path), Ok(directory::Found::Vacant))
}

/// Whether the directory is an environment's, of whichever format.
pub(crate) fn is_environment(path: &Path) -> bool {
    directory::is_ours(path)
}

impl fmt::Debug for Lmdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lmdb").field("path", &self.core().path).finish_non_exhaustive()
    }
}

impl Core {
    fn used_bytes(&self, txn: &RoTxn<'_>) -> heed::Result<u64> {
        let mut bytes = 0;
        for table in &self.tables.0 {
            bytes += table.stat(txn)?.non_free_page_size() as u64;
        }
        Ok(bytes)
    }

    /// The error of a poisoned engine, if it is one.
    fn poisoned(&self) -> Option<Error> {
        self.poison.get().map(|cause| Error::Poisoned { cause: cause.clone() })
    }

    const fn view_expired(&self) -> Error {
        Error::ViewExpired { max_ms: millis(self.options.view_max) }
    }
}

impl Engine for Lmdb {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            multi_process: true,
            // LMDB takes longer ones where pages are larger; a file that used that could not move.
            max_key_len: KEY_BYTES_MAX,
            max_txn_bytes: TXN_BYTES_MAX,
            time_source: TimeSource::Process,
        }
    }

    fn view(&self) -> Answer<'_, Result<Box<dyn View>, Error>> {
        Answer::now(LmdbView::take(&self.open).map(|view| Box::new(view) as Box<dyn View>))
    }

    fn write(&self, deciders: Vec<Box<dyn Decide>>) -> Answer<'_, Vec<Result<Commit, Error>>> {
        let count = deciders.len();
        let refused = |error: Error| Answer::now(vec![Err(error); count]);
        if let Some(error) = self.core().poisoned() {
            return refused(error);
        }
        match self.open.queue.submit(deciders) {
            Err(error) => refused(error),
            Ok(replies) => Answer::later(async move {
                let mut results = Vec::with_capacity(replies.len());
                for reply in replies {
                    results.push(reply.await.unwrap_or(Err(Error::Closed)));
                }
                results
            }),
        }
    }
}

impl Open {
    fn start(core: Core, turnstile: &Arc<Turnstile>, bell: Arc<Bell>) -> io::Result<Self> {
        let (core, queue) = (Arc::new(core), Arc::new(Queue::default()));
        let committer = Committer::start(&core, &queue, turnstile, &bell)?;
        let keeper = Keeper::start(&core, &queue, turnstile, bell)?;
        Ok(Self { core, queue, committer, keeper })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.queue.close();
        // The keeper answers for a committer that waits for a stopped process, so it ends last.
        self.committer.end(&self.queue);
        self.keeper.end();
    }
}

const TXN_BYTES_MAX: usize = 64 << 20;

//! A store: environments by name.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::document::check_name;
use crate::engine::lmdb::{self, Compaction, Lmdb};
use crate::engine::{Engine, memory::Memory, system_clock};
use crate::root::{self, ENVIRONMENTS};
use crate::shared::{Driver, Shared};
use crate::signal::poke::Poker;
use crate::signal::{Signal, Wake};
use crate::{Env, Error, Limits, maintenance};

/// A store: environments by name, each with its own documents, clock and log. Clones are handles on
/// the same.
///
/// ```
/// use motet_store::Store;
/// use serde_json::json;
///
/// let directory = tempfile::tempdir()?;
/// let store = Store::open(directory.path().join("data"))?;
/// let env = store.env("default")?;
/// env.put("Order", "o-1", json!({"total": 10}))?;
/// assert!(env.get("Order", "o-1")?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    /// Sizes that it allows.
    pub limits: Limits,
    /// How its environments are kept on disk.
    pub engine: lmdb::Options,
}

struct Inner {
    options: StoreOptions,
    files: Option<Files>,
    open: Mutex<HashMap<String, Arc<Place>>>,
}

/// Where an environment is kept once it is open. One that takes long to open keeps nobody from the
/// others.
#[derive(Default)]
struct Place {
    env: OnceLock<Env>,
    /// Held by the one that opens it.
    opening: Mutex<()>,
}

/// A store on disk.
struct Files {
    path: PathBuf,
    /// Started with the first environment; `None` if the system has no place for it, which costs
    /// time and nothing else.
    poker: OnceLock<Option<Arc<Poker>>>,
    listeners: Arc<Listeners>,
}

/// The environments that are woken when another process pokes: whichever of them it was about, each
/// looks at its own log.
#[derive(Default)]
struct Listeners(Mutex<Vec<Weak<Signal>>>);

impl Store {
    /// Opens the store in this directory, or makes one in an empty or absent directory. Any number
    /// of processes may have it open.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if the directory holds something else; [`Error::CopyUnfinished`] if it
    /// holds a part of a copy; [`Error::StoreNewer`], [`Error::ReadOnly`] and [`Error::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, StoreOptions::default())
    }

    /// Opens a store with options.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: StoreOptions) -> Result<Self, Error> {
        Ok(Self::on_disk(root::open_or_make(path.as_ref())?, options))
    }

    /// Opens a store that is there already, and makes nothing in its directory: for looking at a
    /// store, a backup perhaps, where a misspelt path must not become a new one.
    ///
    /// # Errors
    /// As for [`open`](Self::open), and [`Error::NotAStore`] if there is none.
    pub fn open_existing(path: impl AsRef<Path>, options: StoreOptions) -> Result<Self, Error> {
        Ok(Self::on_disk(root::find(path.as_ref())?, options))
    }

    fn on_disk(path: PathBuf, options: StoreOptions) -> Self {
        let (poker, listeners) = (OnceLock::new(), Arc::default());
        Self::new(options, Some(Files { path, poker, listeners }))
    }

    /// A store whose documents go with the process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(StoreOptions::default(), None)
    }

    /// Opens the environment of this name, and makes it where there is none.
    ///
    /// # Errors
    /// [`Error::NameInvalid`]; for a store on disk [`Error::StoreNewer`], [`Error::Corrupt`],
    /// [`Error::WriterStalled`] if a stopped process keeps others from opening it, and
    /// [`Error::Io`].
    pub fn env(&self, name: &str) -> Result<Env, Error> {
        check_name(name)?;
        let place = self.place(name);
        if let Some(env) = place.env.get() {
            return Ok(env.clone());
        }
        let _opening = place.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(env) = place.env.get() {
            return Ok(env.clone());
        }
        let env = self.inner.open(name)?;
        Ok(place.env.get_or_init(|| env).clone())
    }

    /// The names of the environments that there are, in order.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn environments(&self) -> Result<Vec<String>, Error> {
        let mut names = match &self.inner.files {
            None => Vec::new(),
            Some(files) => files.environments()?,
        };
        let open = self.places();
        names.extend(open.iter().filter_map(|(name, place)| place.env.get().map(|_| name.clone())));
        drop(open);
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Opens the environment of this name if there is one.
    ///
    /// # Errors
    /// As for [`env`](Self::env).
    pub fn existing_env(&self, name: &str) -> Result<Option<Env>, Error> {
        check_name(name)?;
        if let Some(env) = self.places().get(name).and_then(|place| place.env.get()) {
            return Ok(Some(env.clone()));
        }
        match &self.inner.files {
            Some(files) if !lmdb::is_vacant(&files.environment(name)) => self.env(name).map(Some),
            _ => Ok(None),
        }
    }

    /// Copies these environments, each as it is at one moment, into a store of its own in a
    /// directory that is absent or empty. Writers go on meanwhile. Until everything is there the
    /// directory is no store: who opens it is told [`Error::CopyUnfinished`].
    ///
    /// # Errors
    /// [`Error::NotAStore`] if something is there already, if the directory is within a store, or if
    /// there is no such environment; [`Error::CopyUnfinished`] if another copy was begun there;
    /// [`Error::DiskFull`], [`Error::ReadOnly`] and [`Error::Io`]. What was copied till then is
    /// removed.
    pub fn copy_to(&self, path: impl AsRef<Path>, environments: &[&str]) -> Result<(), Error> {
        let path = path.as_ref();
        let Some(files) = &self.inner.files else {
            return Err(Error::NotAStore {
                path: path.into(),
                why: "a store in memory has no files",
            });
        };
        for name in environments {
            check_name(name)?;
            files.expect_environment(name)?;
        }
        let mut copying = root::Copying::begin(path)?;
        for name in environments {
            let engine = Lmdb::open(files.environment(name), &self.inner.options.engine)?;
            engine.copy_to(copying.environment(name)?)?;
        }
        copying.finish()
    }

    /// Compacts an environment that nobody has open, here or elsewhere: the room of its free pages
    /// goes back to the system.
    ///
    /// # Errors
    /// [`Error::InUse`] if somebody has it open; [`Error::NotAStore`] if there is none; what the
    /// medium does. The environment is as it was then.
    pub fn compact(&self, name: &str) -> Result<Compaction, Error> {
        check_name(name)?;
        let Some(files) = &self.inner.files else {
            let why = "a store in memory has no files";
            return Err(Error::NotAStore { path: name.into(), why });
        };
        files.expect_environment(name)?;
        lmdb::compact(files.environment(name), &self.inner.options.engine)
    }

    fn places(&self) -> MutexGuard<'_, HashMap<String, Arc<Place>>> {
        self.inner.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, name: &str) -> Arc<Place> {
        let mut open = self.places();
        if let Some(place) = open.get(name) {
            return Arc::clone(place);
        }
        // Those that could not be opened, and that nobody opens now, are forgotten.
        open.retain(|_, place| place.env.get().is_some() || Arc::strong_count(place) > 1);
        Arc::clone(open.entry(name.into()).or_default())
    }

    fn new(options: StoreOptions, files: Option<Files>) -> Self {
        Self { inner: Arc::new(Inner { options, files, open: Mutex::default() }) }
    }
}

impl Inner {
    fn open(&self, name: &str) -> Result<Env, Error> {
        let engine: Arc<dyn Engine> = match &self.files {
            None => Arc::new(Memory::default()),
            Some(files) => Arc::new(Lmdb::open(files.environment(name), &self.options.engine)?),
        };
        let shared = Arc::new(Shared::new(
            name,
            engine,
            Driver {
                instance: random()?,
                limits: self.options.limits,
                wall_clock: system_clock(),
                outward: self.files.as_ref().and_then(Files::poker),
            },
        ));
        if let Some(files) = &self.files {
            files.listeners.add(&shared.signal);
        }
        maintenance::start(&shared)?;
        Ok(Env::new(shared))
    }
}

impl Files {
    fn environment(&self, name: &str) -> PathBuf {
        self.path.join(ENVIRONMENTS).join(name)
    }

    fn environments(&self) -> Result<Vec<String>, Error> {
        let path = self.path.join(ENVIRONMENTS);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.and_then(Iterator::collect::<io::Result<Vec<_>>>),
        };
        let entries =
            entries.map_err(|cause| Error::io(format!("listing {}", path.display()), cause))?;
        let there = entries.iter().filter(|entry| !lmdb::is_vacant(&entry.path()));
        let names = there.filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter(|name| check_name(name).is_ok()).collect())
    }

    fn expect_environment(&self, name: &str) -> Result<(), Error> {
        let path = self.environment(name);
        if lmdb::is_vacant(&path) {
            return Err(Error::NotAStore { path, why: "there is no such environment" });
        }
        Ok(())
    }

    fn poker(&self) -> Option<Arc<dyn Wake>> {
        let start = || {
            let listeners = Arc::clone(&self.listeners) as Arc<dyn Wake>;
            Poker::start(&self.path, random().ok()?, listeners).ok().map(Arc::new)
        };
        self.poker.get_or_init(start).clone().map(|poker| poker as Arc<dyn Wake>)
    }
}

impl Listeners {
    fn add(&self, signal: &Arc<Signal>) {
        let mut signals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        signals.retain(|signal| signal.strong_count() > 0);
        signals.push(Arc::downgrade(signal));
    }
}

impl Wake for Listeners {
    fn wake(&self) {
        let signals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        signals.iter().filter_map(Weak::upgrade).for_each(|signal| signal.notify());
    }
}

fn random() -> Result<u64, Error> {
    getrandom::u64().map_err(|cause| Error::io("asking the system for randomness", cause.into()))
}

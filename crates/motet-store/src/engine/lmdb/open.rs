//! Opening: one engine per process and path, one opening or transaction at a time among processes.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use heed::types::Bytes;
use heed::{CommitOrAbort, EnvFlags, EnvOpenOptions};

use super::directory::{Creation, DATA, Found, READERS};
use super::keeper::{Bell, TURN_MAX};
use super::turnstile::{Turn, Turnstile, Watch};
use super::view::Views;
use super::{Core, Durability, Env, Open, Options, Tables, data_file, directory, failure};
use crate::clock::millis;
use crate::engine::{KEY_BYTES_MAX, Table, system_clock};
use crate::{Error, Head};

/// The engines of this process. LMDB's locks belong to the process, so that a second environment
/// on the same files would take them from the first.
static ENGINES: LazyLock<Mutex<HashMap<PathBuf, Place>>> = LazyLock::new(Mutex::default);

/// Locked while the engine of a path is being opened.
pub(super) type Place = Arc<Mutex<Weak<Open>>>;

pub(super) fn open(path: &Path, options: &Options) -> Result<Arc<Open>, Error> {
    directory::examine(path)?;
    fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(|cause| failure::from_io(cause, path, "making the directory"))
        .and_then(|path| open_shared(&path, options))
}

fn open_shared(path: &Path, options: &Options) -> Result<Arc<Open>, Error> {
    let place = place_of(path);
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(open) = place.upgrade() {
        return Ok(open);
    }
    let open = Arc::new(open_first(path, options)?);
    *place = Arc::downgrade(&open);
    Ok(open)
}

pub(super) fn place_of(path: &Path) -> Place {
    let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    // Who opens holds the place, from here on.
    engines.retain(|_, place| {
        let open = || place.lock().unwrap_or_else(PoisonError::into_inner).strong_count() > 0;
        Arc::strong_count(place) > 1 || open()
    });
    Arc::clone(engines.entry(path.to_owned()).or_default())
}

fn open_first(path: &Path, options: &Options) -> Result<Open, Error> {
    wait_for_former(path)?;
    let turnstile = Arc::new(Turnstile::open(path)?);
    let turn = take_turn(path, &turnstile)?;
    if directory::examine(path)? == Found::Vacant {
        create(path)?;
    }
    data_file::check_pages(&path.join(DATA))?;
    reserve_readers(path, options.max_readers)?;
    let bell = Arc::new(Bell::default());
    let core = open_core(path, options, &bell)?;
    drop(turn);
    Open::start(core, &turnstile, bell).map_err(|cause| Error::io("starting the threads", cause))
}

/// Waits until an engine on this path that is being dropped has let go of it.
pub(super) fn wait_for_former(path: &Path) -> Result<(), Error> {
    match heed::env_closing_event(path) {
        Some(closing) if !closing.wait_timeout(CLOSING_MAX) => {
            let cause = std::io::ErrorKind::ResourceBusy.into();
            Err(Error::io("waiting for the engine that is being closed", cause))
        }
        _ => Ok(()),
    }
}

/// Takes the turn on a thread of its own, which is left alone where the turn does not come.
fn take_turn(path: &Path, turnstile: &Arc<Turnstile>) -> Result<Turn, Error> {
    let (sender, receiver) = mpsc::channel();
    let taking = Arc::clone(turnstile);
    thread::Builder::new()
        .name("motet-opening".into())
        .spawn(move || sender.send(taking.take(|| ())))
        .map_err(|cause| Error::io("starting a thread", cause))?;
    let (started, mut watch) = (Instant::now(), Watch::default());
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(turn) => {
                return turn.map_err(|cause| failure::from_io(cause, path, "waiting for the turn"));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Closed),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some((pid, held)) = watch.stalled(turnstile) {
            return Err(Error::WriterStalled { pid, held_ms: millis(held) });
        }
        if started.elapsed() > TURN_MAX {
            return Err(Error::WriterBusy { waited_ms: millis(started.elapsed()) });
        }
    }
}

fn create(path: &Path) -> Result<(), Error> {
    let creating = |cause| failure::from_io(cause, path, "creating the store");
    let creation = Creation::begin(path).map_err(creating)?;
    if !creation.has_data() {
        let aside = creation.aside();
        let env = open_env(&aside, &Options { max_readers: 1, ..Options::default() }, 0)?;
        create_tables(&env).map_err(|error| failure::from_heed(error, path, "creating tables"))?;
        env.prepare_for_closing().wait();
    }
    creation.finish().map_err(creating)
}

fn create_tables(env: &Env) -> heed::Result<()> {
    let txn = env.write_txn()?;
    env.create_databases_and_commit(txn, |opener, txn| {
        for table in Table::ALL {
            let created = opener.create_database::<Bytes, Bytes>(txn, Some(table.name()))?;
            if table == Table::Catalog {
                created.put(txn, Head::KEY, &Head::default().to_bytes())?;
            }
        }
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(()))
    })?;
    Ok(())
}

fn open_core(path: &Path, options: &Options, bell: &Arc<Bell>) -> Result<Core, Error> {
    let failed = |error| failure::from_heed(error, path, "opening the store");
    let file_bytes = fs::metadata(path.join(DATA)).map_or(0, |data| data.len());
    let env = open_env(path, options, file_bytes)?;
    assert!(env.max_key_size() >= KEY_BYTES_MAX, "heed is built with `longer-keys`");
    // A writer that was killed between its commit and announcing it left that to the next one to
    // begin; until then views would not see what is committed.
    env.write_txn().map(heed::RwTxn::abort).map_err(failed)?;
    // Who comes for less than the keeper's round would never do it, and what the readers of killed
    // processes saw would never be used again.
    env.clear_stale_readers().map_err(failed)?;
    let tables = open_tables(&env).map_err(failed)?.ok_or_else(|| Error::Corrupt {
        path: path.join(DATA),
        why: "a table is missing".into(),
    })?;
    Ok(Core {
        data: env.try_clone_inner_file().map_err(failed)?,
        page_bytes: env.unnamed_database_stat().page_size.into(),
        env,
        tables,
        options: options.clone(),
        path: path.to_owned(),
        views: Views::new(options, Arc::clone(bell)),
        wrote: AtomicBool::new(false),
        wall_clock: system_clock(),
        poison: OnceLock::new(),
    })
}

fn open_tables(env: &Env) -> heed::Result<Option<Tables>> {
    let txn = env.read_txn()?;
    let opened = env.open_databases_and_commit(txn, |opener, txn| {
        let mut tables = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            match opener.open_database::<Bytes, Bytes>(txn, Some(table.name()))? {
                Some(opened) => tables.push(opened),
                None => return Ok::<_, heed::Error>(CommitOrAbort::Abort(())),
            }
        }
        let tables: [_; Table::ALL.len()] =
            tables.try_into().unwrap_or_else(|_| unreachable!("one was opened for each"));
        Ok(CommitOrAbort::Commit(tables))
    })?;
    Ok(opened.commit().map(Tables))
}

#[allow(
    unsafe_code,
    reason = "LMDB maps the data file, which is sound as long as only LMDB changes it, and no \
              process opens it twice. The directory is checked to be a store's, engines are shared \
              within the process, and openings and transactions take turns among processes. The \
              one flag in use leaves out a sync, not an order of writes."
)]
fn open_env(path: &Path, options: &Options, file_bytes: u64) -> Result<Env, Error> {
    let mut opening = EnvOpenOptions::new().read_txn_without_tls();
    let tables = u32::try_from(Table::ALL.len()).expect("there are four tables");
    opening.map_size(map_bytes(options, file_bytes));
    opening.max_readers(options.max_readers);
    opening.max_dbs(tables);
    let opened = unsafe {
        if options.durability == Durability::Relaxed {
            opening.flags(EnvFlags::NO_META_SYNC);
        }
        opening.open(path)
    };
    opened.map_err(|error| failure::from_heed(error, path, "opening the environment"))
}

/// Address space for the map: enough for pages that wait for a view to end, and for removals where
/// the size is used up. It costs nothing, but a process has not more than 2^47 bytes of it.
fn map_bytes(options: &Options, file_bytes: u64) -> usize {
    let bytes = options.max_bytes.saturating_mul(4).max(file_bytes.saturating_mul(2));
    let bytes = bytes.clamp(MAP_BYTES_MIN, MAP_BYTES_MAX).next_multiple_of(MAP_BYTES_MIN);
    usize::try_from(bytes).unwrap_or(usize::MAX / 4 + 1)
}

/// Takes the medium's room for the table of readers now: a process that first uses a part of it on
/// a full disk would end with `SIGBUS`. Only before LMDB has the file open, for closing it ends the
/// process's locks on it.
fn reserve_readers(path: &Path, max_readers: u32) -> Result<(), Error> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        let path = path.join(READERS);
        let readers = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let readers = readers
            .map_err(|cause| failure::from_io(cause, &path, "opening the table of readers"))?;
        let bytes = (u64::from(max_readers) + 1) * READER_BYTES + READERS_HEAD_BYTES;
        // Some file systems cannot do it.
        match fallocate(&readers, FallocateFlags::KEEP_SIZE, 0, bytes) {
            Err(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT) => Err(Error::DiskFull),
            _ => Ok(()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (path, max_readers, READERS, READER_BYTES, READERS_HEAD_BYTES);
        Ok(())
    }
}

const CLOSING_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Small in this crate's own tests, which fill a map up.
const MAP_BYTES_MIN: u64 = if cfg!(test) { 1 << 20 } else { 1 << 30 };
const MAP_BYTES_MAX: u64 = 1 << 46;
/// Bytes of a slot in the table of readers, and of what precedes the slots.
const READER_BYTES: u64 = 64;
const READERS_HEAD_BYTES: u64 = 4_096;

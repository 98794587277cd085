//! What an environment does in the background: it removes documents whose time has come, and trims
//! the log to what is kept of it.

use core::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::commit::Sweep;
use crate::engine::Table;
use crate::index::{Build, Clear, IndexState};
use crate::keys::TypeId;
use crate::log::Trim;
use crate::shared::Shared;
use crate::signal::{BACKSTOP, Signal};
use crate::{Env, Error, keys, lookup};

/// Starts the thread that maintains an environment. It ends when the last handle is gone.
pub(crate) fn start(shared: &Arc<Shared>) -> Result<(), Error> {
    let (weak, signal) = (Arc::downgrade(shared), Arc::clone(&shared.signal));
    thread::Builder::new()
        .name("motet-maintain".into())
        .spawn(move || run(&weak, &signal))
        .map_err(|cause| Error::io("starting the thread motet-maintain", cause))?;
    Ok(())
}

fn run(shared: &Weak<Shared>, signal: &Arc<Signal>) {
    loop {
        let seen = signal.count();
        let Some(env) = shared.upgrade().map(Env::new) else { return };
        let outcome = step(&env);
        let next = outcome.as_ref().map_or(RETRY, |next| *next);
        env.shared().set_maintenance_error(outcome.err());
        drop(env);
        let started = Instant::now();
        signal.wait(seen, started + next);
        // However often something is committed, looking once in a while is enough: what has expired
        // counts as absent already.
        signal.wait_for_end(started + LOOK_INTERVAL);
    }
}

/// Does what is due, and says how soon to look again at the latest. What fails holds up nothing else:
/// least of all the removal of what has expired, which makes room.
pub(crate) fn step(env: &Env) -> Result<Duration, Error> {
    let trimmed = trim(env);
    let cleared = clear_indexes(env);
    let built = build_indexes(env);
    let next = sweep(env);
    trimmed.and(cleared).and(built).and(next)
}

/// Removes what has expired, and says how soon something will.
fn sweep(env: &Env) -> Result<Duration, Error> {
    let mut before = Vec::new();
    loop {
        let Due { documents, now_ms, next_ms } = pollster::block_on(due(env.shared()))?;
        if documents.is_empty() {
            let next = next_ms.map(|next_ms| Duration::from_millis(next_ms.saturating_sub(now_ms)));
            return Ok(next.unwrap_or(BACKSTOP).min(BACKSTOP));
        }
        if documents == before {
            // None of them went: the wall clock of who decides is behind.
            return Ok(RETRY);
        }
        before.clone_from(&documents);
        env.decide(Box::new(Sweep { shared: Arc::clone(env.shared()), documents }))?;
    }
}

struct Due {
    /// When they are listed, and their keys in `Documents`, up to a batch.
    documents: Vec<(u64, Vec<u8>)>,
    now_ms: u64,
    /// When the next one's time comes.
    next_ms: Option<u64>,
}

/// Documents whose time has come.
async fn due(shared: &Shared) -> Result<Due, Error> {
    let view = shared.engine.view().await?;
    let now_ms = lookup::now_ms(view.as_ref(), shared.unix_ms()).await?;
    let max = shared.limits.background_batch(SWEEP_DOCUMENTS_MAX);
    let (mut documents, mut next_ms) = (Vec::new(), None);
    let mut show = |key: &[u8], _: &[u8]| match keys::split_expiry(key) {
        Some((expires_ms, document)) if expires_ms <= now_ms && documents.len() < max => {
            documents.push((expires_ms, document.to_vec()));
            ControlFlow::Continue(())
        }
        Some((expires_ms, _)) => {
            next_ms = Some(expires_ms);
            ControlFlow::Break(())
        }
        None => ControlFlow::Break(()),
    };
    lookup::range(
        view.as_ref(),
        Table::Index,
        &keys::EXPIRY_START,
        Some(&keys::EXPIRY_END),
        &mut show,
    )
    .await?;
    Ok(Due { documents, now_ms, next_ms })
}

/// Trims the log, a batch of entries at a time, so that no writer waits for long.
fn trim(env: &Env) -> Result<(), Error> {
    while let Some(trim) = pollster::block_on(Trim::plan(env.shared()))? {
        env.decide(Box::new(trim))?;
    }
    Ok(())
}

/// Removes the entries of indexes that were dropped.
fn clear_indexes(env: &Env) -> Result<(), Error> {
    let plan = async || {
        let view = env.shared().engine.view().await?;
        Clear::plan(view.as_ref(), &env.shared().limits).await
    };
    while let Some(clear) = pollster::block_on(plan())? {
        env.decide(Box::new(clear))?;
    }
    Ok(())
}

/// Builds the indexes that are not ready. Any process may, and several do no harm: each batch begins
/// where the last one ended, whoever did it.
fn build_indexes(env: &Env) -> Result<(), Error> {
    while let Some((type_id, name)) = pollster::block_on(unbuilt(env.shared()))? {
        env.decide(Box::new(Build { shared: Arc::clone(env.shared()), type_id, name }))?;
    }
    Ok(())
}

async fn unbuilt(shared: &Shared) -> Result<Option<(TypeId, String)>, Error> {
    let view = shared.engine.view().await?;
    let catalog = shared.catalog.of_view(view.as_ref()).await?;
    let mut building =
        catalog.all_indexes().filter(|index| index.record.state == IndexState::Building);
    Ok(building.next().map(|index| (index.type_id(), index.name.clone())))
}

/// How many documents one transaction removes.
const SWEEP_DOCUMENTS_MAX: usize = 1_000;

/// How soon to try again what has failed.
const RETRY: Duration = Duration::from_secs(10);

/// How often to look while there are commits.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

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

/// Does what is due, and says how soon to look again at the latest.
pub(crate) fn step(env: &Env) -> Result<Duration, Error> {
    trim(env)?;
    clear_indexes(env)?;
    build_indexes(env)?;
    loop {
        let (due, next_ms) = pollster::block_on(due(env.shared()))?;
        let now_ms = env.shared().unix_ms();
        if due.is_empty() {
            let next = next_ms.map(|next_ms| Duration::from_millis(next_ms.saturating_sub(now_ms)));
            return Ok(next.unwrap_or(BACKSTOP).min(BACKSTOP));
        }
        env.decide(Box::new(Sweep { shared: Arc::clone(env.shared()), documents: due }))?;
    }
}

/// Documents whose time has come, up to a batch, and when the next one's comes.
async fn due(shared: &Shared) -> Result<(Vec<(u64, Vec<u8>)>, Option<u64>), Error> {
    let view = shared.engine.view().await?;
    let now_ms = shared.unix_ms();
    let max = shared.limits.background_batch(SWEEP_DOCUMENTS_MAX);
    let (mut due, mut next_ms) = (Vec::new(), None);
    let mut show = |key: &[u8], _: &[u8]| match keys::split_expiry(key) {
        Some((expires_ms, document)) if expires_ms <= now_ms && due.len() < max => {
            due.push((expires_ms, document.to_vec()));
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
    Ok((due, next_ms))
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

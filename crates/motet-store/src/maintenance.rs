//! What an environment does in the background: it removes documents whose time has come, and trims
//! the log to what is kept of it.

use core::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::commit::Sweep;
use crate::document::Record;
use crate::engine::{Table, View};
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
        // Held for a round at a time: a store that its user has dropped is closed soon.
        let Some(env) = shared.upgrade().map(Env::new) else { return };
        let Round { more, outcome } = round(&env);
        let next = outcome.as_ref().map_or(RETRY, |next| *next);
        env.shared().set_maintenance_error(outcome.err());
        drop(env);
        if more {
            continue;
        }
        let started = Instant::now();
        signal.wait(seen, started + next);
        // However often something is committed, looking once in a while is enough: what has expired
        // counts as absent already.
        signal.wait_for_end(started + LOOK_INTERVAL);
    }
}

/// Does all that is due, and says how soon to look again at the latest.
pub(crate) fn finish(env: &Env) -> Result<Duration, Error> {
    loop {
        let Round { more, outcome } = round(env);
        if !more {
            return outcome;
        }
    }
}

/// A transaction of each kind of work.
struct Round {
    /// Whether some kind has more to do at once.
    more: bool,
    /// How soon to look again at the latest.
    outcome: Result<Duration, Error>,
}

/// Does a part of what is due, of each kind as much as one transaction takes: what takes long holds
/// up nothing else. Neither does what fails: least of all the removal of what has expired, which makes
/// room.
fn round(env: &Env) -> Round {
    let outcomes = [trim(env), clear_index(env), build_index(env), sweep(env)];
    let more = outcomes.iter().any(|outcome| matches!(outcome, Ok(next) if *next == AT_ONCE));
    let soonest = outcomes.into_iter().try_fold(BACKSTOP, |soonest, next| Ok(soonest.min(next?)));
    Round { more, outcome: soonest }
}

/// Removes what has expired, and says how soon something will.
fn sweep(env: &Env) -> Result<Duration, Error> {
    let shared = env.shared();
    let found = pollster::block_on(due(shared))?;
    if found.documents.is_empty() {
        return Ok(found.next());
    }
    let sweep = |full| {
        let (shared, documents) = (Arc::clone(shared), found.documents.clone());
        env.decide(Box::new(Sweep { shared, documents, full }))
    };
    match sweep(None) {
        // Others may go that add nothing.
        Err(full @ Error::StoreFull { .. }) => sweep(Some(full))?,
        outcome => outcome?,
    };
    let left = pollster::block_on(due(shared))?;
    if left.documents.is_empty() {
        return Ok(left.next());
    }
    // If none of them went, the wall clock of who decides is behind.
    Ok(if left.documents == found.documents { RETRY } else { AT_ONCE })
}

struct Due {
    /// When they are listed, and their keys in `Documents`, up to a batch.
    documents: Vec<(u64, Vec<u8>)>,
    now_ms: u64,
    /// When the next one's time comes.
    next_ms: Option<u64>,
}

impl Due {
    /// How soon to look again, if there are no documents now.
    fn next(&self) -> Duration {
        let next_ms = self.next_ms.map(|next_ms| next_ms.saturating_sub(self.now_ms));
        next_ms.map_or(BACKSTOP, Duration::from_millis).min(BACKSTOP)
    }
}

/// Documents whose time has come.
async fn due(shared: &Shared) -> Result<Due, Error> {
    let view = shared.engine.view().await?;
    let now_ms = lookup::now_ms(view.as_ref(), shared.unix_ms()).await?;
    forget_too_large(view.as_ref(), now_ms, shared).await?;
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

/// Forgets the document that was too much to remove once it is gone or has come again.
async fn forget_too_large(view: &dyn View, now_ms: u64, shared: &Shared) -> Result<(), Error> {
    let Some((document, _)) = shared.too_large() else { return Ok(()) };
    let bytes = lookup::one(view, Table::Documents, &document).await?;
    let record = bytes.as_deref().and_then(Record::from_bytes);
    if record.is_none_or(|record| record.is_live(now_ms)) {
        shared.set_too_large(None);
    }
    Ok(())
}

/// Does the next thing that the log's retention asks for.
fn trim(env: &Env) -> Result<Duration, Error> {
    let Some(trim) = pollster::block_on(Trim::plan(env.shared()))? else { return Ok(BACKSTOP) };
    env.decide(Box::new(trim))?;
    Ok(AT_ONCE)
}

/// Removes entries of an index that was dropped.
fn clear_index(env: &Env) -> Result<Duration, Error> {
    let plan = async || {
        let view = env.shared().engine.view().await?;
        Clear::plan(view.as_ref(), &env.shared().limits).await
    };
    let Some(clear) = pollster::block_on(plan())? else { return Ok(BACKSTOP) };
    env.decide(Box::new(clear))?;
    Ok(AT_ONCE)
}

/// Builds an index that is not ready. Any process may, and several do no harm: each batch begins
/// where the last one ended, whoever did it.
fn build_index(env: &Env) -> Result<Duration, Error> {
    let Some((type_id, name)) = pollster::block_on(unbuilt(env.shared()))? else {
        return Ok(BACKSTOP);
    };
    env.decide(Box::new(Build { shared: Arc::clone(env.shared()), type_id, name }))?;
    Ok(AT_ONCE)
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

/// How soon to look again where there is more to do.
const AT_ONCE: Duration = Duration::ZERO;

/// How soon to try again what has failed.
const RETRY: Duration = Duration::from_secs(10);

/// How often to look while there are commits.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::memory::Memory;
    use crate::engine::system_clock;
    use crate::shared::Driver;
    use crate::{IndexSpec, Limits, Retention, Write};

    #[test]
    fn what_takes_long_does_not_hold_up_the_rest() {
        let driver = Driver {
            instance: 1,
            limits: Limits { background_batch_max: 1, ..Limits::default() },
            wall_clock: system_clock(),
            outward: None,
        };
        let env = Env::on_engine("test", Arc::new(Memory::default()), driver);
        for n in 0..20 {
            env.put("Order", &format!("o-{n}"), json!({ "total": n })).unwrap();
        }
        env.set_retention(Retention::everything().bytes(0)).unwrap();
        env.create_index("Order", "total", &IndexSpec::new().field("total")).unwrap();
        env.write(Write::put("Session", "s", json!(1)).expires_in(Duration::ZERO)).unwrap();
        let Round { more, outcome } = round(&env);
        assert!(more && outcome.is_ok(), "{outcome:?}");
        let report = env.check().unwrap();
        assert_eq!((report.expiries, report.changes), (0, 21), "one trimmed, one expired");
        let built = &env.indexes("Order").unwrap()[0];
        assert_eq!(built.scanned, Some(1));
        finish(&env).unwrap();
        assert_eq!(env.log().read(crate::Clock::new(21), 10).unwrap().len(), 1);
    }
}

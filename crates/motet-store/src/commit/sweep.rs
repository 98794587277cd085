//! Removing documents whose time has come.

use std::sync::Arc;
use std::time::Duration;

use motet_protocol::fault::planted;

use super::Session;
use super::session::{Effort, HELD_WAIT, HELD_WAIT_FIRST};
use crate::engine::{Decision, Transaction, decides};
use crate::shared::Shared;
use crate::{Error, keys};

/// Removes documents whose time has come.
pub(crate) struct Sweep {
    pub(crate) shared: Arc<Shared>,
    /// When their expiry is listed, and their keys in `Documents`.
    pub(crate) documents: Vec<(u64, Vec<u8>)>,
    /// Why nothing may be added: the store is full.
    pub(crate) full: Option<Error>,
}

decides!(Sweep);

impl Sweep {
    /// Mostly all can go at once. Where a rule of other documents keeps some, those stay, are tried
    /// again later, and hold up nobody: they count as absent already. Which ones these are is found
    /// out of as many as fill a transaction; the others' turns come with the next one.
    async fn run(&mut self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let all: Vec<usize> = (0..self.documents.len()).collect();
        let mut effort = Effort::default();
        match self.attempt(transaction, &all, &[], &mut effort).await {
            Err(error) if is_held(&error) && !planted("sweep-all-or-none") => {}
            outcome => return outcome,
        }
        let (mut go, mut stay) = (Vec::new(), Vec::new());
        let bytes_max = self.shared.engine.capabilities().max_txn_bytes;
        effort = Effort::default();
        for place in all {
            if effort.fills_batch(bytes_max) {
                break;
            }
            match self.attempt(transaction, &[place], &[], &mut effort).await {
                Ok(_) => go.push(place),
                Err(error) if is_held(&error) => {
                    self.tell(transaction, place, &error).await?;
                    stay.push((place, longest_wait(&error)));
                }
                Err(error) => return Err(error),
            }
        }
        let mut count = go.len();
        loop {
            match self.attempt(transaction, &go[..count], &stay, &mut effort).await {
                // Each may go, but not together, or not beside those that stay.
                Err(error) if is_held(&error) && count > 0 => count /= 2,
                outcome => return outcome,
            }
        }
    }

    /// Tells whoever runs the store of a document that is too much to remove, for no other will.
    async fn tell(
        &self,
        transaction: &dyn Transaction,
        place: usize,
        error: &Error,
    ) -> Result<(), Error> {
        if !is_too_large(error) {
            return Ok(());
        }
        let (_, document) = &self.documents[place];
        let catalog = self.shared.catalog.of_transaction(transaction).await?;
        let named = keys::split_document(document).and_then(|(type_id, key)| {
            Some((catalog.type_name(type_id)?.to_owned(), key.to_owned()))
        });
        let too_large = named.map(|(type_name, key)| {
            let why = error.to_string();
            (document.clone(), Error::ExpiryTooLarge { type_name, key, why })
        });
        self.shared.set_too_large(too_large);
        Ok(())
    }

    /// Removes some, lists others for later, and adds to the effort what that came to.
    async fn attempt(
        &self,
        transaction: &dyn Transaction,
        go: &[usize],
        stay: &[(usize, Duration)],
        effort: &mut Effort,
    ) -> Result<Decision, Error> {
        let mut session = Session::begin(transaction, &self.shared).await?;
        for (place, longest) in stay {
            let (listed_ms, document) = &self.documents[*place];
            session.expire_later(*listed_ms, document, *longest).await?;
        }
        let removed = self.remove(&mut session, go).await;
        *effort = effort.plus(session.effort());
        removed?;
        let decision = session.finish().await?;
        match &self.full {
            Some(full) if !decision.writes.makes_room() => Err(full.clone()),
            _ => Ok(decision),
        }
    }

    /// Removes documents until the transaction has enough.
    async fn remove(&self, session: &mut Session<'_>, go: &[usize]) -> Result<(), Error> {
        for place in go {
            if session.is_batch_full() {
                break;
            }
            let (listed_ms, document) = &self.documents[*place];
            session.expire(*listed_ms, document).await?;
        }
        Ok(())
    }
}

/// Whether a rule of documents or their size stands against the removal of one, or there is no room
/// for what it adds, and not the medium.
const fn is_held(error: &Error) -> bool {
    matches!(
        error,
        Error::ReferenceRestricted(_)
            | Error::ReferenceMissing(_)
            | Error::ReferencesBuilding { .. }
            | Error::SchemaViolation { .. }
            | Error::UniqueViolation { .. }
            | Error::IndexEntriesTooMany { .. }
            | Error::BatchTooLarge { .. }
            | Error::TransactionTooLarge { .. }
            | Error::ValueTooLarge { .. }
            | Error::StoreFull { .. }
    )
}

/// Whether the removal of one alone is too much.
const fn is_too_large(error: &Error) -> bool {
    matches!(error, Error::BatchTooLarge { .. } | Error::TransactionTooLarge { .. })
}

/// For how long one that is held waits at most. What is too much is so for long, and finding out takes
/// long; what others rule may change any time.
const fn longest_wait(error: &Error) -> Duration {
    if is_too_large(error) { HELD_WAIT } else { HELD_WAIT_FIRST }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::json;

    use super::*;
    use crate::clock::millis;
    use crate::commit::counting::Counted;
    use crate::engine::Engine as _;
    use crate::engine::memory::Memory;
    use crate::shared::Driver;
    use crate::{Env, IndexSpec, Limits, OnDelete, TypeSpec, Write};

    #[test]
    fn one_that_is_held_makes_a_sweep_look_at_no_more_than_fills_a_transaction() {
        let wall = Arc::new(AtomicU64::new(1_000));
        let shown = || {
            let wall = Arc::clone(&wall);
            Box::new(move || wall.load(Ordering::Relaxed))
        };
        let engine = Arc::new(Memory::with_wall_clock(shown()));
        let driver =
            Driver { instance: 1, limits: Limits::default(), wall_clock: shown(), outward: None };
        let env = Env::on_engine("test", Arc::clone(&engine) as Arc<_>, driver);
        env.define("Part", &TypeSpec::new().reference("of", "Scan", OnDelete::Restrict)).unwrap();
        env.create_index("Scan", "tags", &IndexSpec::new().field("tags")).unwrap();
        env.maintain().unwrap();
        let (count, lasts) = (100, Duration::from_secs(1));
        let tags: Vec<_> = (0..990).map(|n| format!("{n:0130}")).collect();
        let keys: Vec<_> = (0..count).map(|n| format!("{n:0480}")).collect();
        for key in &keys {
            let write = Write::put("Scan", key.as_str(), json!({ "tags": tags }));
            env.write(write.expires_in(lasts)).unwrap();
        }
        env.put("Part", "p", json!({ "of": keys[0] })).unwrap();
        wall.store(2_000 + millis(lasts), Ordering::Relaxed);
        let view = pollster::block_on(engine.view()).unwrap();
        let catalog = pollster::block_on(env.shared().catalog.of_view(view.as_ref())).unwrap();
        let type_id = catalog.type_id("Scan").unwrap();
        let documents =
            keys.iter().map(|key| (1_000 + millis(lasts), keys::document(type_id, key)));
        let decider =
            Sweep { shared: Arc::clone(env.shared()), documents: documents.collect(), full: None };
        let (counted, reads) = Counted::new(decider);
        let outcome = pollster::block_on(engine.write(vec![Box::new(counted)])).pop().unwrap();
        let removed = outcome.unwrap();
        assert!(removed.clock.number() - removed.before.number() > 10, "the others went");
        let looked_up = reads.documents();
        assert!(looked_up < 2 * count, "{looked_up}");
    }
}

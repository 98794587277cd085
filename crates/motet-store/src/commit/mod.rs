//! The deciders of documents: what runs inside the open write transaction.

mod once;
mod overlay;
mod references;
mod session;
mod violations;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use motet_protocol::fault::planted;

use crate::document::Write;
use crate::engine::{Decision, Transaction, decides};
use crate::read_set::ReadSet;
use crate::shared::Shared;
use crate::{Clock, Error};
pub use once::IdempotencyKey;
pub(crate) use session::Session;

/// All writes or none, and only if nothing that was read has changed since.
pub(crate) struct Batch {
    shared: Arc<Shared>,
    writes: Vec<Write>,
    reads: ReadSet,
    /// What it is done once for.
    once: Option<IdempotencyKey>,
    versions: Versions,
}

/// The versions that a batch's writes gave, in their order; there once it is committed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Versions(Arc<Mutex<Vec<Clock>>>);

impl Versions {
    pub(crate) fn take(&self) -> Vec<Clock> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, versions: Vec<Clock>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = versions;
    }
}

impl Batch {
    pub(crate) fn new(shared: Arc<Shared>, writes: Vec<Write>, reads: ReadSet) -> (Self, Versions) {
        let versions = Versions::default();
        (Self { shared, writes, reads, once: None, versions: versions.clone() }, versions)
    }

    /// The batch, to be done only if it was not done for this key before.
    pub(crate) fn once(mut self, key: IdempotencyKey) -> Self {
        self.once = Some(key);
        self
    }

    async fn run(&mut self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let mut session = Session::begin(transaction, &self.shared).await?;
        if let Some(key) = &self.once
            && let Some(versions) = session.done_before(key).await?
        {
            self.versions.set(versions);
            return Ok(Decision::default());
        }
        self.reads.check(transaction, session.catalog()).await?;
        session.fetch(&self.writes).await?;
        // Nothing is left of an earlier time that it was asked.
        let mut versions = Vec::with_capacity(self.writes.len());
        if planted("count-every-asking") {
            versions = self.versions.take();
        }
        for write in &self.writes {
            match session.apply(write).await {
                Err(_) if planted("commit-half-a-batch") => break,
                version => versions.push(version?),
            }
        }
        if let Some(key) = &self.once {
            session.keep_done(key, &versions);
        }
        self.versions.set(versions);
        session.finish().await
    }
}

decides!(Batch, Sweep);

/// Removes documents whose time has come.
pub(crate) struct Sweep {
    pub(crate) shared: Arc<Shared>,
    /// When their expiry is listed, and their keys in `Documents`.
    pub(crate) documents: Vec<(u64, Vec<u8>)>,
}

impl Sweep {
    /// Mostly all can go at once. Where a rule of other documents keeps some, those stay, are tried
    /// again later, and hold up nobody: they count as absent already.
    async fn run(&mut self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let all: Vec<usize> = (0..self.documents.len()).collect();
        match self.attempt(transaction, &all, &[]).await {
            Err(error) if is_held(&error) && !planted("sweep-all-or-none") => {}
            outcome => return outcome,
        }
        let (mut go, mut stay) = (Vec::new(), Vec::new());
        for place in all {
            match self.attempt(transaction, &[place], &[]).await {
                Ok(_) => go.push(place),
                Err(error) if is_held(&error) => stay.push(place),
                Err(error) => return Err(error),
            }
        }
        let mut count = go.len();
        loop {
            match self.attempt(transaction, &go[..count], &stay).await {
                // Each may go, but not together: the others' turns come.
                Err(error) if is_held(&error) && count > 1 => count /= 2,
                outcome => return outcome,
            }
        }
    }

    async fn attempt(
        &self,
        transaction: &dyn Transaction,
        go: &[usize],
        stay: &[usize],
    ) -> Result<Decision, Error> {
        let mut session = Session::begin(transaction, &self.shared).await?;
        for place in stay {
            let (listed_ms, document) = &self.documents[*place];
            session.expire_later(*listed_ms, document, HELD_WAIT);
        }
        for place in go {
            if session.is_batch_full() {
                break;
            }
            let (listed_ms, document) = &self.documents[*place];
            session.expire(*listed_ms, document).await?;
        }
        session.finish().await
    }
}

/// Whether a rule of documents or their size stands against the removal of one, and not the medium.
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
    )
}

/// How soon to try again to remove a document that a rule of others keeps.
pub(crate) const HELD_WAIT: Duration = Duration::from_secs(10);

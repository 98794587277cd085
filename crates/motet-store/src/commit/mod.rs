//! The deciders of documents: what runs inside the open write transaction.

#[cfg(test)]
mod counting;
mod once;
mod overlay;
mod references;
mod session;
mod sweep;
mod violations;

use std::sync::{Arc, Mutex, PoisonError};

use motet_protocol::fault::planted;

use crate::document::Write;
use crate::engine::{Decision, Transaction, decides};
use crate::read_set::ReadSet;
use crate::shared::Shared;
use crate::{Clock, Error};
pub use once::IdempotencyKey;
pub(crate) use session::{HELD_WAIT, Session};
pub(crate) use sweep::Sweep;

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

decides!(Batch);

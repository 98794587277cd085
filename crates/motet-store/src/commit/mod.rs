//! The deciders of documents: what runs inside the open write transaction.

mod overlay;
mod references;
mod session;
mod violations;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::document::Write;
use crate::engine::{Answer, Decide, Decision, Transaction};
use crate::keys::TypeId;
use crate::read_set::ReadSet;
use crate::shared::Shared;
use crate::{Clock, Error, keys};
pub(crate) use session::Session;

/// All writes or none, and only if nothing that was read has changed since.
pub(crate) struct Batch {
    shared: Arc<Shared>,
    writes: Vec<Write>,
    reads: ReadSet,
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
        (Self { shared, writes, reads, versions: versions.clone() }, versions)
    }

    async fn run(&mut self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let mut session = Session::begin(transaction, &self.shared).await?;
        self.reads.check(transaction, session.catalog()).await?;
        session.fetch(&self.writes).await?;
        let mut versions = Vec::with_capacity(self.writes.len());
        for write in &self.writes {
            versions.push(session.apply(write).await?);
        }
        self.versions.set(versions);
        session.finish().await
    }
}

impl Decide for Batch {
    fn decide<'a>(
        &'a mut self,
        transaction: &'a dyn Transaction,
    ) -> Answer<'a, Result<Decision, Error>> {
        Answer::later(self.run(transaction))
    }
}

/// Removes documents whose time has come.
pub(crate) struct Sweep {
    pub(crate) shared: Arc<Shared>,
    /// When their expiry is listed, and their keys in `Documents`.
    pub(crate) documents: Vec<(u64, Vec<u8>)>,
}

impl Sweep {
    /// Those that others refer to stay and are tried again later: they count as absent already.
    async fn run(&mut self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let mut stay: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut session = Session::begin(transaction, &self.shared).await?;
            for (listed_ms, document) in &self.documents {
                if stay.contains(document) {
                    session.expire_later(*listed_ms, document, RESTRICTED_WAIT);
                } else {
                    session.expire(*listed_ms, document).await?;
                }
            }
            let catalog = Arc::clone(&session.catalog);
            let held = match session.finish().await {
                Err(Error::ReferenceRestricted(held)) => held,
                outcome => return outcome,
            };
            let type_id = catalog.type_named(&held.to).map_or(TypeId(0), |found| TypeId(found.id));
            stay.push(keys::document(type_id, &held.target));
        }
    }
}

impl Decide for Sweep {
    fn decide<'a>(
        &'a mut self,
        transaction: &'a dyn Transaction,
    ) -> Answer<'a, Result<Decision, Error>> {
        Answer::later(self.run(transaction))
    }
}

/// How soon to try again to remove a document that others refer to.
const RESTRICTED_WAIT: Duration = Duration::from_secs(10);

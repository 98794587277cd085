//! The life of an index: it is created, built batch by batch, and cleared when it is dropped.

use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

use motet_protocol::fault::planted;
use serde::{Deserialize, Serialize};

use super::{Index, IndexRecord, IndexSpec, IndexState};
use crate::commit::Session;
use crate::document::{Document, Record, Write};
use crate::engine::{Decision, Direction, Range, Read, Table, Transaction, Writes, decides};
use crate::keys::{self, TypeId};
use crate::shared::Shared;
use crate::value::successor;
use crate::{Error, Limits, lookup};

/// Makes an index. What its writers do from then on is in it; what is there already is added by
/// [`Build`].
pub(crate) struct Create {
    pub(crate) shared: Arc<Shared>,
    pub(crate) type_name: String,
    pub(crate) name: String,
    pub(crate) spec: IndexSpec,
}

impl Create {
    async fn run(&mut self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let mut session = Session::begin(transaction, &self.shared).await?;
        let type_id = session.type_id(&self.type_name);
        if let Some(index) = session.catalog().index(type_id, &self.name) {
            let same = index.record.spec == self.spec && index.is_kept();
            return if same { Ok(Decision::default()) } else { Err(self.exists()) };
        }
        add(&mut session, &self.type_name, &self.name, self.spec.clone()).await?;
        session.finish().await
    }

    fn exists(&self) -> Error {
        Error::IndexExists { type_name: self.type_name.clone(), name: self.name.clone() }
    }
}

/// Adds an index to the catalogue: to be built, or ready at once if there is nothing to add.
pub(crate) async fn add(
    session: &mut Session<'_>,
    type_name: &str,
    name: &str,
    spec: IndexSpec,
) -> Result<(), Error> {
    let id = session.next_index_id().await?;
    let type_id = session.type_id(type_name);
    let nothing_to_add = session.is_type_empty(type_id).await?;
    let record = IndexRecord {
        id,
        type_id: type_id.0,
        spec,
        state: if nothing_to_add { IndexState::Ready } else { IndexState::Building },
        multiple: false,
        shortened: false,
    };
    if !nothing_to_add {
        session.put_catalog(&progress_key(id), &Progress::default().to_bytes());
    }
    session.set_index(type_name, Index::new(name, record)?);
    Ok(())
}

/// Takes an index out of the catalogue, to be cleared.
pub(crate) fn remove(session: &mut Session<'_>, type_name: &str, index: &Index) {
    session.put_catalog(&cleared_key(index.record.id), &[]);
    session.remove_catalog(&progress_key(index.record.id));
    session.remove_index(type_name, index);
}

/// Adds a batch of documents to an index that is being built.
pub(crate) struct Build {
    pub(crate) shared: Arc<Shared>,
    pub(crate) type_id: TypeId,
    pub(crate) name: String,
}

impl Build {
    async fn run(&mut self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let session = Session::begin(transaction, &self.shared).await?;
        let Some(index) = session.catalog().index(self.type_id, &self.name).map(Arc::clone) else {
            return Ok(Decision::default());
        };
        if index.record.state != IndexState::Building {
            return Ok(Decision::default());
        }
        let progress = Progress::load(transaction, index.record.id).await?;
        let batch = self.batch(transaction, &progress).await?;
        let type_name = session.catalog().type_name(self.type_id).unwrap_or_default().to_owned();
        let mut count = batch.documents.len();
        loop {
            let mut session = Session::begin(transaction, &self.shared).await?;
            let documents = &batch.documents[..count];
            match add_documents(&mut session, &type_name, &index, documents).await {
                Ok(added) => {
                    match documents[..added].last() {
                        Some(last) if added < batch.documents.len() || batch.more => {
                            let progress = progress.after(&last.key, added);
                            let key = progress_key(index.record.id);
                            session.put_catalog(&key, &progress.to_bytes());
                        }
                        _ => end(&mut session, &type_name, &index, IndexState::Ready),
                    }
                    return session.finish().await;
                }
                Err(Error::TransactionTooLarge { .. }) if count > 1 => count /= 2,
                Err(error) if is_of_documents(&error) => {
                    return self.fail(transaction, &type_name, &index, &error).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the index up, without what this batch had decided.
    async fn fail(
        &self,
        transaction: &dyn Transaction,
        type_name: &str,
        index: &Index,
        error: &Error,
    ) -> Result<Decision, Error> {
        let mut session = Session::begin(transaction, &self.shared).await?;
        end(&mut session, type_name, index, IndexState::Failed { reason: error.to_string() });
        session.put_catalog(&cleared_key(index.record.id), &[]);
        session.finish().await
    }

    fn batch_max(&self) -> usize {
        self.shared.limits.background_batch(BATCH_DOCUMENTS)
    }

    /// The next documents after those that have been added: few where they are large.
    async fn batch(
        &self,
        transaction: &dyn Transaction,
        progress: &Progress,
    ) -> Result<Batch, Error> {
        let all = keys::document(self.type_id, "");
        let end = successor(&all);
        let start = match &progress.after {
            None => all,
            Some(after) => keys::just_after(keys::document(self.type_id, after)),
        };
        let max = self.batch_max();
        let mut batch = Batch { documents: Vec::new(), more: false };
        let (mut read, mut failed) = (0, Ok(()));
        let mut show = |at: &[u8], bytes: &[u8]| {
            let key = keys::split_document(at).map_or("", |(_, key)| key);
            let record = Record::parse(bytes, format_args!("document {key:?}"));
            let document = record.and_then(|record| Document::from_record(key, &record));
            match document {
                Ok(document) => batch.documents.push(document),
                Err(error) => failed = Err(error),
            }
            read += bytes.len();
            batch.more = batch.documents.len() == max || read >= BATCH_BYTES;
            let done = failed.is_err() || batch.more;
            if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        lookup::range(transaction, Table::Documents, &start, end.as_deref(), &mut show).await?;
        failed.map(|()| batch)
    }
}

/// Documents that are to be added to an index.
struct Batch {
    documents: Vec<Document>,
    /// Whether there may be more after them.
    more: bool,
}

/// Whether documents are such that the index cannot be.
const fn is_of_documents(error: &Error) -> bool {
    matches!(
        error,
        Error::UniqueViolation { .. }
            | Error::IndexEntriesTooMany { .. }
            | Error::TransactionTooLarge { .. }
    )
}

/// Adds documents to an index, until the transaction has enough, and says how many. One that its
/// writers have added already is added again, which changes nothing.
async fn add_documents(
    session: &mut Session<'_>,
    type_name: &str,
    index: &Index,
    batch: &[Document],
) -> Result<usize, Error> {
    for (added, document) in batch.iter().enumerate() {
        // The first one always: that none was added would mean that there are no more.
        if added > 0 && session.is_batch_full() {
            return Ok(added);
        }
        let new = index.entries(&document.key, &document.value)?;
        let write = Write::remove(type_name, document.key.as_str());
        let live = session.is_live_until(document.expires_ms);
        session.keep_index(index, &write, &super::Entries::default(), &new, live).await?;
    }
    Ok(batch.len())
}

fn end(session: &mut Session<'_>, type_name: &str, index: &Index, state: IndexState) {
    let known = session.catalog().index(index.type_id(), &index.name);
    let mut index = known.map_or_else(|| index.clone(), |known| Index::clone(known));
    index.record.state = state;
    session.remove_catalog(&progress_key(index.record.id));
    session.set_index(type_name, index);
}

/// Takes an index out of the catalogue. Its entries are removed by [`Clear`].
pub(crate) struct Drop {
    pub(crate) shared: Arc<Shared>,
    pub(crate) type_name: String,
    pub(crate) name: String,
}

impl Drop {
    async fn run(&mut self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let mut session = Session::begin(transaction, &self.shared).await?;
        let found = session.catalog().type_id(&self.type_name);
        let found = found.and_then(|type_id| session.catalog().index(type_id, &self.name));
        let Some(index) = found.map(Arc::clone) else {
            return Err(Error::IndexNotFound {
                type_name: self.type_name.clone(),
                name: self.name.clone(),
            });
        };
        remove(&mut session, &self.type_name, &index);
        session.finish().await
    }
}

/// Removes a batch of the entries of an index that is no more.
pub(crate) struct Clear {
    id: u32,
    /// How many entries it removes at most.
    max: usize,
}

impl Clear {
    /// The next index that is to be cleared.
    pub(crate) async fn plan(view: &dyn Read, limits: &Limits) -> Result<Option<Self>, Error> {
        let max = limits.background_batch(CLEAR_ENTRIES);
        let mut found = None;
        let end = successor(CLEARED_PREFIX);
        let mut show = |key: &[u8], _: &[u8]| {
            let id = key[CLEARED_PREFIX.len()..].try_into().map(u32::from_be_bytes);
            found = id.ok().map(|id| Self { id, max });
            ControlFlow::Break(())
        };
        lookup::range(view, Table::Catalog, CLEARED_PREFIX, end.as_deref(), &mut show).await?;
        Ok(found)
    }

    async fn run(&mut self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let prefix = self.id.to_be_bytes();
        let end = successor(&prefix);
        let mut writes = Writes::default();
        let mut show = |key: &[u8], _: &[u8]| {
            writes.remove(Table::Index, key);
            let full = writes.len() == self.max;
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let range = Range {
            table: Table::Index,
            from: Bound::Included(&prefix),
            to: end.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
            direction: Direction::Forward,
        };
        transaction.range(range, &mut show).await?;
        if writes.len() < self.max || planted("clear-one-batch") {
            writes.remove(Table::Catalog, &cleared_key(self.id));
        }
        Ok(Decision { writes, changes: 0 })
    }
}

decides!(Create, Build, Drop, Clear);

/// How far a build is.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// The key of the last document that was added.
    after: Option<String>,
    pub(crate) scanned: u64,
}

impl Progress {
    pub(crate) async fn load(from: &dyn Read, id: u32) -> Result<Self, Error> {
        match lookup::one(from, Table::Catalog, &progress_key(id)).await? {
            None => Ok(Self::default()),
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| Error::Damaged {
                what: "the progress of an index that is being built".into(),
                why: error.to_string(),
            }),
        }
    }

    /// Where it is when so many more documents, up to this one, were added.
    fn after(&self, key: &str, added: usize) -> Self {
        Self { after: Some(key.to_owned()), scanned: self.scanned + added as u64 }
    }

    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a key and a number can be written")
    }
}

/// Whether an index was dropped and its entries are still being removed.
pub(crate) async fn is_cleared(from: &dyn Read, id: u32) -> Result<bool, Error> {
    lookup::one(from, Table::Catalog, &cleared_key(id)).await.map(|found| found.is_some())
}

fn progress_key(id: u32) -> Vec<u8> {
    [PROGRESS_PREFIX, &id.to_be_bytes()].concat()
}

fn cleared_key(id: u32) -> Vec<u8> {
    [CLEARED_PREFIX, &id.to_be_bytes()].concat()
}

const PROGRESS_PREFIX: &[u8] = b"building/";
const CLEARED_PREFIX: &[u8] = b"clearing/";

/// How many documents one transaction adds to an index.
const BATCH_DOCUMENTS: usize = 500;
/// Bytes of documents after which no more are read for one transaction.
const BATCH_BYTES: usize = 8 << 20;
/// How many entries one transaction removes of an index that is no more.
const CLEAR_ENTRIES: usize = 2_000;

//! Transactions: a function on a view, whose writes hold only if nothing that it read has changed.

use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::catalog::Catalog;
use crate::document::{Document, Record, check_key, check_name};
use crate::engine::{Table, View};
use crate::keys::{self, TypeId};
use crate::read_set::{RangeRead, ReadSet};
use crate::{Clock, Env, Error, KeyRange, Patch, Write, lookup};

/// What a function given to [`Env::transact`] works with. Reads see the view that was taken when it
/// began, and over it what the transaction itself wrote.
///
/// [`Env::begin`] gives one that is committed by hand.
pub struct Transaction {
    env: Env,
    view: Box<dyn View>,
    catalog: Arc<Catalog>,
    now_ms: u64,
    reads: ReadSet,
    writes: Vec<Write>,
    /// The values after the transaction's own writes, by type and key.
    own: BTreeMap<(String, String), Option<Value>>,
}

/// Runs the function until it commits without a conflict.
pub(crate) fn run<T, E: From<Error>>(
    env: &Env,
    mut run: impl FnMut(&mut Transaction) -> Result<T, E>,
) -> Result<T, E> {
    let mut tries_left = env.shared().limits.transact_tries_max;
    loop {
        let mut transaction = Transaction::begin(env)?;
        let result = run(&mut transaction)?;
        tries_left = tries_left.saturating_sub(1);
        match transaction.commit() {
            Ok(_) => return Ok(result),
            Err(Error::Conflict { .. }) if tries_left > 0 => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Transaction {
    pub(crate) fn begin(env: &Env) -> Result<Self, Error> {
        let shared = env.shared();
        pollster::block_on(async {
            let view = shared.engine.view().await?;
            let head = lookup::head(view.as_ref()).await?;
            let catalog = shared.catalog.of_view(view.as_ref()).await?;
            Ok(Self {
                env: env.clone(),
                reads: ReadSet::of_view(head.clock),
                now_ms: head.time.unix_ms().max(shared.unix_ms()),
                writes: Vec::new(),
                own: BTreeMap::new(),
                view,
                catalog,
            })
        })
    }

    /// The value of a document, with what this transaction did to it.
    ///
    /// # Errors
    /// Names and keys that are not allowed; [`Error::ViewExpired`] in a function that runs for too
    /// long; what the medium does.
    pub fn get(&mut self, type_name: &str, key: &str) -> Result<Option<Value>, Error> {
        check_name(type_name)?;
        check_key(key)?;
        if let Some(own) = self.own.get(&(type_name.to_owned(), key.to_owned())) {
            return Ok(own.clone());
        }
        Ok(self.document(type_name, key)?.map(|document| document.value))
    }

    /// Documents of a type in the order of their keys, with what this transaction did to them; what
    /// it wrote has [`Clock::ZERO`] for a version. That no document comes, goes or changes within
    /// the range is a condition of the commit.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn range(&mut self, type_name: &str, range: &KeyRange) -> Result<Vec<Document>, Error> {
        check_name(type_name)?;
        self.system_range(type_name, range)
    }

    /// Documents also of the store's own types.
    pub(crate) fn system_range(
        &mut self,
        type_name: &str,
        range: &KeyRange,
    ) -> Result<Vec<Document>, Error> {
        let limit = range.limit.unwrap_or(usize::MAX);
        let mut documents = self.range_of_view(type_name, range)?;
        for (key, value) in self.own_of_type(type_name).filter(|(key, _)| range.contains(key)) {
            match value {
                None => documents.remove(key),
                Some(value) => documents.insert(key.into(), Document::unversioned(key, value)),
            };
        }
        Ok(documents.into_values().take(limit).collect())
    }

    /// Creates a document or replaces it, when the transaction commits.
    pub fn put(&mut self, type_name: &str, key: &str, value: Value) {
        self.own.insert((type_name.into(), key.into()), Some(value.clone()));
        self.writes.push(Write::put(type_name, key, value));
    }

    /// Changes parts of a document.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::PatchInvalid`]; otherwise as for [`get`](Self::get).
    pub fn patch(&mut self, type_name: &str, key: &str, patch: Patch) -> Result<(), Error> {
        let Some(value) = self.get(type_name, key)? else {
            return Err(Error::NotFound { type_name: type_name.into(), key: key.into() });
        };
        self.own.insert((type_name.into(), key.into()), Some(patch.apply(value)?));
        self.writes.push(Write::patch(type_name, key, patch));
        Ok(())
    }

    /// Removes a document, when the transaction commits.
    ///
    /// # Errors
    /// [`Error::NotFound`]; otherwise as for [`get`](Self::get).
    pub fn remove(&mut self, type_name: &str, key: &str) -> Result<(), Error> {
        if self.get(type_name, key)?.is_none() {
            return Err(Error::NotFound { type_name: type_name.into(), key: key.into() });
        }
        self.own.insert((type_name.into(), key.into()), None);
        self.writes.push(Write::remove(type_name, key));
        Ok(())
    }

    /// Commits what was written, all or nothing, only if nothing that was read has changed. A
    /// transaction that wrote nothing has nothing to check: it read one view.
    ///
    /// # Errors
    /// [`Error::Conflict`], after which everything can be done again; otherwise as for
    /// [`Env::write`].
    pub fn commit(self) -> Result<Vec<Clock>, Error> {
        let Self { env, view, reads, writes, .. } = self;
        drop(view);
        if writes.is_empty() { Ok(Vec::new()) } else { env.commit(writes, reads) }
    }

    fn type_id(&mut self, type_name: &str) -> Option<TypeId> {
        let id = self.catalog.type_id(type_name);
        if id.is_none() {
            self.reads.absent_type(type_name);
        }
        id
    }

    /// The document in the view, which becomes a condition of the commit.
    fn document(&mut self, type_name: &str, key: &str) -> Result<Option<Document>, Error> {
        let Some(type_id) = self.type_id(type_name) else { return Ok(None) };
        let at = keys::document(type_id, key);
        let bytes = pollster::block_on(lookup::one(self.view.as_ref(), Table::Documents, &at))?;
        let what = format_args!("{type_name} {key:?}");
        let record = bytes.as_deref().map(|bytes| Record::parse(bytes, what)).transpose()?;
        let version = record.map_or(Clock::ZERO, |record| record.version);
        self.reads.document(type_name, key, at, version);
        let expires_ms = record.and_then(|record| record.expires_ms);
        self.reads.lifetime(type_name, key, expires_ms, self.now_ms);
        match record.filter(|record| record.is_live(self.now_ms)) {
            None => Ok(None),
            Some(record) => Document::from_record(key, &record).map(Some),
        }
    }

    fn own_of_type(&self, type_name: &str) -> impl Iterator<Item = (&str, Option<&Value>)> {
        let own = self.own.iter().filter(move |((name, _), _)| name == type_name);
        own.map(|((_, key), value)| (key.as_str(), value.as_ref()))
    }

    /// As many documents of the view as the range can need: those that the transaction removed do
    /// not count towards its limit.
    fn range_of_view(
        &mut self,
        type_name: &str,
        range: &KeyRange,
    ) -> Result<BTreeMap<String, Document>, Error> {
        let removed = self.own_of_type(type_name).filter(|(_, value)| value.is_none()).count();
        let limit = range.limit.map_or(usize::MAX, |limit| limit.saturating_add(removed));
        let Some(type_id) = self.type_id(type_name) else { return Ok(BTreeMap::new()) };
        let (from, to) = range.bounds(type_id);
        let mut read = RangeRead::new(type_name, from, to);
        let documents = pollster::block_on(self.read_range(&mut read, limit))?;
        self.reads.range(read);
        Ok(documents)
    }

    async fn read_range(
        &self,
        read: &mut RangeRead,
        limit: usize,
    ) -> Result<BTreeMap<String, Document>, Error> {
        let RangeRead { type_name, from, to, found, lifetimes } = read;
        let (until, mut end) = (to.clone(), None);
        let mut documents = BTreeMap::new();
        let mut failed = Ok(());
        let mut show = |at: &[u8], bytes: &[u8]| {
            if documents.len() == limit {
                // What lies behind the last one that was wanted has not been read.
                end = Some(at.to_vec());
                return ControlFlow::Break(());
            }
            let key = keys::split_document(at).map_or("", |(_, key)| key);
            let record = Record::parse(bytes, format_args!("{type_name} {key:?}"));
            failed = record.and_then(|record| {
                found.push((at.to_vec(), record.version));
                lifetimes.note(type_name, key, record.expires_ms, self.now_ms);
                if record.is_live(self.now_ms) {
                    documents.insert(key.to_owned(), Document::from_record(key, &record)?);
                }
                Ok(())
            });
            if failed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let view = self.view.as_ref();
        lookup::range(view, Table::Documents, from, until.as_deref(), &mut show).await?;
        if end.is_some() {
            *to = end;
        }
        failed.map(|()| documents)
    }
}

//! An environment: documents, transactions and the log, as its user sees them.

mod definitions;

use std::sync::Arc;
use std::time::Duration;

use motet_protocol::fault::planted;
use serde_json::Value;

use crate::commit::{Batch, IdempotencyKey};
use crate::document::{Document, RawDocument, Record, check_key, check_name};
use crate::engine::{Commit, Decide, Engine, Table};
use crate::log::{Retention, SetRetention};
use crate::read_set::ReadSet;
use crate::shared::{Driver, Shared};
use crate::signal::Wake;
use crate::transaction::{self, Transaction};
use crate::{
    CheckReport, Clock, Error, KeyRange, Log, Patch, Query, Write, check, keys, lookup, maintenance,
};

/// One environment of a store: its own documents, clock and log. Clones are handles on the same.
///
/// ```
/// use motet_store::{Store, Write};
/// use serde_json::json;
///
/// let env = Store::in_memory().env("default")?;
/// let first = env.put("Order", "o-1", json!({"total": 10}))?;
/// env.write(Write::update("Order", "o-1", json!({"total": 12})).if_version(first))?;
///
/// let order = env.get("Order", "o-1")?.expect("it was put");
/// assert_eq!(order.value["total"], 12);
/// assert!(order.version > first);
/// # Ok::<(), motet_store::Error>(())
/// ```
#[derive(Clone)]
pub struct Env {
    shared: Arc<Shared>,
    /// All clones have the same.
    _last: Arc<LastHandle>,
}

/// Goes with the last handle, and so before the process ends: what they share may still be held by
/// the thread in the background then.
struct LastHandle(Option<Arc<dyn Wake>>);

impl Drop for LastHandle {
    fn drop(&mut self) {
        if let Some(outward) = &self.0 {
            outward.flush();
        }
    }
}

impl Env {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let last = Arc::new(LastHandle(shared.outward.clone()));
        Self { shared, _last: last }
    }

    /// An environment on an engine of the caller's, without a thread in the background: the caller
    /// [maintains](Self::maintain) it. Every process of a store opens its own.
    #[must_use]
    pub fn on_engine(name: &str, engine: Arc<dyn Engine>, driver: Driver) -> Self {
        Self::new(Arc::new(Shared::new(name, engine, driver)))
    }

    /// Does what is due in the background (removing what has expired, trimming the log, building
    /// and clearing indexes) and says how soon to call again at the latest.
    ///
    /// # Errors
    /// What the medium does; calling again later is right.
    pub fn maintain(&self) -> Result<Duration, Error> {
        maintenance::finish(self)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Creates a document or replaces it, and gives its version.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn put(&self, type_name: &str, key: &str, value: Value) -> Result<Clock, Error> {
        self.write(Write::put(type_name, key, value))
    }

    /// Creates a document and gives its version.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`]; otherwise as for [`write`](Self::write).
    pub fn create(&self, type_name: &str, key: &str, value: Value) -> Result<Clock, Error> {
        self.write(Write::create(type_name, key, value))
    }

    /// Replaces a document and gives its version.
    ///
    /// # Errors
    /// [`Error::NotFound`]; otherwise as for [`write`](Self::write).
    pub fn update(&self, type_name: &str, key: &str, value: Value) -> Result<Clock, Error> {
        self.write(Write::update(type_name, key, value))
    }

    /// Changes parts of a document and gives its version.
    ///
    /// # Errors
    /// [`Error::NotFound`] and [`Error::PatchInvalid`]; otherwise as for [`write`](Self::write).
    pub fn patch(&self, type_name: &str, key: &str, patch: Patch) -> Result<Clock, Error> {
        self.write(Write::patch(type_name, key, patch))
    }

    /// Removes a document and gives the clock of its removal.
    ///
    /// # Errors
    /// [`Error::NotFound`]; otherwise as for [`write`](Self::write).
    pub fn remove(&self, type_name: &str, key: &str) -> Result<Clock, Error> {
        self.write(Write::remove(type_name, key))
    }

    /// Does one write and gives the document's version. When it returns, the write is durable.
    ///
    /// # Errors
    /// The write's own conditions; [`Error::VersionMismatch`]; sizes and names that are not
    /// allowed; what the medium does. Nothing was written then.
    pub fn write(&self, write: Write) -> Result<Clock, Error> {
        let versions = self.write_all(vec![write])?;
        Ok(versions[0])
    }

    /// Does all these writes in order or none, and gives the documents' versions.
    ///
    /// # Errors
    /// As for [`write`](Self::write), for the first write that fails.
    pub fn write_all(&self, writes: Vec<Write>) -> Result<Vec<Clock>, Error> {
        self.commit(writes, ReadSet::default())
    }

    /// Does all these writes in order or none, once for this key: what was done under it in the last
    /// 24 hours is not done again, and the versions that it gave then are given. So a request whose
    /// answer was lost can be sent again. Only what succeeds is kept.
    ///
    /// ```
    /// use motet_store::{IdempotencyKey, Store, Write};
    /// use serde_json::json;
    ///
    /// let env = Store::in_memory().env("default")?;
    /// let pay = || vec![Write::create("Payment", "p-1", json!({"cents": 900}))];
    /// let key = IdempotencyKey::new("shop", "order 17", "p-1: 900 cents");
    /// let versions = env.write_once(&key, pay())?;
    /// assert_eq!(env.write_once(&key, pay())?, versions, "it is there already, and that is right");
    /// # Ok::<(), motet_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::IdempotencyKeyReused`] if the key stands for another request; otherwise as for
    /// [`write`](Self::write).
    pub fn write_once(
        &self,
        key: &IdempotencyKey,
        writes: Vec<Write>,
    ) -> Result<Vec<Clock>, Error> {
        self.check_batch(&writes)?;
        let (batch, versions) = Batch::new(Arc::clone(&self.shared), writes, ReadSet::default());
        self.decide(Box::new(batch.once(key.clone())))?;
        Ok(versions.take())
    }

    /// Reads a document.
    ///
    /// # Errors
    /// What the medium does.
    pub fn get(&self, type_name: &str, key: &str) -> Result<Option<Document>, Error> {
        let mut document = None;
        self.read_record(type_name, key, |record| {
            document = Some(Document::from_record(key, &record));
        })?;
        document.transpose()
    }

    /// Reads a document without parsing its value.
    ///
    /// # Errors
    /// What the medium does.
    pub fn get_raw(&self, type_name: &str, key: &str) -> Result<Option<RawDocument>, Error> {
        let mut document = None;
        self.read_record(type_name, key, |record| {
            document = Some(RawDocument {
                version: record.version,
                expires_ms: record.expires_ms,
                json: record.json.to_vec(),
            });
        })?;
        Ok(document)
    }

    /// Reads a document's value as JSON text, without parsing it.
    ///
    /// # Errors
    /// What the medium does.
    pub fn get_json(&self, type_name: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let mut json = None;
        self.read_record(type_name, key, |record| json = Some(record.json.to_vec()))?;
        Ok(json)
    }

    /// Reads documents of a type in the order of their keys.
    ///
    /// # Errors
    /// What the medium does.
    pub fn range(&self, type_name: &str, range: &KeyRange) -> Result<Vec<Document>, Error> {
        Transaction::begin(self)?.range(type_name, range)
    }

    /// A query of a type.
    pub fn query(&self, type_name: &str) -> Query {
        Query::new(self.clone(), type_name)
    }

    /// Runs a function on a consistent view and commits what it writes, all or nothing, only if
    /// nothing that it read has changed meanwhile. Otherwise the function runs again on a newer
    /// view: it must do nothing that cannot be repeated.
    ///
    /// ```
    /// use motet_store::{Error, Store};
    /// use serde_json::json;
    ///
    /// let env = Store::in_memory().env("default")?;
    /// env.put("Account", "a", json!(100))?;
    /// env.put("Account", "b", json!(0))?;
    ///
    /// env.transact(|tx| {
    ///     let from = tx.get("Account", "a")?.map_or(0, |account| account.as_i64().unwrap_or(0));
    ///     tx.put("Account", "a", json!(from - 30));
    ///     tx.put("Account", "b", json!(30));
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!(env.get("Account", "a")?.map(|account| account.value), Some(json!(70)));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// What the function returns, with nothing written; [`Error::Conflict`] after as many tries as
    /// the store's limits allow; otherwise as for [`write`](Self::write).
    pub fn transact<T, E: From<Error>>(
        &self,
        run: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        transaction::run(self, run)
    }

    /// Begins a transaction that is committed by hand.
    ///
    /// # Errors
    /// What the medium does.
    pub fn begin(&self) -> Result<Transaction, Error> {
        Transaction::begin(self)
    }

    /// The names of the types that were ever written to, in order.
    ///
    /// # Errors
    /// What the medium does.
    pub fn types(&self) -> Result<Vec<String>, Error> {
        pollster::block_on(async {
            let view = self.shared.engine.view().await?;
            let catalog = self.shared.catalog.of_view(view.as_ref()).await?;
            let mut names: Vec<_> = catalog.type_names().map(str::to_owned).collect();
            names.retain(|name| !name.starts_with('~'));
            names.sort_unstable();
            Ok(names)
        })
    }

    /// The change log.
    #[must_use]
    pub fn log(&self) -> Log {
        Log::new(Arc::clone(&self.shared))
    }

    /// How much of the log is kept.
    ///
    /// # Errors
    /// What the medium does.
    pub fn retention(&self) -> Result<Retention, Error> {
        pollster::block_on(async {
            let view = self.shared.engine.view().await?;
            Retention::load(view.as_ref()).await
        })
    }

    /// Sets how much of the log is kept, for all processes and from now on.
    ///
    /// # Errors
    /// What the medium does.
    pub fn set_retention(&self, retention: Retention) -> Result<(), Error> {
        self.decide(Box::new(SetRetention(retention)))?;
        self.shared.notify();
        Ok(())
    }

    /// Checks everything that the environment holds against everything else that it holds. Writers
    /// go on meanwhile; what is checked is one view.
    ///
    /// # Errors
    /// [`Error::ViewExpired`] if it takes longer than a view may be kept: open the store with a
    /// longer [`view_max`](crate::engine::lmdb::Options::view_max); what the medium does.
    pub fn check(&self) -> Result<CheckReport, Error> {
        self.check_with_progress(&mut |_| {})
    }

    /// Checks as [`check`](Self::check) does, and says after each batch how many entries it had.
    ///
    /// # Errors
    /// As for [`check`](Self::check).
    pub fn check_with_progress(&self, each: &mut dyn FnMut(u64)) -> Result<CheckReport, Error> {
        pollster::block_on(check::run(&self.shared, each))
    }

    /// Why the work in the background (removing what has expired, trimming the log) failed the last
    /// time it was tried, or [`Error::ExpiryTooLarge`] while there is such a document; `None` if all
    /// is well. What failed is tried again every ten seconds.
    #[must_use]
    pub fn maintenance_error(&self) -> Option<Error> {
        self.shared.maintenance_error()
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Checks writes, has them committed, and tells those who wait for changes.
    pub(crate) fn commit(&self, writes: Vec<Write>, reads: ReadSet) -> Result<Vec<Clock>, Error> {
        self.check_batch(&writes)?;
        let (batch, versions) = Batch::new(Arc::clone(&self.shared), writes, reads);
        self.decide(Box::new(batch))?;
        Ok(versions.take())
    }

    fn check_batch(&self, writes: &[Write]) -> Result<(), Error> {
        let max = self.shared.limits.batch_writes_max;
        if writes.len() > max {
            return Err(Error::BatchTooLarge { writes: writes.len(), max });
        }
        writes.iter().try_for_each(Write::check)
    }

    pub(crate) fn decide(&self, decider: Box<dyn Decide>) -> Result<Commit, Error> {
        if planted("notify-before-commit") {
            self.shared.notify();
        }
        let mut results = pollster::block_on(self.shared.engine.write(vec![decider]));
        let commit = results.pop().expect("an engine answers once per decider")?;
        let silent = planted("notify-before-commit") || planted("lose-signal");
        if commit.clock > commit.before && !silent {
            self.shared.notify();
        }
        Ok(commit)
    }

    fn read_record(
        &self,
        type_name: &str,
        key: &str,
        each: impl FnOnce(Record<'_>),
    ) -> Result<(), Error> {
        check_name(type_name)?;
        check_key(key)?;
        pollster::block_on(self.read_record_async(type_name, key, each))
    }

    /// One question to the engine, unless the type is one that this handle has not seen yet or the
    /// document expires.
    async fn read_record_async(
        &self,
        type_name: &str,
        key: &str,
        each: impl FnOnce(Record<'_>),
    ) -> Result<(), Error> {
        let view = self.shared.engine.view().await?;
        let mut catalog = self.shared.catalog.newest();
        if !catalog.has_type(type_name) {
            catalog = self.shared.catalog.of_view(view.as_ref()).await?;
        }
        let Some(type_id) = catalog.type_id(type_name) else { return Ok(()) };
        let at = keys::document(type_id, key);
        let mut each = Some(each);
        let (mut found, mut expiring) = (Ok(()), None);
        let mut show = |_: usize, bytes: Option<&[u8]>| {
            let Some(bytes) = bytes else { return };
            found = Record::parse(bytes, format_args!("{type_name} {key:?}")).map(|record| {
                if record.expires_ms.is_some() {
                    expiring = Some(bytes.to_vec());
                } else if let Some(each) = each.take() {
                    each(record);
                }
            });
        };
        view.get_many(Table::Documents, &[&at], &mut show).await?;
        found?;
        // What does not expire needs no second question.
        let (Some(bytes), Some(each)) = (expiring, each) else { return Ok(()) };
        let now_ms = lookup::now_ms(view.as_ref(), self.shared.unix_ms()).await?;
        let record = Record::parse(&bytes, format_args!("{type_name} {key:?}"))?;
        if record.is_live(now_ms) {
            each(record);
        }
        Ok(())
    }
}

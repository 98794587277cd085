//! A decider at work: documents, their expiries, their log entries and the catalogue, all within
//! one open transaction.

use core::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use motet_protocol::fault::planted;
use serde_json::Value;

use super::overlay::Overlay;
use super::references::References;
use crate::catalog::{self, Catalog, Type};
use crate::clock::millis;
use crate::document::{Expiry, Kind, Record, Write, check_depth, is_own_name};
use crate::engine::{Decision, Table, Transaction};
use crate::index::{Entries, Index, IndexState};
use crate::keys::{self, TypeId};
use crate::log::{self, Compacted, EntryRecord, Op};
use crate::shared::Shared;
use crate::value::successor;
use crate::{Clock, Error, Hlc, lookup};

pub(crate) struct Session<'t> {
    pub(super) shared: &'t Shared,
    pub(super) catalog: Arc<Catalog>,
    pub(super) overlay: Overlay<'t>,
    /// The log's end before this decider.
    pub(super) before: Clock,
    pub(super) changes: u64,
    stamp: Hlc,
    /// The most bytes that the engine takes of a decider.
    bytes_max: usize,
    /// Bytes of all log entries so far; `None` until the first change.
    log_bytes: Option<u64>,
    /// Up to where the log is compacted; `None` until that is asked.
    compacted_to: Option<Clock>,
    pub(super) references: References,
}

/// Where a document lies, and what is there that counts.
pub(super) struct Place {
    type_id: TypeId,
    key: Vec<u8>,
    pub(super) stored: Option<Stored>,
}

pub(super) struct Stored {
    version: Clock,
    expires_ms: Option<u64>,
    json: Vec<u8>,
}

/// How much there is to write.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effort {
    bytes: usize,
    changes: u64,
}

impl Effort {
    pub(super) const fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, changes: self.changes + other.changes }
    }

    /// Whether it is as much as a transaction of the background should have, on an engine that takes
    /// so many bytes.
    pub(super) fn fills_batch(self, bytes_max: usize) -> bool {
        self.bytes >= BATCH_BYTES.min(bytes_max / 4) || self.changes >= BATCH_CHANGES
    }
}

impl<'t> Session<'t> {
    pub(crate) async fn begin(
        transaction: &'t dyn Transaction,
        shared: &'t Shared,
    ) -> Result<Self, Error> {
        Ok(Self {
            catalog: shared.catalog.of_transaction(transaction).await?,
            overlay: Overlay::new(transaction),
            before: transaction.head().clock,
            changes: 0,
            stamp: transaction.stamp(),
            bytes_max: shared.engine.capabilities().max_txn_bytes,
            log_bytes: None,
            compacted_to: None,
            references: References::default(),
            shared,
        })
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Reads all documents that these writes concern in one question.
    pub(crate) async fn fetch(&mut self, writes: &[Write]) -> Result<(), Error> {
        let keys = writes.iter().filter_map(|write| {
            let type_id = self.catalog.type_id(&write.type_name)?;
            Some(keys::document(type_id, &write.key))
        });
        let keys: Vec<_> = keys.collect();
        self.overlay.fetch_documents(&keys).await
    }

    /// Whether a decider of the background has as much as one transaction should have, so that no
    /// writer waits for long; what is left comes with the next one.
    pub(crate) fn is_batch_full(&self) -> bool {
        self.effort().fills_batch(self.bytes_max)
    }

    /// How much is decided so far.
    pub(super) const fn effort(&self) -> Effort {
        Effort { bytes: self.overlay.bytes(), changes: self.changes }
    }

    /// Refuses what the engine would refuse, before it takes more memory than that.
    fn check_bytes(&self) -> Result<(), Error> {
        let (bytes, max) = (self.overlay.bytes(), self.bytes_max);
        if bytes > max { Err(Error::TransactionTooLarge { bytes, max }) } else { Ok(()) }
    }

    /// What was decided, if every reference holds now.
    pub(crate) async fn finish(self) -> Result<Decision, Error> {
        self.check_references().await?;
        Ok(Decision { changes: self.changes, writes: self.overlay.into_writes() })
    }

    /// Does one write, and what references make of it, and gives the document's version after it.
    pub(crate) async fn apply(&mut self, write: &Write) -> Result<Clock, Error> {
        let version = self.apply_alone(write).await?;
        self.follow_references().await?;
        if planted("restrict-before-end") {
            self.check_references().await?;
        }
        Ok(version)
    }

    async fn apply_alone(&mut self, write: &Write) -> Result<Clock, Error> {
        let place = self.place(write).await?;
        check_version(write, &place)?;
        match (&write.kind, &place.stored) {
            (Kind::Put(value), _)
            | (Kind::Create(value), None)
            | (Kind::Update(value), Some(_)) => self.put(&place, write, value).await,
            (Kind::Patch(patch), Some(stored)) => {
                let value = patch.apply(stored.value()?)?;
                self.put(&place, write, &value).await
            }
            (Kind::Remove, Some(_)) => self.remove(&place, write, Op::Remove).await,
            (Kind::Create(_), Some(stored)) => Err(already_exists(write, stored.version)),
            (Kind::Update(_) | Kind::Patch(_) | Kind::Remove, None) => Err(not_found(write)),
        }
    }

    /// Removes a document whose expiry is listed at this time, if its time has come; one that lives
    /// on with another expiry is only taken off the list.
    pub(crate) async fn expire(&mut self, listed_ms: u64, document: &[u8]) -> Result<(), Error> {
        let Some((type_id, key)) = keys::split_document(document) else { return Ok(()) };
        let Some(name) = self.catalog.type_name(type_id).map(str::to_owned) else { return Ok(()) };
        let bytes = self.overlay.get(Table::Documents, document).await?;
        let record = bytes.as_deref().and_then(Record::from_bytes);
        let live = record.filter(|record| record.is_live(self.stamp.unix_ms()));
        if live.is_some_and(|record| record.expires_ms == Some(listed_ms)) {
            // The wall clock was set back since it was found: its time comes again.
            return Ok(());
        }
        self.overlay.remove(Table::Index, keys::expiry(listed_ms, document));
        if is_own_name(&name) {
            // The store's own documents are in no log, and nothing depends on them.
            if live.is_none() {
                self.overlay.remove(Table::Documents, document.to_vec());
            }
            return Ok(());
        }
        // Looking where the document lies expires it.
        self.place(&Write::remove(name, key)).await?;
        self.follow_references().await
    }

    /// Lists a document that cannot expire yet again, for later: the longer ago its time came, the
    /// later, but not later than this.
    pub(crate) async fn expire_later(
        &mut self,
        listed_ms: u64,
        document: &[u8],
        longest: Duration,
    ) -> Result<(), Error> {
        let bytes = self.overlay.get(Table::Documents, document).await?;
        let record = bytes.as_deref().and_then(Record::from_bytes);
        let expires_ms = record.and_then(|record| record.expires_ms).unwrap_or(listed_ms);
        let now_ms = self.stamp.unix_ms();
        let overdue_ms = now_ms.saturating_sub(expires_ms);
        let later_ms = now_ms + overdue_ms.clamp(millis(HELD_WAIT_FIRST), millis(longest));
        self.overlay.remove(Table::Index, keys::expiry(listed_ms, document));
        self.overlay.put(Table::Index, keys::expiry(later_ms, document), Vec::new());
        Ok(())
    }

    pub(super) async fn put(
        &mut self,
        place: &Place,
        write: &Write,
        value: &Value,
    ) -> Result<Clock, Error> {
        check_depth(value)?;
        let json = serde_json::to_vec(value).expect("a JSON value can always be written");
        self.shared.limits.check_value(json.len())?;
        let keeps_expiry = matches!(write.kind, Kind::Update(_) | Kind::Patch(_));
        let expires_ms = self.expires_ms(write, place.stored.as_ref().filter(|_| keeps_expiry));
        if let Some(stored) = &place.stored
            && matches!(write.kind, Kind::Patch(_))
            && stored.json == json
            && stored.expires_ms == expires_ms
        {
            return Ok(stored.version);
        }
        self.check_schema(write, value)?;
        self.keep_indexes(place, write, Some(value)).await?;
        self.note_references(write, value);
        let version = self.append(Op::Put, place, write, Some(&json)).await?;
        let counted = place.stored.as_ref().filter(|_| planted("count-versions"));
        let version = counted.map_or(version, |stored| stored.version.plus(1));
        let record = Record { version, expires_ms, json: &json };
        self.overlay.put(Table::Documents, place.key.clone(), record.to_bytes());
        self.move_expiry(place, expires_ms);
        self.check_bytes()?;
        Ok(version)
    }

    pub(super) async fn remove(
        &mut self,
        place: &Place,
        write: &Write,
        op: Op,
    ) -> Result<Clock, Error> {
        self.keep_indexes(place, write, None).await?;
        let version = match op {
            Op::Expire if planted("expire-silently") => self.before,
            _ => self.append(op, place, write, None).await?,
        };
        self.overlay.remove(Table::Documents, place.key.clone());
        self.move_expiry(place, None);
        self.clear_violation(write);
        self.note_removal(write).await?;
        Ok(version)
    }

    /// Brings the entries of a document in all indexes of its type from its old to its new value.
    async fn keep_indexes(
        &mut self,
        place: &Place,
        write: &Write,
        new: Option<&Value>,
    ) -> Result<(), Error> {
        // The list as it is now: what is noted of an index on the way sets it anew.
        let catalog = Arc::clone(&self.catalog);
        let indexes = catalog.indexes(place.type_id);
        if indexes.is_empty() {
            return Ok(());
        }
        let old = place.stored.as_ref().map(Stored::value).transpose()?;
        let keeps = |index: &Index| match index.record.state {
            IndexState::Building => !planted("leave-writes-to-build"),
            _ => index.is_kept(),
        };
        for index in indexes.iter().filter(|index| keeps(index)) {
            // A document with too many entries is there only if it is older than the index, and
            // not in it.
            let old = old.as_ref().and_then(|old| index.entries(&write.key, old).ok());
            let new = new.map(|new| index.entries(&write.key, new)).transpose()?;
            let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
            self.keep_index(index, write, &old, &new, true).await?;
        }
        Ok(())
    }

    /// Replaces a document's entries in one index. Uniqueness binds only what is `live`.
    pub(crate) async fn keep_index(
        &mut self,
        index: &Index,
        write: &Write,
        old: &Entries,
        new: &Entries,
        live: bool,
    ) -> Result<(), Error> {
        for entry in old.keys.difference(&new.keys).filter(|_| !planted("keep-old-entries")) {
            self.overlay.remove(Table::Index, entry.key.clone());
        }
        for entry in new.keys.difference(&old.keys) {
            if index.record.spec.unique && entry.is_whole && live {
                self.check_unique(index, write, entry.tuple()).await?;
            }
            self.overlay.put(Table::Index, entry.key.clone(), entry.to_value().to_vec());
        }
        self.note_shape(index, write, new.keys.len() > 1, new.shortened);
        self.check_bytes()
    }

    /// No other document that counts has the same values.
    async fn check_unique(&self, index: &Index, write: &Write, tuple: &[u8]) -> Result<(), Error> {
        let mut others = Vec::new();
        let mut show = |key: &[u8], value: &[u8]| {
            others.extend(index.document_key(key, value).filter(|key| *key != write.key));
            ControlFlow::Continue(())
        };
        if planted("forget-own-batch") {
            let (below, end) = (self.overlay.below(), successor(tuple));
            lookup::range(below, Table::Index, tuple, end.as_deref(), &mut show).await?;
        } else {
            self.overlay.under(Table::Index, tuple, &mut show).await?;
        }
        for other in others {
            let counts = self.is_live(&keys::document(index.type_id(), &other)).await?;
            if counts || planted("unique-counts-expired") {
                return Err(Error::UniqueViolation {
                    type_name: write.type_name.clone(),
                    index: index.name.clone(),
                    other,
                });
            }
        }
        Ok(())
    }

    /// Remembers for planning that an index gives no order, once that is so.
    fn note_shape(&mut self, index: &Index, write: &Write, multiple: bool, shortened: bool) {
        let Some(known) = self.catalog.index(index.type_id(), &index.name) else { return };
        let (multiple, shortened) =
            (multiple || known.record.multiple, shortened || known.record.shortened);
        if (multiple, shortened) != (known.record.multiple, known.record.shortened) {
            let mut index = Index::clone(known);
            index.record.multiple = multiple;
            index.record.shortened = shortened;
            self.set_index(&write.type_name, index);
        }
    }

    /// Sets an index in the catalogue.
    pub(crate) fn set_index(&mut self, type_name: &str, index: Index) {
        let record = serde_json::to_vec(&index.record).expect("a record can be written");
        self.overlay.put(Table::Catalog, catalog::index_key(type_name, &index.name), record);
        self.change_catalog(|catalog| catalog.set_index(index));
    }

    /// A number that no index has had.
    pub(crate) async fn next_index_id(&mut self) -> Result<u32, Error> {
        let bytes = self.overlay.get(Table::Catalog, catalog::INDEX_IDS_KEY).await?;
        let id = bytes
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(keys::INDEX_FIRST, u32::from_be_bytes);
        if !planted("repeat-index-number") {
            self.put_catalog(catalog::INDEX_IDS_KEY, &(id + 1).to_be_bytes());
        }
        Ok(id)
    }

    /// Whether a type has no document at all.
    pub(crate) async fn is_type_empty(&self, type_id: TypeId) -> Result<bool, Error> {
        let mut empty = true;
        let mut show = |_: &[u8], _: &[u8]| {
            empty = false;
            ControlFlow::Break(())
        };
        self.overlay.under(Table::Documents, &keys::document(type_id, ""), &mut show).await?;
        Ok(empty)
    }

    /// The time of this decider's changes, in milliseconds since 1970.
    pub(super) const fn now_ms(&self) -> u64 {
        self.stamp.unix_ms()
    }

    /// Whether a document that ends then counts now.
    pub(crate) fn is_live_until(&self, expires_ms: Option<u64>) -> bool {
        expires_ms.is_none_or(|expires_ms| self.stamp.unix_ms() < expires_ms)
    }

    /// Whether there is a document that counts at this key of `Documents`.
    pub(super) async fn is_live(&self, at: &[u8]) -> Result<bool, Error> {
        let bytes = self.overlay.get(Table::Documents, at).await?;
        let record = bytes.as_deref().and_then(Record::from_bytes);
        Ok(record.is_some_and(|record| record.is_live(self.stamp.unix_ms())))
    }

    /// Takes an index out of the catalogue.
    pub(crate) fn remove_index(&mut self, type_name: &str, index: &Index) {
        self.remove_catalog(&catalog::index_key(type_name, &index.name));
        self.change_catalog(|catalog| catalog.remove_index(index));
    }

    /// Sets what the catalogue keeps and no writer depends on: it leaves the epoch as it is.
    pub(crate) fn put_catalog(&mut self, key: &[u8], value: &[u8]) {
        self.overlay.put(Table::Catalog, key.to_vec(), value.to_vec());
    }

    /// Removes what the catalogue keeps and no writer depends on.
    pub(crate) fn remove_catalog(&mut self, key: &[u8]) {
        self.overlay.remove(Table::Catalog, key.to_vec());
    }

    /// Changes the catalogue, and raises its epoch.
    fn change_catalog(&mut self, change: impl FnOnce(&mut Catalog)) {
        let catalog = Arc::make_mut(&mut self.catalog);
        catalog.epoch += 1;
        change(catalog);
        let epoch = catalog.epoch.to_be_bytes().to_vec();
        self.overlay.put(Table::Catalog, catalog::EPOCH_KEY.to_vec(), epoch);
    }

    /// Finds the document of a write. One whose time has come is removed here, as a change of its
    /// own, so that whoever follows the log hears of it before it is created again.
    pub(super) async fn place(&mut self, write: &Write) -> Result<Place, Error> {
        let type_id = self.type_id(&write.type_name);
        let key = keys::document(type_id, &write.key);
        let stored = match self.overlay.get(Table::Documents, &key).await? {
            None => None,
            Some(bytes) => Some(Stored::from_bytes(&bytes, write)?),
        };
        let mut place = Place { type_id, key, stored };
        let now_ms = self.stamp.unix_ms();
        if place.stored.as_ref().is_some_and(|stored| stored.is_expired(now_ms)) {
            self.remove(&place, write, Op::Expire).await?;
            place.stored = None;
        }
        Ok(place)
    }

    /// The type's number. A type that is written to for the first time gets one.
    pub(crate) fn type_id(&mut self, name: &str) -> TypeId {
        if let Some(known) = self.catalog.type_id(name) {
            return known;
        }
        let id = self.catalog.next_type_id();
        self.set_type(name, Type::plain(id));
        id
    }

    /// Sets a type in the catalogue.
    pub(crate) fn set_type(&mut self, name: &str, new: Type) {
        let record = serde_json::to_vec(&new.record).expect("a record can be written");
        self.overlay.put(Table::Catalog, catalog::type_key(name), record);
        self.change_catalog(|catalog| catalog.set_type(name, new));
    }

    fn expires_ms(&self, write: &Write, kept: Option<&Stored>) -> Option<u64> {
        let now_ms = self.stamp.unix_ms();
        match write.expiry {
            Expiry::Never => None,
            Expiry::AfterMs(after_ms) => Some(now_ms.saturating_add(after_ms)),
            Expiry::Unchanged => match kept {
                Some(stored) => stored.expires_ms,
                None => {
                    let record = self.catalog.type_named(&write.type_name)?;
                    record.spec.ttl_ms.map(|ttl_ms| now_ms.saturating_add(ttl_ms))
                }
            },
        }
    }

    fn move_expiry(&mut self, place: &Place, expires_ms: Option<u64>) {
        let old = place.stored.as_ref().and_then(|stored| stored.expires_ms);
        if old == expires_ms {
            return;
        }
        if let Some(old) = old {
            self.overlay.remove(Table::Index, keys::expiry(old, &place.key));
        }
        if let Some(new) = expires_ms.filter(|_| old.is_none() || !planted("forget-new-expiry")) {
            self.overlay.put(Table::Index, keys::expiry(new, &place.key), Vec::new());
        }
    }

    /// Appends a change to the log and gives its clock.
    async fn append(
        &mut self,
        op: Op,
        place: &Place,
        write: &Write,
        json: Option<&[u8]>,
    ) -> Result<Clock, Error> {
        let before = match self.log_bytes {
            Some(bytes) => bytes,
            None => log::total_bytes(self.overlay.below(), self.before).await?,
        };
        let total_bytes = before + log::entry_bytes(&write.key, json);
        self.log_bytes = Some(total_bytes);
        self.changes += 1;
        let clock = self.before.plus(self.changes);
        let entry = EntryRecord {
            op,
            type_id: place.type_id.0,
            key: &write.key,
            previous: place.stored.as_ref().map_or(0, |stored| stored.version.number()),
            time: self.stamp.number(),
            origin: self.shared.instance,
            transaction: self.before.plus(1).number(),
            total_bytes,
            json,
        };
        let bytes = minicbor::to_vec(entry).expect("writing into a Vec does not fail");
        self.overlay.put(Table::Log, keys::log(clock).to_vec(), bytes);
        if let Some(stored) = &place.stored {
            self.supersede(stored.version).await?;
        }
        self.check_bytes()?;
        Ok(clock)
    }

    /// A document is at this version no longer: where the log is compacted, its change goes.
    async fn supersede(&mut self, version: Clock) -> Result<(), Error> {
        if !self.catalog.is_compacted || planted("keep-what-is-superseded") {
            return Ok(());
        }
        let compacted_to = match self.compacted_to {
            Some(to) => to,
            None => Compacted::load(self.overlay.below()).await?.map_or(Clock::ZERO, |it| it.to),
        };
        self.compacted_to = Some(compacted_to);
        if version <= compacted_to {
            self.overlay.remove(Table::Log, keys::log(version).to_vec());
        }
        Ok(())
    }
}

impl Stored {
    fn from_bytes(bytes: &[u8], write: &Write) -> Result<Self, Error> {
        let record = Record::parse(bytes, format_args!("{} {:?}", write.type_name, write.key))?;
        Ok(Self {
            version: record.version,
            expires_ms: record.expires_ms,
            json: record.json.to_vec(),
        })
    }

    fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }

    pub(super) fn value(&self) -> Result<Value, Error> {
        serde_json::from_slice(&self.json).map_err(|error| Error::Damaged {
            what: "a document that is to be patched".into(),
            why: error.to_string(),
        })
    }
}

fn check_version(write: &Write, place: &Place) -> Result<(), Error> {
    let found = place.stored.as_ref().map_or(Clock::ZERO, |stored| stored.version);
    match write.if_version {
        Some(expected) if expected != found => Err(Error::VersionMismatch {
            type_name: write.type_name.clone(),
            key: write.key.clone(),
            expected,
            found,
        }),
        _ => Ok(()),
    }
}

fn already_exists(write: &Write, version: Clock) -> Error {
    Error::AlreadyExists { type_name: write.type_name.clone(), key: write.key.clone(), version }
}

fn not_found(write: &Write) -> Error {
    Error::NotFound { type_name: write.type_name.clone(), key: write.key.clone() }
}

/// How soon to try again at the earliest to remove a document that something keeps. Each time doubles
/// how long ago it expired, and so the wait where it may be longer.
pub(super) const HELD_WAIT_FIRST: Duration = Duration::from_secs(10);

/// How soon to try again at the latest.
pub(crate) const HELD_WAIT: Duration = Duration::from_secs(60 * 60);

/// Bytes after which a transaction of the background ends.
const BATCH_BYTES: usize = 16 << 20;

/// Changes after which one ends.
const BATCH_CHANGES: u64 = 10_000;

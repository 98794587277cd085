//! Indexes and expiries: what follows from the documents, and nothing else.

use core::hash::{Hash as _, Hasher as _};
use std::collections::{BTreeSet, HashSet};
use std::hash::DefaultHasher;
use std::sync::Arc;

use super::{Batch, Check, Finding, Pair};
use crate::clock::millis;
use crate::commit::HELD_WAIT;
use crate::document::{Document, Record};
use crate::engine::Table;
use crate::index::{Index, IndexState, is_cleared};
use crate::keys::{self, TypeId};
use crate::value::successor;
use crate::{Error, lookup};

/// What documents say of the entries of an index.
#[derive(Default)]
struct Expected {
    /// How many entries there are as documents have them.
    found: u64,
    /// Of a unique index: hashes of the keys of entries that its rule binds, for no field is absent
    /// and the document has not expired.
    bound: HashSet<u64>,
}

/// The entry before in a unique index: its values, and whose it is.
type Holder = Option<(Vec<u8>, String)>;

impl Check<'_> {
    pub(super) async fn indexes(&mut self) -> Result<(), Error> {
        let catalog = Arc::clone(&self.catalog);
        let ready: Vec<_> = catalog
            .all_indexes()
            .filter(|index| index.record.state == IndexState::Ready)
            .map(Arc::clone)
            .collect();
        for index in &ready {
            let expected = self.entries_of_documents(index).await?;
            let entries = self.entries(index, &expected).await?;
            // Each that a document has was found once: if there are as many, there are no others.
            if entries > expected.found {
                self.superfluous_entries(index).await?;
            }
        }
        self.unknown_indexes().await
    }

    /// Every document has its entries.
    async fn entries_of_documents(&mut self, index: &Index) -> Result<Expected, Error> {
        let mut expected = Expected::default();
        let mut start = Some(keys::document(index.type_id(), ""));
        while let Some(from) = start {
            let batch = self.documents_of_type(index, &from).await?;
            for (at, bytes) in &batch.pairs {
                let Some((record, document)) = document(at, bytes) else { continue };
                let Ok(entries) = index.entries(&document.key, &document.value) else { continue };
                let each = entries.keys.iter().map(|entry| (entry.key.clone(), entry.to_value()));
                let (keys, values): (Vec<_>, Vec<_>) = each.unzip();
                let is_its = |place: usize, value: Option<&[u8]>| value == Some(&values[place][..]);
                let found = self.of_values(Table::Index, &keys, is_its).await?;
                let found = found.into_iter().filter(|is_its| *is_its).count();
                expected.found += found as u64;
                if found < keys.len() {
                    let (type_name, key) = self.name(at);
                    let index = index.name.clone();
                    self.report.add(Finding::EntryMissing { index, type_name, key });
                }
                if index.record.spec.unique {
                    let is_live = record.is_live(self.time_ms);
                    let bound = entries.keys.iter().filter(|entry| entry.is_whole && is_live);
                    expected.bound.extend(bound.map(|entry| hash(&entry.key)));
                }
            }
            start = batch.next;
        }
        Ok(expected)
    }

    /// How many entries there are; in a unique index, each is of one document alone.
    async fn entries(&mut self, index: &Index, expected: &Expected) -> Result<u64, Error> {
        let prefix = index.prefix();
        let end = successor(&prefix);
        let (mut start, mut holder, mut count) = (Some(prefix.to_vec()), None, 0);
        while let Some(from) = start {
            let batch = self.batch(Table::Index, &from, end.as_deref()).await?;
            count += batch.pairs.len() as u64;
            if index.record.spec.unique {
                let bound =
                    batch.pairs.iter().filter(|(key, _)| expected.bound.contains(&hash(key)));
                bound.for_each(|entry| self.unique_entry(index, entry, &mut holder));
            }
            start = batch.next;
        }
        self.report.index_entries += count;
        Ok(count)
    }

    fn unique_entry(&mut self, index: &Index, (key, value): &Pair, holder: &mut Holder) {
        let Some(name) = index.document_key(key, value) else { return };
        let tuple_end = <[u8; 2]>::try_from(value.as_slice()).map_or(0, u16::from_be_bytes);
        let tuple = key[..usize::from(tuple_end)].to_vec();
        if let Some((before, other)) = holder
            && *before == tuple
            && *other != name
        {
            let (type_name, _) = self.name(&keys::document(index.type_id(), &name));
            let (index, key, other) = (index.name.clone(), name.clone(), other.clone());
            self.report.add(Finding::NotUnique { index, type_name, key, other });
        }
        *holder = Some((tuple, name));
    }

    /// Names the entries that follow from no document.
    async fn superfluous_entries(&mut self, index: &Index) -> Result<(), Error> {
        let mut following = HashSet::new();
        let mut start = Some(keys::document(index.type_id(), ""));
        while let Some(from) = start {
            let batch = self.documents_of_type(index, &from).await?;
            for (at, bytes) in &batch.pairs {
                let Some((_, document)) = document(at, bytes) else { continue };
                let Ok(entries) = index.entries(&document.key, &document.value) else { continue };
                following.extend(entries.keys.iter().map(|entry| hash(&entry.key)));
            }
            start = batch.next;
        }
        let prefix = index.prefix();
        let end = successor(&prefix);
        let mut start = Some(prefix.to_vec());
        while let Some(from) = start {
            let batch = self.batch(Table::Index, &from, end.as_deref()).await?;
            for (key, value) in
                batch.pairs.iter().filter(|(key, _)| !following.contains(&hash(key)))
            {
                let name = index.document_key(key, value).unwrap_or_default();
                let (type_name, _) = self.name(&keys::document(index.type_id(), &name));
                let index = index.name.clone();
                self.report.add(Finding::EntrySuperfluous { index, type_name, key: name });
            }
            start = batch.next;
        }
        Ok(())
    }

    /// The next documents of an index's type.
    async fn documents_of_type(&self, index: &Index, from: &[u8]) -> Result<Batch, Error> {
        let end = successor(&keys::document(index.type_id(), ""));
        self.batch(Table::Documents, from, end.as_deref()).await
    }

    /// Entries of indexes that are neither in the catalogue nor being cleared.
    async fn unknown_indexes(&mut self) -> Result<(), Error> {
        let known: BTreeSet<_> = self.catalog.all_indexes().map(|index| index.record.id).collect();
        let mut from = keys::INDEX_FIRST.to_be_bytes().to_vec();
        loop {
            let mut first = None;
            let mut show = |key: &[u8], _: &[u8]| {
                first = key.first_chunk::<4>().copied().map(u32::from_be_bytes);
                core::ops::ControlFlow::Break(())
            };
            lookup::range(self.view, Table::Index, &from, None, &mut show).await?;
            let Some(id) = first else { return Ok(()) };
            if !known.contains(&id) && !is_cleared(self.view, id).await? {
                self.report.add(Finding::UnknownIndex { id });
            }
            let Some(next) = successor(&id.to_be_bytes()) else { return Ok(()) };
            from = next;
        }
    }

    /// Every time of expiry is that of a document, or a later one of a document that others held
    /// when its time came.
    pub(super) async fn expiries(&mut self) -> Result<(), Error> {
        let mut start = Some(keys::EXPIRY_START.to_vec());
        while let Some(from) = start {
            let batch = self.batch(Table::Index, &from, Some(&keys::EXPIRY_END)).await?;
            let split = batch.pairs.iter().filter_map(|(key, _)| keys::split_expiry(key));
            let expiries: Vec<_> = split.map(|(ms, at)| (ms, at.to_vec())).collect();
            let places: Vec<_> = expiries.iter().map(|(_, at)| at.clone()).collect();
            let expires_ms = |_, bytes: Option<&[u8]>| {
                bytes.and_then(Record::from_bytes).and_then(|record| record.expires_ms)
            };
            let own = self.of_values(Table::Documents, &places, expires_ms).await?;
            for ((listed_ms, at), own_ms) in expiries.into_iter().zip(own) {
                self.report.expiries += 1;
                let put_off = self.put_off.get(&at).is_some_and(|ms| *ms <= listed_ms);
                if put_off {
                    self.put_off.remove(&at);
                    continue;
                }
                if own_ms != Some(listed_ms) && !self.was_put_off(&at, listed_ms) {
                    let (type_name, key) = self.name(&at);
                    let expires_ms = listed_ms;
                    self.report.add(Finding::ExpirySuperfluous { type_name, key, expires_ms });
                }
            }
            start = batch.next;
        }
        let mut missing: Vec<_> = core::mem::take(&mut self.put_off).into_keys().collect();
        missing.sort_unstable();
        missing.iter().for_each(|at| self.expiry_missing(at));
        Ok(())
    }

    /// Whether a document may have been listed for this time because others held it. It may be
    /// another by now, and is taken off the list then; so is one of the store's own that was written
    /// again after its time had come.
    fn was_put_off(&self, at: &[u8], listed_ms: u64) -> bool {
        if self.is_own(at) {
            return listed_ms <= self.time_ms;
        }
        let name = keys::split_document(at).and_then(|(id, _)| self.catalog.type_name(id));
        let is_referred =
            name.is_some_and(|name| self.catalog.references_to(name).next().is_some());
        is_referred && listed_ms <= self.time_ms.saturating_add(millis(HELD_WAIT))
    }
}

fn document<'b>(at: &[u8], bytes: &'b [u8]) -> Option<(Record<'b>, Document)> {
    let (TypeId(_), key) = keys::split_document(at)?;
    let record = Record::from_bytes(bytes)?;
    Some((record, Document::from_record(key, &record).ok()?))
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

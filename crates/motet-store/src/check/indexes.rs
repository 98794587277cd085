//! Indexes and expiries: what follows from the documents, and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Check, Finding, Pair, next_start};
use crate::document::{Document, Record};
use crate::engine::Table;
use crate::index::{Entry, Index, IndexState, is_cleared};
use crate::keys::{self, TypeId};
use crate::value::successor;
use crate::{Error, lookup};

/// The values that the entry before has in a unique index, and whose it is.
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
            self.entries_of_documents(index).await?;
            self.documents_of_entries(index).await?;
        }
        self.unknown_indexes().await
    }

    /// Every document has its entries.
    async fn entries_of_documents(&mut self, index: &Index) -> Result<(), Error> {
        let all = keys::document(index.type_id(), "");
        let end = successor(&all);
        let mut start = Some(all);
        while let Some(from) = start {
            let batch = self.batch(Table::Documents, &from, end.as_deref()).await?;
            for (at, bytes) in &batch {
                let Some(document) = document(at, bytes) else { continue };
                let Ok(entries) = index.entries(&document.key, &document.value) else { continue };
                let keys: Vec<_> = entries.keys.iter().map(|entry| entry.key.clone()).collect();
                let found = self.values(Table::Index, &keys).await?;
                let expected = entries.keys.iter().map(Entry::to_value);
                if expected.zip(found).any(|(value, found)| found.as_deref() != Some(&value[..])) {
                    let (type_name, key) = self.name(at);
                    self.report.add(Finding::EntryMissing {
                        index: index.name.clone(),
                        type_name,
                        key,
                    });
                }
            }
            start = next_start(&batch);
        }
        Ok(())
    }

    /// Every entry follows from a document, and in a unique index from one alone.
    async fn documents_of_entries(&mut self, index: &Index) -> Result<(), Error> {
        let prefix = index.prefix();
        let end = successor(&prefix);
        let (mut start, mut holder) = (Some(prefix.to_vec()), None);
        while let Some(from) = start {
            let batch = self.batch(Table::Index, &from, end.as_deref()).await?;
            let names: Vec<_> = batch
                .iter()
                .map(|(key, value)| index.document_key(key, value).unwrap_or_default())
                .collect();
            let places: Vec<_> =
                names.iter().map(|name| keys::document(index.type_id(), name)).collect();
            let found = self.values(Table::Documents, &places).await?;
            for ((entry, name), bytes) in batch.iter().zip(names).zip(found) {
                self.report.index_entries += 1;
                self.entry(index, entry, name, bytes.as_deref(), &mut holder);
            }
            start = next_start(&batch);
        }
        Ok(())
    }

    fn entry(
        &mut self,
        index: &Index,
        (key, _): &Pair,
        name: String,
        bytes: Option<&[u8]>,
        holder: &mut Holder,
    ) {
        let at = keys::document(index.type_id(), &name);
        let document = bytes.and_then(|bytes| document(&at, bytes));
        let entries = document.and_then(|document| index.entries(&name, &document.value).ok());
        let entry =
            entries.and_then(|entries| entries.keys.into_iter().find(|own| own.key == *key));
        let (type_name, _) = self.name(&at);
        let Some(entry) = entry else {
            let index = index.name.clone();
            return self.report.add(Finding::EntrySuperfluous { index, type_name, key: name });
        };
        if !index.record.spec.unique || !entry.is_whole {
            return;
        }
        if let Some((tuple, other)) = holder
            && *tuple == entry.tuple()
            && *other != name
        {
            let (index, other) = (index.name.clone(), other.clone());
            self.report.add(Finding::NotUnique { index, type_name, key: name.clone(), other });
        }
        *holder = Some((entry.tuple().to_vec(), name));
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

    /// Every time of expiry is that of a document.
    pub(super) async fn expiries(&mut self) -> Result<(), Error> {
        let mut start = Some(keys::EXPIRY_START.to_vec());
        while let Some(from) = start {
            let batch = self.batch(Table::Index, &from, Some(&keys::EXPIRY_END)).await?;
            let split = batch.iter().filter_map(|(key, _)| keys::split_expiry(key));
            let expiries: Vec<_> = split.map(|(ms, at)| (ms, at.to_vec())).collect();
            let places: Vec<_> = expiries.iter().map(|(_, at)| at.clone()).collect();
            let found = self.values(Table::Documents, &places).await?;
            for ((expires_ms, at), bytes) in expiries.into_iter().zip(found) {
                self.report.expiries += 1;
                let record = bytes.as_deref().and_then(Record::from_bytes);
                if record.is_none_or(|record| record.expires_ms != Some(expires_ms)) {
                    let (type_name, key) = self.name(&at);
                    self.report.add(Finding::ExpirySuperfluous { type_name, key, expires_ms });
                }
            }
            start = next_start(&batch);
        }
        Ok(())
    }
}

fn document(at: &[u8], bytes: &[u8]) -> Option<Document> {
    let (TypeId(_), key) = keys::split_document(at)?;
    Document::from_record(key, &Record::from_bytes(bytes)?).ok()
}

//! Answering a query by a plan.

use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

use motet_protocol::fault::planted;
use serde_json::Value;

use super::order::Place;
use super::plan::{KeyBytes, Plan};
use super::{Cursor, Explain, Keeps, Parsed};
use crate::catalog::Catalog;
use crate::document::{Document, RawDocument, Record};
use crate::engine::{Direction, Range, Table, View};
use crate::keys::{self, TypeId};
use crate::shared::Shared;
use crate::{Clock, Error, lookup};

/// What a query found.
pub(super) struct Found {
    pub(super) rows: Vec<Row>,
    pub(super) next: Option<Cursor>,
    pub(super) explain: Explain,
}

/// A document that a query found.
pub(super) struct Row {
    pub(super) key: String,
    version: Clock,
    expires_ms: Option<u64>,
    pub(super) value: Held,
}

/// Its value: as JSON text, or parsed, which takes many times the memory.
pub(super) enum Held {
    Text(Vec<u8>),
    Parsed(Value),
}

/// A document and where it was found.
pub(super) struct Candidate {
    /// What of where it was found counts for the order.
    pub(super) position: Vec<u8>,
    /// Its place in the query's order, where the parsed value is not kept to tell.
    pub(super) place: Option<Place>,
    pub(super) row: Row,
    /// Bytes of its value as JSON.
    pub(super) bytes: usize,
}

/// A document that matches.
struct Match {
    place: Option<Place>,
    row: Row,
    bytes: usize,
}

impl Row {
    pub(super) fn into_document(self) -> Result<Document, Error> {
        let Self { key, version, expires_ms, value } = self;
        match value {
            Held::Parsed(value) => Ok(Document { key, version, expires_ms, value }),
            Held::Text(json) => {
                Document::from_record(&key, &Record { version, expires_ms, json: &json })
            }
        }
    }

    /// The document with its value as text, and its key.
    pub(super) fn into_raw(self) -> (String, RawDocument) {
        let Self { key, version, expires_ms, value } = self;
        let json = match value {
            Held::Text(json) => json,
            Held::Parsed(value) => json_text(&value),
        };
        (key, RawDocument { version, expires_ms, json })
    }
}

/// A value as JSON text.
pub(super) fn json_text(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON value can always be written")
}

/// A query being answered.
pub(super) struct Run<'q> {
    view: &'q dyn View,
    type_id: TypeId,
    pub(super) query: &'q Parsed,
    pub(super) plan: Plan<'q>,
    /// What is kept of a document that matches.
    keeps: Keeps,
    now_ms: u64,
    entries_examined: usize,
    documents_examined: usize,
}

pub(super) async fn run(shared: &Shared, type_name: &str, query: &Parsed) -> Result<Found, Error> {
    let view = shared.engine.view().await?;
    let catalog = shared.catalog.of_view(view.as_ref()).await?;
    let bounds = query.filter.bounds();
    let wanted = query.after.as_ref().and_then(Cursor::index);
    let Some(type_id) = catalog.type_id(type_name) else { return Ok(Found::nothing()) };
    let plan = match &query.after {
        Some(Cursor::Found { index: None, .. }) => Plan::all(type_id, &query.order),
        _ => Plan::choose(type_id, catalog.indexes(type_id), query, &bounds, wanted),
    };
    let now_ms = lookup::now_ms(view.as_ref(), shared.unix_ms()).await?;
    Run::new(view.as_ref(), now_ms, type_id, query, plan).answer().await
}

pub(super) async fn count(
    shared: &Shared,
    type_name: &str,
    query: &Parsed,
) -> Result<usize, Error> {
    let view = shared.engine.view().await?;
    let catalog: Arc<Catalog> = shared.catalog.of_view(view.as_ref()).await?;
    let bounds = query.filter.bounds();
    let Some(type_id) = catalog.type_id(type_name) else { return Ok(0) };
    let plan = Plan::choose(type_id, catalog.indexes(type_id), query, &bounds, None);
    let now_ms = lookup::now_ms(view.as_ref(), shared.unix_ms()).await?;
    let mut run = Run::new(view.as_ref(), now_ms, type_id, query, plan);
    let (mut count, mut after) = (0, None);
    while let Some(batch) = run.next(after.take(), BATCH_ENTRIES).await? {
        count += batch.found.len();
        after = Some(batch.last);
    }
    Ok(count)
}

/// What was found among the next entries.
pub(super) struct Batch {
    pub(super) found: Vec<Candidate>,
    /// The position of the last entry that was looked at.
    pub(super) last: Vec<u8>,
    /// Whether there may be more.
    pub(super) more: bool,
}

impl<'q> Run<'q> {
    fn new(
        view: &'q dyn View,
        now_ms: u64,
        type_id: TypeId,
        query: &'q Parsed,
        plan: Plan<'q>,
    ) -> Self {
        // What is sorted is many documents more than the page holds.
        let keeps = match query.keeps {
            Keeps::Parsed if !plan.ordered => Keeps::Text,
            keeps => keeps,
        };
        Self {
            view,
            type_id,
            query,
            plan,
            keeps,
            now_ms,
            entries_examined: 0,
            documents_examined: 0,
        }
    }

    async fn answer(mut self) -> Result<Found, Error> {
        let (rows, next) =
            if self.plan.ordered { self.in_order().await? } else { self.sorted().await? };
        let explain = Explain {
            index: self.plan.index.as_ref().map(|index| index.name.clone()),
            ranges: self.plan.ranges.len(),
            sorts: !self.plan.ordered,
            entries_examined: self.entries_examined,
            documents_examined: self.documents_examined,
            returned: rows.len(),
        };
        Ok(Found { rows, next, explain })
    }

    /// The next documents that match, in the plan's order, from up to so many entries, and fewer
    /// where their documents are large.
    pub(super) async fn next(
        &mut self,
        after: Option<Vec<u8>>,
        wanted: usize,
    ) -> Result<Option<Batch>, Error> {
        let (mut entries, mut cut) = (Vec::new(), false);
        let merges = self.plan.merges();
        for range in &self.plan.ranges {
            let left = if merges { wanted + 1 } else { (wanted + 1).saturating_sub(entries.len()) };
            if left == 0 {
                break;
            }
            cut |= self.read_range(range, after.as_deref(), left, &mut entries).await?;
        }
        if merges {
            entries.sort_by(|one: &Entry, other| {
                let ordering = one.position().cmp(other.position());
                if self.plan.backward { ordering.reverse() } else { ordering }
            });
        }
        let more = cut || entries.len() > wanted;
        entries.truncate(wanted);
        let matches = self.matches(&entries).await?;
        let more = more || matches.len() < entries.len();
        entries.truncate(matches.len());
        self.entries_examined += entries.len();
        self.documents_examined += entries.len();
        let Some(last) = entries.last().map(|entry| entry.position().to_vec()) else {
            return Ok(None);
        };
        let found = entries.into_iter().zip(matches);
        let found = found.filter_map(|(entry, found)| found.map(|found| entry.candidate(found)));
        Ok(Some(Batch { found: found.collect(), last, more }))
    }

    /// The first entries of a range after a position. Documents themselves, of which there is one
    /// range, are read up to so many bytes; whether there are more is told then.
    async fn read_range(
        &self,
        range: &KeyBytes,
        after: Option<&[u8]>,
        limit: usize,
        into: &mut Vec<Entry>,
    ) -> Result<bool, Error> {
        let at = after.map(|after| [&range.from[..range.given], after].concat());
        let (mut from, mut to) = (
            Bound::Included(range.from.as_slice()),
            range.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        );
        match &at {
            Some(at) if self.plan.backward && range.to.as_ref().is_none_or(|to| at < to) => {
                to = Bound::Excluded(at);
            }
            Some(at) if !self.plan.backward && *at >= range.from => from = Bound::Excluded(at),
            _ => {}
        }
        let direction = if self.plan.backward { Direction::Backward } else { Direction::Forward };
        let table = if self.plan.index.is_some() { Table::Index } else { Table::Documents };
        let (mut left, mut bytes, mut cut) = (limit, 0, false);
        let mut show = |key: &[u8], value: &[u8]| {
            if table == Table::Documents && bytes >= BATCH_BYTES {
                cut = true;
                return ControlFlow::Break(());
            }
            bytes += value.len();
            into.push(Entry { at: key.to_vec(), value: value.to_vec(), given: range.given });
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.view.range(Range { table, from, to, direction }, &mut show).await?;
        Ok(cut)
    }

    /// The document of each entry if it matches, in their order; of the first entries only, where
    /// the documents are large.
    async fn matches(&self, entries: &[Entry]) -> Result<Vec<Option<Match>>, Error> {
        let Some(index) = self.plan.index.clone() else {
            let parsed = entries.iter().map(|entry| {
                let key = keys::split_document(&entry.at).map_or("", |(_, key)| key);
                self.matching(entry, key, &entry.value)
            });
            return parsed.collect();
        };
        let names: Vec<_> = entries
            .iter()
            .map(|entry| index.document_key(&entry.at, &entry.value).unwrap_or_default())
            .collect();
        let keys: Vec<_> = names.iter().map(|name| keys::document(self.type_id, name)).collect();
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let mut documents: Vec<_> = names.iter().map(|_| Ok(None)).collect();
        let (mut bytes_read, mut end) = (0, names.len());
        let mut show = |place: usize, bytes: Option<&[u8]>| {
            let Some(bytes) = bytes else { return };
            if place > 0 && bytes_read >= BATCH_BYTES {
                end = end.min(place);
                return;
            }
            bytes_read += bytes.len();
            documents[place] = self.matching(&entries[place], &names[place], bytes);
        };
        self.view.get_many(Table::Documents, &keys, &mut show).await?;
        documents.truncate(end);
        documents.into_iter().collect()
    }

    /// What an entry leads to, if it matches: parsed for that, one document at a time.
    fn matching(&self, entry: &Entry, key: &str, bytes: &[u8]) -> Result<Option<Match>, Error> {
        let record = Record::parse(bytes, format_args!("document {key:?}"))?;
        if !record.is_live(self.now_ms) && !planted("show-expired") {
            return Ok(None);
        }
        let Document { key, version, expires_ms, value } = Document::from_record(key, &record)?;
        if !self.query.filter.matches(&value) || !self.is_first(entry, &key, &value)? {
            return Ok(None);
        }
        let order = &self.query.order;
        // In order, a place is for the page's cursor only.
        let is_placed = !order.fields.is_empty()
            && match self.keeps {
                Keeps::Parsed => false,
                Keeps::Text => true,
                Keeps::Keys => !self.plan.ordered,
            };
        let place = is_placed.then(|| order.place(&key, &value));
        let value = match self.keeps {
            Keeps::Parsed => Held::Parsed(value),
            Keeps::Text => Held::Text(record.json.to_vec()),
            Keeps::Keys => Held::Text(Vec::new()),
        };
        let row = Row { key, version, expires_ms, value };
        Ok(Some(Match { place, row, bytes: record.json.len() }))
    }

    /// Whether a document with several entries counts at this one: at the first that is read of it,
    /// so that it is found once, on one page.
    fn is_first(&self, entry: &Entry, key: &str, value: &Value) -> Result<bool, Error> {
        let Some(index) = &self.plan.index else { return Ok(true) };
        if !index.record.multiple {
            return Ok(true);
        }
        let entries = index.entries(key, value)?;
        let mut read = entries.keys.iter().map(|entry| &entry.key).filter(|key| {
            self.plan
                .ranges
                .iter()
                .any(|range| **key >= range.from && range.to.as_ref().is_none_or(|to| *key < to))
        });
        let first = if self.plan.backward { read.next_back() } else { read.next() };
        Ok(first == Some(&entry.at))
    }
}

/// An entry that was read.
struct Entry {
    at: Vec<u8>,
    value: Vec<u8>,
    given: usize,
}

impl Entry {
    fn position(&self) -> &[u8] {
        &self.at[self.given..]
    }

    fn candidate(self, found: Match) -> Candidate {
        let Match { place, row, bytes } = found;
        Candidate { position: self.position().to_vec(), place, row, bytes }
    }
}

impl Found {
    const fn nothing() -> Self {
        let explain = Explain {
            index: None,
            ranges: 0,
            sorts: false,
            entries_examined: 0,
            documents_examined: 0,
            returned: 0,
        };
        Self { rows: Vec::new(), next: None, explain }
    }
}

impl Cursor {
    /// The index that the next page must be read from.
    fn index(&self) -> Option<&str> {
        match self {
            Self::Found { index, .. } => index.as_deref(),
            Self::Sorted { .. } => None,
        }
    }
}

/// How many entries are read at once.
pub(super) const BATCH_ENTRIES: usize = 256;

/// Bytes of documents after which a batch of entries ends.
pub(super) const BATCH_BYTES: usize = 1 << 20;

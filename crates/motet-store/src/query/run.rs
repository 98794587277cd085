//! Answering a query by a plan.

use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

use motet_protocol::fault::planted;

use super::order::Place;
use super::plan::{KeyBytes, Plan};
use super::{Cursor, Explain, Parsed, ROWS_MAX};
use crate::Error;
use crate::catalog::Catalog;
use crate::document::{Document, Record};
use crate::engine::{Direction, Range, Table, View};
use crate::keys::{self, TypeId};
use crate::shared::Shared;

/// What a query found.
pub(super) struct Found {
    pub(super) rows: Vec<Document>,
    pub(super) next: Option<Cursor>,
    pub(super) explain: Explain,
}

/// A document and where it was found.
struct Candidate {
    /// What of the place counts for the order.
    position: Vec<u8>,
    document: Document,
}

/// A query being answered.
struct Run<'q> {
    view: &'q dyn View,
    type_id: TypeId,
    query: &'q Parsed,
    plan: Plan<'q>,
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
    Run::new(view.as_ref(), shared.unix_ms(), type_id, query, plan).answer().await
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
    let mut run = Run::new(view.as_ref(), shared.unix_ms(), type_id, query, plan);
    let (mut count, mut after) = (0, None);
    while let Some(batch) = run.next(after.take(), BATCH_ENTRIES).await? {
        count += batch.found.len();
        after = Some(batch.last);
    }
    Ok(count)
}

/// What was found among the next entries.
struct Batch {
    found: Vec<Candidate>,
    /// The position of the last entry that was looked at.
    last: Vec<u8>,
    /// Whether there may be more.
    more: bool,
}

impl<'q> Run<'q> {
    fn new(
        view: &'q dyn View,
        now_ms: u64,
        type_id: TypeId,
        query: &'q Parsed,
        plan: Plan<'q>,
    ) -> Self {
        Self { view, type_id, query, plan, now_ms, entries_examined: 0, documents_examined: 0 }
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

    /// Takes documents as they come until there are enough.
    async fn in_order(&mut self) -> Result<(Vec<Document>, Option<Cursor>), Error> {
        let limit = self.query.limit.unwrap_or(ROWS_MAX + 1);
        let mut rows = Vec::new();
        let mut after = self.start()?;
        let mut last = None;
        while rows.len() < limit {
            let wanted = (limit - rows.len()).min(BATCH_ENTRIES);
            let Some(batch) = self.next(after.take(), wanted).await? else {
                return self.checked(rows, None);
            };
            for candidate in batch.found {
                last = Some(candidate.position);
                rows.push(candidate.document);
            }
            if !batch.more {
                return self.checked(rows, None);
            }
            after = Some(batch.last);
        }
        let next =
            rows.last().zip(last).map(|(document, position)| self.cursor(document, position));
        self.checked(rows, next)
    }

    /// Reads everything that matches and keeps the first of it.
    async fn sorted(&mut self) -> Result<(Vec<Document>, Option<Cursor>), Error> {
        let order = &self.query.order;
        let start = match &self.query.after {
            None => None,
            Some(Cursor::Sorted { values, key }) if values.len() == order.fields.len() => {
                Some(Place { values: values.clone(), key: key.clone() })
            }
            Some(_) => return Err(Error::CursorInvalid { why: "the query has another sort" }),
        };
        let limit = self.query.limit.unwrap_or(ROWS_MAX + 1);
        let mut places: Vec<(Place, Document)> = Vec::new();
        let mut after = None;
        let mut more = false;
        while let Some(batch) = self.next(after.take(), BATCH_ENTRIES).await? {
            places.extend(batch.found.into_iter().filter_map(|candidate| {
                let place = order.place(&candidate.document);
                let is_after =
                    start.as_ref().is_none_or(|start| order.compare(start, &place).is_lt());
                is_after.then_some((place, candidate.document))
            }));
            if places.len() > limit.saturating_mul(2).max(BATCH_ENTRIES) {
                more |= keep_first(&mut places, limit, self.query);
            }
            after = Some(batch.last);
        }
        more |= keep_first(&mut places, limit, self.query);
        let next = places.last().filter(|_| more).map(|(place, _)| Cursor::sorted(place.clone()));
        self.checked(places.into_iter().map(|(_, document)| document).collect(), next)
    }

    fn checked(
        &self,
        rows: Vec<Document>,
        next: Option<Cursor>,
    ) -> Result<(Vec<Document>, Option<Cursor>), Error> {
        if self.query.limit.is_none() && rows.len() > ROWS_MAX {
            return Err(Error::ResultTooLarge { max: ROWS_MAX });
        }
        Ok((rows, next))
    }

    /// Where an ordered plan goes on.
    fn start(&self) -> Result<Option<Vec<u8>>, Error> {
        let wrong = Error::CursorInvalid { why: "the query or its index is another" };
        match &self.query.after {
            None => Ok(None),
            Some(Cursor::Found { index, at }) => {
                let same = *index == self.plan.index.as_ref().map(|index| index.name.clone());
                let sorts = !self.query.order.fields.is_empty();
                if same && !sorts { Ok(Some(at.clone())) } else { Err(wrong) }
            }
            Some(Cursor::Sorted { values, key }) => {
                let place = Place { values: values.clone(), key: key.clone() };
                let fits = values.len() == self.query.order.fields.len() && !values.is_empty();
                let position = self.plan.position(&place).filter(|_| fits);
                position.map(Some).ok_or(wrong)
            }
        }
    }

    fn cursor(&self, document: &Document, position: Vec<u8>) -> Cursor {
        if self.query.order.fields.is_empty() {
            let index = self.plan.index.as_ref().map(|index| index.name.clone());
            return Cursor::Found { index, at: position };
        }
        Cursor::sorted(self.query.order.place(document))
    }

    /// The next documents that match, in the plan's order, from up to so many entries.
    async fn next(
        &mut self,
        after: Option<Vec<u8>>,
        wanted: usize,
    ) -> Result<Option<Batch>, Error> {
        let mut entries = Vec::new();
        let merges = self.plan.merges();
        for range in &self.plan.ranges {
            let left = if merges { wanted + 1 } else { (wanted + 1).saturating_sub(entries.len()) };
            if left == 0 {
                break;
            }
            self.read_range(range, after.as_deref(), left, &mut entries).await?;
        }
        if merges {
            entries.sort_by(|one: &Entry, other| {
                let ordering = one.position().cmp(other.position());
                if self.plan.backward { ordering.reverse() } else { ordering }
            });
        }
        let more = entries.len() > wanted;
        entries.truncate(wanted);
        self.entries_examined += entries.len();
        let Some(last) = entries.last().map(|entry| entry.position().to_vec()) else {
            return Ok(None);
        };
        let found = self.documents(entries).await?;
        Ok(Some(Batch { found, last, more }))
    }

    /// The first entries of a range after a position.
    async fn read_range(
        &self,
        range: &KeyBytes,
        after: Option<&[u8]>,
        limit: usize,
        into: &mut Vec<Entry>,
    ) -> Result<(), Error> {
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
        let mut left = limit;
        let mut show = |key: &[u8], value: &[u8]| {
            into.push(Entry { at: key.to_vec(), value: value.to_vec(), given: range.given });
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.view.range(Range { table, from, to, direction }, &mut show).await
    }

    /// The documents of entries that match.
    async fn documents(&mut self, entries: Vec<Entry>) -> Result<Vec<Candidate>, Error> {
        self.documents_examined += entries.len();
        let Some(index) = self.plan.index.clone() else {
            let parsed = entries.into_iter().filter_map(|entry| {
                let key = keys::split_document(&entry.at).map_or("", |(_, key)| key).to_owned();
                self.matching(&key, &entry.value)
                    .transpose()
                    .map(|document| document.map(|document| entry.candidate(document)))
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
        let mut show = |place: usize, bytes: Option<&[u8]>| {
            if let Some(bytes) = bytes {
                documents[place] = self.matching(&names[place], bytes);
            }
        };
        self.view.get_many(Table::Documents, &keys, &mut show).await?;
        let mut found = Vec::new();
        for (entry, document) in entries.into_iter().zip(documents) {
            if let Some(document) = document?
                && (!index.record.multiple || self.is_first(&entry, &document)?)
            {
                found.push(entry.candidate(document));
            }
        }
        Ok(found)
    }

    fn matching(&self, key: &str, bytes: &[u8]) -> Result<Option<Document>, Error> {
        let record = Record::parse(bytes, format_args!("document {key:?}"))?;
        if !record.is_live(self.now_ms) && !planted("show-expired") {
            return Ok(None);
        }
        let document = Document::from_record(key, &record)?;
        Ok(Some(document).filter(|document| self.query.filter.matches(&document.value)))
    }

    /// Whether a document with several entries counts at this one: at the first that is read of it,
    /// so that it is found once, on one page.
    fn is_first(&self, entry: &Entry, document: &Document) -> Result<bool, Error> {
        let Some(index) = &self.plan.index else { return Ok(true) };
        let entries = index.entries(&document.key, &document.value)?;
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

    fn candidate(self, document: Document) -> Candidate {
        Candidate { position: self.position().to_vec(), document }
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

/// Keeps the first ones of the query's order, and says whether there were more.
fn keep_first(places: &mut Vec<(Place, Document)>, limit: usize, query: &Parsed) -> bool {
    places.sort_by(|(one, _), (other, _)| query.order.compare(one, other));
    let more = places.len() > limit;
    places.truncate(limit);
    more
}

/// How many entries are read at once.
const BATCH_ENTRIES: usize = 256;

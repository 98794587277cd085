//! Making a page of what matches: in the plan's order, or sorted afterwards.

use super::order::Place;
use super::run::{BATCH_BYTES, BATCH_ENTRIES, Candidate, Run};
use super::{Cursor, Parsed, ROWS_MAX};
use crate::Error;
use crate::document::Document;

/// A page's documents, and where the next one begins.
pub(super) type Rows = (Vec<Document>, Option<Cursor>);

impl Run<'_> {
    /// Takes documents as they come until there are enough.
    pub(super) async fn in_order(&mut self) -> Result<Rows, Error> {
        let limit = self.query.limit.unwrap_or(ROWS_MAX + 1);
        let mut page = Filling { rows: Vec::new(), last: None, room: self.query.bytes_max };
        let mut after = self.start()?;
        while page.rows.len() < limit {
            let wanted = (limit - page.rows.len()).min(BATCH_ENTRIES);
            let Some(batch) = self.next(after.take(), wanted).await? else {
                return self.checked(page.rows, None);
            };
            let is_full = !batch.found.into_iter().all(|candidate| page.take(candidate));
            if is_full {
                break;
            }
            if !batch.more {
                return self.checked(page.rows, None);
            }
            after = Some(batch.last);
        }
        let Filling { rows, last, .. } = page;
        let next =
            rows.last().zip(last).map(|(document, position)| self.cursor(document, position));
        self.checked(rows, next)
    }

    /// Reads everything that matches and keeps the first of it.
    pub(super) async fn sorted(&mut self) -> Result<Rows, Error> {
        let order = &self.query.order;
        let start = match &self.query.after {
            None => None,
            Some(Cursor::Sorted { values, key }) if values.len() == order.fields.len() => {
                Some(Place { values: values.clone(), key: key.clone() })
            }
            Some(_) => return Err(Error::CursorInvalid { why: "the query has another sort" }),
        };
        let mut kept = Kept { places: Vec::new(), bytes: 0, more: false };
        let mut after = None;
        while let Some(batch) = self.next(after.take(), BATCH_ENTRIES).await? {
            for candidate in batch.found {
                let place = order.place(&candidate.document);
                if start.as_ref().is_none_or(|start| order.compare(start, &place).is_lt()) {
                    kept.bytes += candidate.bytes;
                    kept.places.push((place, candidate));
                }
            }
            if kept.is_over(self.query) {
                kept.keep_first(self.query);
            }
            after = Some(batch.last);
        }
        kept.keep_first(self.query);
        let Kept { places, more, .. } = kept;
        let next = places.last().filter(|_| more).map(|(place, _)| Cursor::sorted(place.clone()));
        self.checked(places.into_iter().map(|(_, candidate)| candidate.document).collect(), next)
    }

    fn checked(&self, rows: Vec<Document>, next: Option<Cursor>) -> Result<Rows, Error> {
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
}

/// A page that documents are added to in their order.
struct Filling {
    rows: Vec<Document>,
    /// The position of the last one.
    last: Option<Vec<u8>>,
    /// How many more bytes it may have.
    room: usize,
}

impl Filling {
    /// Adds a document if there is room; for the first one there is.
    fn take(&mut self, candidate: Candidate) -> bool {
        if candidate.bytes > self.room && !self.rows.is_empty() {
            return false;
        }
        self.room = self.room.saturating_sub(candidate.bytes);
        self.last = Some(candidate.position);
        self.rows.push(candidate.document);
        true
    }
}

/// What may be on the page, among what was read so far.
struct Kept {
    places: Vec<(Place, Candidate)>,
    bytes: usize,
    /// Whether there is something that comes after the page.
    more: bool,
}

impl Kept {
    /// Whether much more is kept than the page can hold.
    fn is_over(&self, query: &Parsed) -> bool {
        let limit = query.limit.unwrap_or(ROWS_MAX + 1);
        self.places.len() > limit.saturating_mul(2).max(BATCH_ENTRIES)
            || self.bytes > query.bytes_max.saturating_mul(2).max(BATCH_BYTES)
    }

    /// Keeps the first ones of the query's order, as many as the page holds.
    fn keep_first(&mut self, query: &Parsed) {
        self.places.sort_by(|(one, _), (other, _)| query.order.compare(one, other));
        let limit = query.limit.unwrap_or(ROWS_MAX + 1);
        let (mut bytes, mut count) = (0_usize, 0);
        for (_, candidate) in self.places.iter().take(limit) {
            let with_this = bytes.saturating_add(candidate.bytes);
            if with_this > query.bytes_max && count > 0 {
                break;
            }
            (bytes, count) = (with_this, count + 1);
        }
        self.more |= self.places.len() > count;
        self.places.truncate(count);
        self.bytes = bytes;
    }
}

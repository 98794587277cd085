//! Making a page of what matches: in the plan's order, or sorted afterwards.

use super::order::Place;
use super::run::{BATCH_BYTES, BATCH_ENTRIES, Candidate, Held, Row, Run};
use super::{Cursor, Parsed, ROWS_MAX, SORT_BYTES_MAX};
use crate::Error;

/// A page's documents, and where the next one begins.
pub(super) type Rows = (Vec<Row>, Option<Cursor>);

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
        let next = rows.last().zip(last).map(|(row, last)| self.cursor(row, last));
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
        let mut kept = Kept { rows: Vec::new(), bytes: 0, held: 0, more: false };
        let mut after = None;
        while let Some(batch) = self.next(after.take(), BATCH_ENTRIES).await? {
            for Candidate { place, row, bytes, .. } in batch.found {
                let place = place.expect("what is to be sorted has a place");
                if start.as_ref().is_none_or(|start| order.compare(start, &place).is_lt()) {
                    kept.add(Ranked { place, row, bytes });
                }
            }
            if kept.is_over(self.query) {
                kept.keep_first(self.query)?;
            }
            after = Some(batch.last);
        }
        kept.keep_first(self.query)?;
        let Kept { rows, more, .. } = kept;
        let next = rows.last().filter(|_| more).map(|last| Cursor::sorted(last.place.clone()));
        self.checked(rows.into_iter().map(|ranked| ranked.row).collect(), next)
    }

    fn checked(&self, rows: Vec<Row>, next: Option<Cursor>) -> Result<Rows, Error> {
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

    fn cursor(&self, row: &Row, last: Last) -> Cursor {
        let order = &self.query.order;
        match (last.place, &row.value) {
            (Some(place), _) => Cursor::sorted(place),
            (None, Held::Parsed(value)) if !order.fields.is_empty() => {
                Cursor::sorted(order.place(&row.key, value))
            }
            (None, _) => {
                let index = self.plan.index.as_ref().map(|index| index.name.clone());
                Cursor::Found { index, at: last.position }
            }
        }
    }
}

/// A page that documents are added to in their order.
struct Filling {
    rows: Vec<Row>,
    last: Option<Last>,
    /// How many more bytes it may have.
    room: usize,
}

/// Where the last document of a page was found, and its place in the query's order where that is
/// known.
struct Last {
    position: Vec<u8>,
    place: Option<Place>,
}

impl Filling {
    /// Adds a document if there is room; for the first one there is.
    fn take(&mut self, candidate: Candidate) -> bool {
        let Candidate { position, place, row, bytes } = candidate;
        if bytes > self.room && !self.rows.is_empty() {
            return false;
        }
        self.room = self.room.saturating_sub(bytes);
        self.last = Some(Last { position, place });
        self.rows.push(row);
        true
    }
}

/// What may be on the page, among what was read so far.
struct Kept {
    rows: Vec<Ranked>,
    /// Bytes of their values as JSON.
    bytes: usize,
    /// Bytes of memory that they take, about.
    held: usize,
    /// Whether there is something that comes after the page.
    more: bool,
}

/// A document and its place in the query's order.
struct Ranked {
    place: Place,
    row: Row,
    /// Bytes of its value as JSON.
    bytes: usize,
}

impl Ranked {
    fn held(&self) -> usize {
        let text = match &self.row.value {
            Held::Text(text) => text.len(),
            Held::Parsed(_) => self.bytes,
        };
        size_of::<Self>() + self.row.key.len() + text + self.place.bytes()
    }
}

impl Kept {
    fn add(&mut self, ranked: Ranked) {
        self.bytes += ranked.bytes;
        self.held += ranked.held();
        self.rows.push(ranked);
    }

    /// Whether much more is kept than the page can hold.
    fn is_over(&self, query: &Parsed) -> bool {
        let limit = query.limit.unwrap_or(ROWS_MAX + 1);
        self.rows.len() > limit.saturating_mul(2).max(BATCH_ENTRIES)
            || self.bytes > query.bytes_max.saturating_mul(2).max(BATCH_BYTES)
            || self.held > SORT_BYTES_MAX
    }

    /// Keeps the first ones of the query's order, as many as the page holds.
    fn keep_first(&mut self, query: &Parsed) -> Result<(), Error> {
        self.rows.sort_by(|one, other| query.order.compare(&one.place, &other.place));
        let limit = query.limit.unwrap_or(ROWS_MAX + 1);
        let (mut bytes, mut held, mut count) = (0_usize, 0_usize, 0);
        for ranked in self.rows.iter().take(limit) {
            let with_this = bytes.saturating_add(ranked.bytes);
            if with_this > query.bytes_max && count > 0 {
                break;
            }
            (bytes, held, count) = (with_this, held + ranked.held(), count + 1);
        }
        self.more |= self.rows.len() > count;
        self.rows.truncate(count);
        (self.bytes, self.held) = (bytes, held);
        if held > SORT_BYTES_MAX {
            return Err(Error::SortTooLarge { max: SORT_BYTES_MAX });
        }
        Ok(())
    }
}

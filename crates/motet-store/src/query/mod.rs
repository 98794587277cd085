//! Queries: documents of a type that match a filter, in an order, page by page.

mod cursor;
mod order;
mod page;
mod plan;
mod run;

use serde_json::{Map, Value};

use crate::document::{Document, RawDocument, check_name};
use crate::filter::Filter;
use crate::value::Path;
use crate::{Env, Error};
pub(crate) use cursor::Cursor;
pub(crate) use order::Order;

/// A query of one type. It is asked with [`rows`](Self::rows), [`page`](Self::page),
/// [`count`](Self::count) or [`explain`](Self::explain).
///
/// Documents with the same sort values come in the order of their keys, in the direction of the
/// last sort field. A document with several values in a sort field counts with its smallest, or
/// with its greatest if the field is descending. Without a sort, the order is that of the index
/// that is used, or of the keys.
///
/// ```
/// use motet_store::Store;
/// use serde_json::json;
///
/// let env = Store::in_memory().env("default")?;
/// env.put("Order", "o-1", json!({"total": 30, "open": true}))?;
/// env.put("Order", "o-2", json!({"total": 20, "open": true}))?;
/// env.put("Order", "o-3", json!({"total": 10, "open": false}))?;
///
/// let open = env.query("Order").filter(json!({"open": true})).sort("total").limit(20).rows()?;
/// let keys: Vec<_> = open.iter().map(|order| order.key.as_str()).collect();
/// assert_eq!(keys, ["o-2", "o-1"]);
/// # Ok::<(), motet_store::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a query does nothing until it is asked"]
pub struct Query {
    env: Env,
    type_name: String,
    filter: Value,
    sort: Vec<(String, bool)>,
    limit: Option<usize>,
    bytes_max: usize,
    after: Option<String>,
    project: Option<Vec<String>>,
}

/// One page of a query's documents.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The documents.
    pub rows: Vec<Document>,
    /// What to give [`Query::after`] for the next page; `None` if this is the last.
    pub next: Option<String>,
}

/// One page of a query's documents, with their values as JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawPage {
    /// The documents and their keys.
    pub rows: Vec<(String, RawDocument)>,
    /// What to give [`Query::after`] for the next page; `None` if this is the last.
    pub next: Option<String>,
}

/// How a query is answered, and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explain {
    /// The index that is used; `None` if all documents of the type are read.
    pub index: Option<String>,
    /// How many ranges of the index are read.
    pub ranges: usize,
    /// Whether documents have to be sorted after they were read.
    pub sorts: bool,
    /// How many entries of the index were read.
    pub entries_examined: usize,
    /// How many documents were read.
    pub documents_examined: usize,
    /// How many documents the query gives.
    pub returned: usize,
}

/// What a query asks for, read and found to be a query.
pub(crate) struct Parsed {
    pub(crate) filter: Filter,
    /// As it was written, to compare it with those of partial indexes.
    pub(crate) filter_json: Value,
    pub(crate) order: Order,
    pub(crate) limit: Option<usize>,
    /// Bytes of documents after which a page ends.
    pub(crate) bytes_max: usize,
    pub(crate) after: Option<Cursor>,
    pub(crate) keeps: Keeps,
}

/// What whoever asks wants of the documents that are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Their values, parsed.
    Parsed,
    /// Their values as JSON text, which takes far less memory.
    Text,
    /// Nothing but their keys.
    Keys,
}

impl Query {
    pub(crate) fn new(env: Env, type_name: &str) -> Self {
        Self {
            env,
            type_name: type_name.into(),
            filter: Value::Object(Map::new()),
            sort: Vec::new(),
            limit: None,
            bytes_max: usize::MAX,
            after: None,
            project: None,
        }
    }

    /// Only documents that match; [`filter`](crate::filter) has the language. A later filter takes
    /// the place of an earlier one.
    pub fn filter(mut self, filter: Value) -> Self {
        self.filter = filter;
        self
    }

    /// Then by this field, small values first.
    pub fn sort(mut self, path: impl Into<String>) -> Self {
        self.sort.push((path.into(), false));
        self
    }

    /// Then by this field, great values first.
    pub fn sort_descending(mut self, path: impl Into<String>) -> Self {
        self.sort.push((path.into(), true));
        self
    }

    /// At most this many documents.
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// A page ends early rather than hold more than this many bytes of documents, counted as the
    /// JSON that is stored; it has one document at least. Where a page ends early,
    /// [`next`](Page::next) leads on.
    pub const fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// The page after the one that gave this cursor. The query must be the same otherwise.
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.after = Some(cursor.into());
        self
    }

    /// Only these fields of each document.
    pub fn project(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.project = Some(paths.into_iter().map(Into::into).collect());
        self
    }

    /// The documents.
    ///
    /// # Errors
    /// What is not a filter or path; [`Error::ResultTooLarge`] for a query without a limit that
    /// gives more than [`ROWS_MAX`] documents; [`Error::SortTooLarge`] for one that has to sort more
    /// than [`SORT_BYTES_MAX`]; what the medium does.
    pub fn rows(&self) -> Result<Vec<Document>, Error> {
        self.page().map(|page| page.rows)
    }

    /// The documents, and where the next page begins.
    ///
    /// # Errors
    /// As for [`rows`](Self::rows); [`Error::CursorInvalid`] for a cursor of another query, or one
    /// whose index is no more.
    pub fn page(&self) -> Result<Page, Error> {
        let (found, paths) = (self.run(Keeps::Parsed)?, self.paths()?);
        let rows = found.rows.into_iter().map(|row| {
            let mut document = row.into_document()?;
            if let Some(paths) = &paths {
                document.value = project(&document.value, paths);
            }
            Ok(document)
        });
        let rows = rows.collect::<Result<_, Error>>()?;
        Ok(Page { rows, next: found.next.map(|cursor| cursor.to_text()) })
    }

    /// The same with values as JSON text, for handing them on: parsed ones take many times the
    /// memory.
    ///
    /// ```
    /// use motet_store::Store;
    /// use serde_json::json;
    ///
    /// let env = Store::in_memory().env("default")?;
    /// env.put("Order", "o-1", json!({"total": 30}))?;
    /// let page = env.query("Order").raw_page()?;
    /// let (key, order) = &page.rows[0];
    /// assert_eq!((key.as_str(), order.json.as_slice()), ("o-1", &br#"{"total":30}"#[..]));
    /// # Ok::<(), motet_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`page`](Self::page).
    pub fn raw_page(&self) -> Result<RawPage, Error> {
        let (found, paths) = (self.run(Keeps::Text)?, self.paths()?);
        let rows = found.rows.into_iter().map(|row| {
            let Some(paths) = &paths else { return Ok(row.into_raw()) };
            let Document { key, version, expires_ms, value } = row.into_document()?;
            let json = run::json_text(&project(&value, paths));
            Ok((key, RawDocument { version, expires_ms, json }))
        });
        let rows = rows.collect::<Result<_, Error>>()?;
        Ok(RawPage { rows, next: found.next.map(|cursor| cursor.to_text()) })
    }

    /// How many documents match, whatever the limit.
    ///
    /// # Errors
    /// As for [`rows`](Self::rows).
    pub fn count(&self) -> Result<usize, Error> {
        check_name(&self.type_name)?;
        let (limit, after, order) = (None, None, Order::default());
        let parsed = Parsed { limit, after, order, ..self.parse(Keeps::Keys)? };
        pollster::block_on(run::count(self.env.shared(), &self.type_name, &parsed))
    }

    /// How the query is answered. It is run for that, without keeping the documents.
    ///
    /// # Errors
    /// As for [`rows`](Self::rows).
    pub fn explain(&self) -> Result<Explain, Error> {
        self.run(Keeps::Keys).map(|found| found.explain)
    }

    fn run(&self, keeps: Keeps) -> Result<run::Found, Error> {
        check_name(&self.type_name)?;
        let parsed = self.parse(keeps)?;
        pollster::block_on(run::run(self.env.shared(), &self.type_name, &parsed))
    }

    /// The paths of the projection.
    fn paths(&self) -> Result<Option<Vec<Path>>, Error> {
        let paths = self.project.as_ref();
        paths
            .map(|paths| {
                paths.iter().map(|path| Path::parse(path)).collect::<Result<Vec<_>, Error>>()
            })
            .transpose()
    }

    fn parse(&self, keeps: Keeps) -> Result<Parsed, Error> {
        Ok(Parsed {
            filter: Filter::parse(&self.filter)?,
            filter_json: self.filter.clone(),
            order: Order::parse(&self.sort)?,
            limit: self.limit,
            bytes_max: self.bytes_max,
            after: self.after.as_deref().map(Cursor::from_text).transpose()?,
            keeps,
        })
    }
}

/// The value with nothing but what these paths lead to.
fn project(value: &Value, paths: &[Path]) -> Value {
    let mut projected = Map::new();
    for path in paths {
        take(value, &mut projected, path.as_str());
    }
    Value::Object(projected)
}

fn take(from: &Value, into: &mut Map<String, Value>, path: &str) {
    let Value::Object(fields) = from else { return };
    match path.split_once('.') {
        None => {
            if let Some(value) = fields.get(path) {
                into.insert(path.into(), value.clone());
            }
        }
        Some((first, rest)) => {
            let Some(inner @ Value::Object(_)) = fields.get(first) else { return };
            let target = into.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(target) = target {
                take(inner, target, rest);
            }
        }
    }
}

/// The most documents of a query without a limit.
pub const ROWS_MAX: usize = 100_000;

/// The most bytes that a query keeps in memory to sort them. An index that has the order needs
/// none, and a [limit](Query::limit) or a [size](Query::bytes_max) of pages few.
pub const SORT_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_projection_has_only_what_its_paths_lead_to() {
        let value = json!({"a": {"b": 1, "c": 2}, "d": 3, "e": [1]});
        let paths = ["a.b", "d", "x", "e.0"].map(|path| Path::parse(path).unwrap());
        assert_eq!(project(&value, &paths), json!({"a": {"b": 1}, "d": 3}));
        assert_eq!(project(&json!(5), &paths), json!({}));
    }
}

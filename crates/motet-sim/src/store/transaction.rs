//! Open transactions: what they read, and what they would write.

use std::collections::BTreeMap;

use motet_store::Transaction;

use super::action::Keys;
use super::model::body::{Body, KEYS};
use super::model::write::ModelWrite;
use super::model::{Docs, Id};

/// A transaction that a process has begun.
pub(crate) struct OpenTransaction {
    pub(crate) store: Transaction,
    pub(crate) own: BTreeMap<Id, Option<Body>>,
    pub(crate) writes: Vec<ModelWrite>,
    pub(crate) reads: Reads,
}

/// Documents and their versions.
pub(crate) type Rows = Vec<(Id, u64)>;

/// What a transaction read, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    pub(crate) head: u64,
    pub(crate) epoch: u64,
    pub(crate) now_ms: u64,
    /// The documents when it began.
    pub(crate) docs: Docs,
    pub(crate) documents: Vec<(Id, u64)>,
    /// The ranges, and the documents and versions that they gave.
    pub(crate) ranges: Vec<(u8, Keys, Rows)>,
}

impl Keys {
    pub(crate) fn holds(&self, key: u8) -> bool {
        let text = KEYS[usize::from(key)];
        (!self.prefix || text.starts_with("e/")) && self.from.is_none_or(|from| key >= from)
    }

    /// The documents of a range, up to `limit` of them.
    pub(crate) fn rows(&self, docs: &Docs, kind: u8, now_ms: u64, limit: Option<usize>) -> Rows {
        let rows = docs.of_kind(kind).filter(|(id, doc)| self.holds(id.key) && doc.is_live(now_ms));
        rows.take(limit.unwrap_or(usize::MAX)).map(|(id, doc)| (id, doc.version)).collect()
    }
}

impl Reads {
    /// Whether something that was read is another by this time, so that the transaction must not
    /// commit.
    pub(crate) fn broken_by(&self, now: &Docs, at_ms: u64) -> Option<String> {
        for (id, version) in &self.documents {
            if now.version(*id) != *version {
                return Some(format!("{} was at {version} when it was read", id.text()));
            }
            if self.ages(*id, at_ms) {
                return Some(format!("{} has come to its end since it was read", id.text()));
            }
        }
        for (kind, keys, found) in &self.ranges {
            let rows = keys.rows(now, *kind, self.now_ms, Some(found.len()));
            let more = keys.rows(now, *kind, self.now_ms, None).len() > found.len();
            let whole = keys.limit.is_none_or(|limit| found.len() < limit);
            if rows != *found || (more && whole) {
                return Some(format!("a range of {found:?} is {rows:?} now, more: {more}"));
            }
            let later = keys.rows(now, *kind, at_ms, Some(found.len()));
            if later != *found {
                return Some(format!("a range of {found:?} is {later:?} by the commit's time"));
            }
        }
        None
    }

    /// Whether a document as it was when it was read counts otherwise at this time.
    fn ages(&self, id: Id, at_ms: u64) -> bool {
        self.docs.live(id, self.now_ms).is_some() != self.docs.live(id, at_ms).is_some()
    }

    /// Whether anything within what was read has changed, so that a conflict may be named.
    pub(crate) fn touched_by(&self, now: &Docs) -> bool {
        self.holds_any(|id| now.version(id) != self.docs.version(id))
    }

    /// Whether anything within what was read counts otherwise at this time.
    pub(crate) fn aged_by(&self, at_ms: u64) -> bool {
        self.holds_any(|id| self.ages(id, at_ms))
    }

    fn holds_any(&self, changed: impl Fn(Id) -> bool) -> bool {
        self.documents.iter().any(|(id, _)| changed(*id))
            || self.ranges.iter().any(|(kind, keys, _)| {
                Id::of_kind(*kind).any(|id| keys.holds(id.key) && changed(id))
            })
    }
}

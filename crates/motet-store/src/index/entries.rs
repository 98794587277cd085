//! The entries that a document has in an index.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Index;
use crate::Error;
use crate::value::{Direction, Encoded, encode};

/// What a document has in one index.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries {
    pub(crate) keys: BTreeSet<Entry>,
    /// Whether a value did not fit into an entry whole.
    pub(crate) shortened: bool,
}

/// One entry, ordered as the index is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// The key in `Index`.
    pub(crate) key: Vec<u8>,
    /// How many bytes of the key are in front of the document's key.
    pub(crate) tuple_end: u16,
    /// Whether no field is absent or null, so that uniqueness counts.
    pub(crate) is_whole: bool,
}

impl Entry {
    /// Index and values: what a unique index has once.
    pub(crate) fn tuple(&self) -> &[u8] {
        &self.key[..usize::from(self.tuple_end)]
    }

    /// What the engine keeps beside the key: where the document's key begins.
    pub(crate) const fn to_value(&self) -> [u8; 2] {
        self.tuple_end.to_be_bytes()
    }
}

/// Appends a document's key so that it sorts in this direction behind equal values.
pub(crate) fn append_document_key(to: &mut Vec<u8>, key: &str, direction: Direction) {
    match direction {
        Direction::Ascending => to.extend_from_slice(key.as_bytes()),
        // Inverted, a key that is the start of another must end with something greater.
        Direction::Descending => {
            for byte in key.bytes() {
                match byte {
                    END | ESCAPE => to.extend_from_slice(&[!ESCAPE, !(byte + 1)]),
                    _ => to.push(!byte),
                }
            }
            to.push(!END);
        }
    }
}

fn read_document_key(bytes: &[u8], direction: Direction) -> Option<String> {
    if direction == Direction::Ascending {
        return core::str::from_utf8(bytes).ok().map(str::to_owned);
    }
    let (end, bytes) = bytes.split_last()?;
    let mut key = Vec::with_capacity(bytes.len());
    let mut left = bytes.iter().map(|byte| !byte);
    while let Some(byte) = left.next() {
        key.push(if byte == ESCAPE { left.next()?.checked_sub(1)? } else { byte });
    }
    (!end == END).then(|| String::from_utf8(key).ok()).flatten()
}

const END: u8 = 0;
/// In front of a zero or a one, which is then one greater.
const ESCAPE: u8 = 1;

impl Index {
    /// The first bytes of all its entries.
    pub(crate) const fn prefix(&self) -> [u8; 4] {
        self.record.id.to_be_bytes()
    }

    /// Which way documents with the same values go by their keys: as the last field's values do, so
    /// that the index gives an order by that field whole, forwards and backwards.
    pub(crate) fn key_direction(&self) -> Direction {
        self.fields.last().map_or(Direction::Ascending, |(_, direction)| *direction)
    }

    /// The document's key in a key of `Index` and what is kept beside it.
    pub(crate) fn document_key(&self, key: &[u8], value: &[u8]) -> Option<String> {
        let tuple_end = usize::from(u16::from_be_bytes(value.try_into().ok()?));
        read_document_key(key.get(tuple_end..)?, self.key_direction())
    }

    /// A document's entries.
    ///
    /// # Errors
    /// [`Error::IndexEntriesTooMany`] for a document whose arrays multiply to more than allowed.
    pub(crate) fn entries(&self, document_key: &str, value: &Value) -> Result<Entries, Error> {
        if self.only.as_ref().is_some_and(|only| !only.matches(value)) {
            return Ok(Entries::default());
        }
        let mut tuples = vec![Tuple { key: self.prefix().to_vec(), is_whole: true }];
        let mut shortened = false;
        for (path, direction) in &self.fields {
            let mut values = path.values(value);
            if values.is_empty() {
                values.push(None);
            }
            let count = tuples.len().saturating_mul(values.len());
            if count > ENTRIES_MAX {
                return Err(Error::IndexEntriesTooMany {
                    index: self.name.clone(),
                    entries: count,
                    max: ENTRIES_MAX,
                });
            }
            let mut longer = Vec::with_capacity(count);
            for tuple in &tuples {
                for value in &values {
                    let mut tuple = tuple.clone();
                    shortened |= encode(&mut tuple.key, *value, *direction) == Encoded::Shortened;
                    tuple.is_whole &= value.is_some_and(|value| !value.is_null());
                    longer.push(tuple);
                }
            }
            tuples = longer;
        }
        let direction = self.key_direction();
        let keys = tuples.into_iter().map(|tuple| tuple.entry(document_key, direction)).collect();
        Ok(Entries { keys, shortened })
    }
}

#[derive(Clone)]
struct Tuple {
    key: Vec<u8>,
    is_whole: bool,
}

impl Tuple {
    fn entry(mut self, document_key: &str, direction: Direction) -> Entry {
        let tuple_end = u16::try_from(self.key.len()).expect("keys have less than 2,000 bytes");
        append_document_key(&mut self.key, document_key, direction);
        Entry { key: self.key, tuple_end, is_whole: self.is_whole }
    }
}

/// The most entries of one document in one index.
pub(crate) const ENTRIES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::index::{IndexRecord, IndexSpec, IndexState};

    fn index(spec: IndexSpec) -> Index {
        let record = IndexRecord {
            id: 7,
            type_id: 1,
            spec,
            state: IndexState::Ready,
            multiple: false,
            shortened: false,
        };
        Index::new("i", record).unwrap()
    }

    #[test]
    fn arrays_have_an_entry_for_each_element_and_one_for_themselves() {
        let index = index(IndexSpec::new().field("tags").field("n"));
        let entries = index.entries("k", &json!({"tags": ["a", "b", "a"], "n": 1})).unwrap();
        assert_eq!(entries.keys.len(), 3, "a, b and the array");
        assert!(!entries.shortened);
    }

    #[test]
    fn a_document_without_the_field_has_an_entry_that_uniqueness_ignores() {
        let index = index(IndexSpec::new().field("a.b"));
        for value in [json!({}), json!({"a": [1]}), json!({"a": {"b": null}})] {
            let entries = index.entries("k", &value).unwrap();
            let keys: Vec<_> = entries.keys.iter().map(|entry| entry.is_whole).collect();
            assert_eq!(keys, [false], "{value}");
        }
    }

    #[test]
    fn a_partial_index_has_only_documents_that_match() {
        let index = index(IndexSpec::new().field("n").matching(json!({"open": true})));
        assert_eq!(index.entries("k", &json!({"n": 1})).unwrap(), Entries::default());
        assert_eq!(index.entries("k", &json!({"n": 1, "open": true})).unwrap().keys.len(), 1);
    }

    #[test]
    fn arrays_that_multiply_beyond_the_limit_are_refused() {
        let index = index(IndexSpec::new().field("a").field("b"));
        let list: Vec<_> = (0..40).collect();
        let result = index.entries("k", &json!({"a": list, "b": list}));
        assert!(matches!(result, Err(Error::IndexEntriesTooMany { entries: 1681, .. })));
    }

    #[test]
    fn the_document_is_found_again_in_its_entry() {
        for spec in [IndexSpec::new().field("n"), IndexSpec::new().field("n").descending("s")] {
            let index = index(spec);
            for key in ["a/b", "\u{0}", "a\u{1}\u{0}b", "\u{10ffff}"] {
                let entries = index.entries(key, &json!({"n": -1.5, "s": "x"})).unwrap();
                let entry = entries.keys.first().unwrap();
                let found = index.document_key(&entry.key, &entry.to_value());
                assert_eq!(found.as_deref(), Some(key));
                assert_eq!(index.document_key(&entry.key, &[0xff, 0xff]), None);
            }
        }
    }

    #[test]
    fn behind_equal_values_keys_go_the_way_of_the_last_field() {
        let keys = ["", "\u{0}", "\u{0}\u{0}", "\u{1}", "a", "a\u{0}", "ab", "b", "\u{10ffff}"];
        for direction in [Direction::Ascending, Direction::Descending] {
            let bytes = keys.map(|key| {
                let mut bytes = Vec::new();
                append_document_key(&mut bytes, key, direction);
                bytes
            });
            let ascending = bytes.is_sorted();
            let descending = bytes.iter().rev().is_sorted();
            assert_eq!(
                (ascending, descending),
                match direction {
                    Direction::Ascending => (true, false),
                    Direction::Descending => (false, true),
                }
            );
        }
    }
}

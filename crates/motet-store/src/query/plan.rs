//! Which index answers a query, and which of its entries.

use std::sync::Arc;

use serde_json::Value;

use super::Parsed;
use super::order::{Order, Place};
use crate::filter::{Constraint, PathBounds};
use crate::index::{Index, IndexState, append_document_key};
use crate::keys::{self, TypeId};
use crate::value::{Direction, Path, encode, successor};

/// How a query is answered.
#[derive(Debug)]
pub(super) struct Plan<'q> {
    /// The index; none reads all documents of the type.
    pub(super) index: Option<Arc<Index>>,
    /// In the order in which they are read.
    pub(super) ranges: Vec<KeyBytes>,
    /// Whether the ranges are read from their ends.
    pub(super) backward: bool,
    /// Whether what is read has the query's order already.
    pub(super) ordered: bool,
    /// What follows the bytes that the ranges do not share: what each field is in the cursor.
    tail: Vec<Tail<'q>>,
}

/// A range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyBytes {
    pub(super) from: Vec<u8>,
    /// The first key past it.
    pub(super) to: Option<Vec<u8>>,
    /// How many of the first bytes of its keys do not count for the order: values that are given,
    /// in which ranges differ.
    pub(super) given: usize,
}

/// What a field of the index is, for an order.
#[derive(Clone, Copy, Debug)]
enum Tail<'q> {
    /// The sort field with this number.
    Sorted(usize),
    /// The same in all documents.
    Constant(&'q Value),
}

/// What an index is good for in a query.
struct Fit<'q> {
    index: Arc<Index>,
    /// The values of the first fields.
    equal: Vec<Vec<&'q Value>>,
    /// What is known of the field after them.
    range: Option<Constraint<'q>>,
    ordered: Option<Ordered<'q>>,
}

struct Ordered<'q> {
    backward: bool,
    /// How many first fields do not count for the order.
    given: usize,
    tail: Vec<Tail<'q>>,
}

impl<'q> Plan<'q> {
    /// The best plan: the index with the most fields whose values are given, then one with a range,
    /// then one that has the order, then the one with fewest fields.
    pub(super) fn choose(
        type_id: TypeId,
        indexes: &[Arc<Index>],
        query: &'q Parsed,
        bounds: &[PathBounds<'q>],
        wanted: Option<&str>,
    ) -> Self {
        let usable = indexes.iter().filter(|index| {
            index.record.state == IndexState::Ready
                && wanted.is_none_or(|wanted| index.name == wanted)
                && is_implied(index, &query.filter_json)
        });
        let fits = usable.map(|index| Fit::new(index, query, bounds));
        let best = fits.filter(|fit| fit.is_useful(query)).max_by_key(Fit::score);
        best.map_or_else(|| Self::all(type_id, &query.order), Fit::into_plan)
    }

    /// Reads all documents of the type, by key.
    pub(super) fn all(type_id: TypeId, order: &Order) -> Self {
        let from = keys::document(type_id, "");
        let to = successor(&from);
        Self {
            index: None,
            ranges: vec![KeyBytes { from, to, given: 0 }],
            backward: false,
            ordered: order.fields.is_empty(),
            tail: Vec::new(),
        }
    }

    /// Whether the entries of several ranges have to be merged: they differ in what does not count
    /// for the order.
    pub(super) fn merges(&self) -> bool {
        self.ranges.len() > 1 && self.ranges.iter().any(|range| range.given > 0)
    }

    /// The bytes after the given ones that a document at this place has.
    pub(super) fn position(&self, place: &Place) -> Option<Vec<u8>> {
        let index = self.index.as_ref()?;
        let first = index.fields.len() - self.tail.len();
        let mut bytes = Vec::new();
        for ((_, direction), tail) in index.fields[first..].iter().zip(&self.tail) {
            let value = match tail {
                Tail::Sorted(number) => place.values.get(*number)?,
                Tail::Constant(value) => value,
            };
            let _ = encode(&mut bytes, Some(value), *direction);
        }
        append_document_key(&mut bytes, &place.key, index.key_direction());
        Some(bytes)
    }
}

impl<'q> Fit<'q> {
    fn new(index: &Arc<Index>, query: &'q Parsed, bounds: &[PathBounds<'q>]) -> Self {
        let mut fit =
            Self { index: Arc::clone(index), equal: Vec::new(), range: None, ordered: None };
        let mut ranges = 1_usize;
        for (path, _) in &index.fields {
            match constraint(path, bounds, index.record.multiple) {
                Some(Constraint::Equal(values)) => {
                    ranges = ranges.saturating_mul(values.len());
                    if ranges > RANGES_MAX {
                        break;
                    }
                    fit.equal.push(values);
                }
                range => {
                    fit.range = range;
                    break;
                }
            }
        }
        fit.ordered = fit.order(&query.order);
        fit
    }

    fn is_useful(&self, query: &Parsed) -> bool {
        let sorts = !query.order.fields.is_empty();
        !self.equal.is_empty() || self.range.is_some() || (sorts && self.ordered.is_some())
    }

    fn score(&self) -> (usize, usize, core::cmp::Reverse<usize>) {
        let rest = usize::from(self.range.is_some()) + usize::from(self.ordered.is_some());
        (self.equal.len(), rest, core::cmp::Reverse(self.index.fields.len()))
    }

    /// How the index gives the order, if it does.
    fn order(&self, order: &Order) -> Option<Ordered<'q>> {
        if order.fields.is_empty() {
            return Some(Ordered { backward: false, given: 0, tail: Vec::new() });
        }
        if self.index.record.multiple || self.index.record.shortened {
            return None;
        }
        let fields = &self.index.fields;
        let mut sort = order.fields.iter().enumerate().filter(|(_, (path, _))| {
            !fields.iter().enumerate().any(|(at, (other, _))| other == path && self.is_constant(at))
        });
        let mut next = sort.next();
        // Fields whose values are given do not count for the order, up to the first sort field.
        let is_next = |at: usize, next: &Option<(usize, &(Path, Direction))>| {
            next.is_some_and(|(_, (path, _))| *path == fields[at].0)
        };
        let given = (0..self.equal.len()).take_while(|at| !is_next(*at, &next)).count();
        let mut backward = None;
        let mut tail = Vec::new();
        for (at, (path, direction)) in fields.iter().enumerate().skip(given) {
            match next {
                Some((number, (wanted, wanted_direction))) if wanted == path => {
                    tail.push(Tail::Sorted(number));
                    if *backward.get_or_insert(direction != wanted_direction)
                        != (direction != wanted_direction)
                    {
                        return None;
                    }
                    next = sort.next();
                }
                _ => tail.push(Tail::Constant(self.constant(at)?)),
            }
        }
        let keys_backward = self.index.key_direction() != order.of_keys();
        let backward = backward.unwrap_or(keys_backward);
        (next.is_none() && backward == keys_backward).then_some(Ordered { backward, given, tail })
    }

    fn constant(&self, at: usize) -> Option<&'q Value> {
        match self.equal.get(at).map(Vec::as_slice) {
            Some([value]) => Some(value),
            _ => None,
        }
    }

    fn is_constant(&self, at: usize) -> bool {
        self.constant(at).is_some()
    }

    fn into_plan(self) -> Plan<'q> {
        let ordered = self.ordered.is_some();
        let Ordered { backward, given, tail } =
            self.ordered.unwrap_or(Ordered { backward: false, given: 0, tail: Vec::new() });
        let mut prefixes = vec![(self.index.prefix().to_vec(), self.index.prefix().len())];
        for (at, (values, (_, direction))) in self.equal.iter().zip(&self.index.fields).enumerate()
        {
            let longer = prefixes.iter().flat_map(|(prefix, end)| {
                values.iter().map(move |value| {
                    let mut key = prefix.clone();
                    let _ = encode(&mut key, Some(value), *direction);
                    let end = if at < given { key.len() } else { *end };
                    (key, end)
                })
            });
            prefixes = longer.collect();
        }
        let parts = self.range.as_ref().map(|range| {
            let (_, direction) = self.index.fields[self.equal.len()];
            range.entry_ranges(direction)
        });
        let mut ranges = Vec::new();
        for (prefix, given) in prefixes {
            match &parts {
                None => {
                    let to = successor(&prefix);
                    ranges.push(KeyBytes { from: prefix, to, given });
                }
                Some(parts) => ranges.extend(parts.iter().map(|part| KeyBytes {
                    from: [&prefix[..], &part.from].concat(),
                    to: Some([&prefix[..], &part.to].concat()),
                    given,
                })),
            }
        }
        ranges.sort_unstable_by(|one, other| one.from.cmp(&other.from));
        if backward {
            ranges.reverse();
        }
        Plan { index: Some(self.index), ranges, backward, ordered, tail }
    }
}

/// What a filter says about a path, as far as an index can use it.
fn constraint<'q>(
    path: &Path,
    bounds: &[PathBounds<'q>],
    multiple: bool,
) -> Option<Constraint<'q>> {
    let bounds = bounds.iter().find(|bounds| bounds.path() == path)?;
    if !multiple {
        return Some(bounds.together());
    }
    // Several constraints may be met by several values: one of them has to do.
    let is_equal = |constraint: &&Constraint<'q>| matches!(constraint, Constraint::Equal(_));
    bounds.each().iter().find(is_equal).or_else(|| bounds.each().first()).cloned()
}

/// Whether all documents that match the query are in the index.
fn is_implied(index: &Index, filter: &Value) -> bool {
    match index.record.spec.only.as_ref().map(Value::as_object) {
        None => true,
        Some(None) => false,
        Some(Some(only)) => {
            only.iter().all(|(name, condition)| filter.get(name) == Some(condition))
        }
    }
}

/// The most ranges that a query reads of an index.
const RANGES_MAX: usize = 500;

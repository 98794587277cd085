//! Constraints as ranges of an index's entries.

use core::ops::Bound;

use serde_json::Value;

use super::Constraint;
use crate::value::{Class, Direction, Encoded, VALUE_PREFIX_BYTES, class_bytes, encode, successor};

/// A range of keys, as far as one part of them goes: the part starts here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryRange {
    /// The first key in it.
    pub from: Vec<u8>,
    /// The first key past it.
    pub to: Vec<u8>,
    /// Whether a value was too long to stand in a key whole, so that the range holds keys of values
    /// that do not meet the constraint.
    pub recheck: bool,
}

impl Constraint<'_> {
    /// The ranges that hold the [encoded](encode) values that meet this constraint, in the order of
    /// the keys and without an empty one. A range begins and ends with whole values, so that it
    /// holds also the keys in which more follows.
    ///
    /// ```
    /// use motet_store::filter::Filter;
    /// use motet_store::value::{Direction, encode};
    /// use serde_json::json;
    ///
    /// let filter = Filter::parse(&json!({"age": {"$gte": 18}}))?;
    /// let ranges = filter.bounds()[0].together().entry_ranges(Direction::Ascending);
    /// let mut key = Vec::new();
    /// let _ = encode(&mut key, Some(&json!(20)), Direction::Ascending);
    /// assert!(ranges[0].from <= key && key < ranges[0].to);
    /// # Ok::<(), motet_store::Error>(())
    /// ```
    #[must_use]
    pub fn entry_ranges(&self, direction: Direction) -> Vec<EntryRange> {
        let mut ranges: Vec<_> = match self {
            Self::Equal(values) => values.iter().map(|value| point(value, direction)).collect(),
            Self::Range { class, from, to } => vec![range(*class, *from, *to, direction)],
        };
        ranges.retain(|range| range.from < range.to);
        ranges.sort_unstable();
        ranges
    }
}

fn point(value: &Value, direction: Direction) -> EntryRange {
    let mut key = Vec::new();
    let recheck = encode(&mut key, Some(value), direction) == Encoded::Shortened;
    EntryRange { to: past(&key), from: key, recheck }
}

fn range(class: Class, from: Bound<&Value>, to: Bound<&Value>, direction: Direction) -> EntryRange {
    let (first, past_class) = class_bytes(class);
    let (start, end, first, last) = match direction {
        Direction::Ascending => (from, to, first, past_class - 1),
        Direction::Descending => (to, from, !(past_class - 1), !first),
    };
    let (start, end) = (Edge::new(start, direction), Edge::new(end, direction));
    EntryRange {
        recheck: start.shortened || end.shortened,
        from: start.first().unwrap_or_else(|| vec![first]),
        to: end.past().unwrap_or_else(|| past(&[last])),
    }
}

/// A bound in bytes. Of a value that is too long only the prefix counts, which puts all values that
/// share it inside.
struct Edge {
    key: Bound<Vec<u8>>,
    shortened: bool,
}

impl Edge {
    fn new(bound: Bound<&Value>, direction: Direction) -> Self {
        let mut shortened = false;
        let key = bound.map(|value| {
            let mut key = Vec::new();
            shortened = encode(&mut key, Some(value), direction) == Encoded::Shortened;
            key.truncate(VALUE_PREFIX_BYTES);
            key
        });
        let key = match key {
            Bound::Excluded(key) if shortened => Bound::Included(key),
            key => key,
        };
        Self { key, shortened }
    }

    fn first(self) -> Option<Vec<u8>> {
        match self.key {
            Bound::Included(key) => Some(key),
            Bound::Excluded(key) => Some(past(&key)),
            Bound::Unbounded => None,
        }
    }

    fn past(self) -> Option<Vec<u8>> {
        match self.key {
            Bound::Included(key) => Some(past(&key)),
            Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        }
    }
}

fn past(key: &[u8]) -> Vec<u8> {
    successor(key).expect("a value starts with the byte of its class, which is never 255")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::filter::Filter;

    const DIRECTIONS: [Direction; 2] = [Direction::Ascending, Direction::Descending];

    /// Whether the key of a value, with more behind it, is in a range of the filter's only path.
    fn found(filter: &Filter, value: &Value, direction: Direction) -> bool {
        let mut key = Vec::new();
        let _ = encode(&mut key, Some(value), direction);
        key.extend_from_slice(b"\xff\xff\x00 more");
        let ranges = filter.bounds()[0].together().entry_ranges(direction);
        ranges.iter().any(|range| range.from <= key && key < range.to)
    }

    fn values() -> Vec<Value> {
        let long = |end: &str| json!("x".repeat(500) + end);
        vec![
            json!(null),
            json!(-2.5),
            json!(-1),
            json!(0),
            json!(1),
            json!(1.5),
            json!(2),
            json!(u64::MAX),
            json!(""),
            json!("a"),
            json!("a\u{0}"),
            json!("b"),
            long("a"),
            long("b"),
            json!("y"),
            json!({}),
            json!({"a": 1}),
            json!([]),
            json!([1]),
            json!(false),
            json!(true),
        ]
    }

    #[test]
    fn a_range_of_keys_holds_what_meets_the_constraint_and_nothing_else() {
        for operator in ["$eq", "$gt", "$gte", "$lt", "$lte"] {
            for operand in values() {
                let filter = Filter::parse(&json!({"a": {operator: operand}})).unwrap();
                let constraint = filter.bounds()[0].together();
                for (value, direction) in
                    values().iter().flat_map(|value| DIRECTIONS.map(|way| (value.clone(), way)))
                {
                    let meets = constraint.contains(Some(&value));
                    let in_range = found(&filter, &value, direction);
                    let ranges = constraint.entry_ranges(direction);
                    let exact = ranges.iter().all(|range| !range.recheck);
                    assert!(in_range || !meets, "{value} {operator} {operand} {direction:?}");
                    assert!(!in_range || meets || !exact, "{value} {operator} {operand}");
                }
            }
        }
    }

    #[test]
    fn only_a_value_that_is_too_long_asks_for_another_look() {
        let recheck = |operand: Value| {
            let filter = Filter::parse(&json!({"a": {"$gt": operand}})).unwrap();
            filter.bounds()[0].together().entry_ranges(Direction::Ascending)[0].recheck
        };
        assert!(recheck(json!("x".repeat(500))));
        assert!(!recheck(json!("x")));
    }

    #[test]
    fn a_list_gives_a_range_for_each_value_in_the_order_of_the_keys() {
        let filter = Filter::parse(&json!({"a": {"$in": ["b", 1, null, 1.0]}})).unwrap();
        for direction in DIRECTIONS {
            let ranges = filter.bounds()[0].together().entry_ranges(direction);
            assert_eq!(ranges.len(), 3);
            assert!(ranges.windows(2).all(|pair| pair[0].to <= pair[1].from));
        }
    }

    #[test]
    fn an_empty_range_is_left_out() {
        let filter = Filter::parse(&json!({"a": {"$gt": 8, "$lt": 2}})).unwrap();
        assert!(filter.bounds()[0].together().entry_ranges(Direction::Ascending).is_empty());
        assert!(filter.bounds()[0].together().entry_ranges(Direction::Descending).is_empty());
    }
}

//! What a filter says about single paths, for a planner.

use core::cmp::Ordering;
use core::ops::Bound;

use serde_json::Value;

use super::condition::{Comparison, Node, Subject, Test};
use crate::value::{Class, Path, compare};

/// The constraints that a filter puts on one path.
///
/// Every document that matches the filter meets each of them with some value of the path, of those
/// that [`Path::values`] lists. An index that holds all these values (and null for an absent one)
/// therefore finds every match by **any one** of the [constraints](Self::each), also where a
/// document has several values, since two constraints may be met by two of them: `{"a": [1, 9]}`
/// matches `{"a": {"$gt": 8, "$lt": 2}}`. Conditions inside one `$elemMatch` are met by one
/// element, so they are one constraint here.
///
/// Where no document has several values ([`Path::is_multiple`] is false for all), an index finds
/// every match by all constraints [together](Self::together).
///
/// Constraints of different paths combine freely in a compound index that holds every combination
/// of its paths' values. What an index finds need not match: the filter has to be asked again.
#[derive(Clone, Debug)]
pub struct PathBounds<'a> {
    path: Path,
    each: Vec<Constraint<'a>>,
}

/// What a value has to be. An absent value counts as null.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint<'a> {
    /// Equal to one of these, which are in order; no value can be, if there are none.
    Equal(Vec<&'a Value>),
    /// Of a class and between two values of it.
    Range {
        /// The class.
        class: Class,
        /// Where the range begins; the class's first value if unbounded.
        from: Bound<&'a Value>,
        /// Where it ends; the class's last value if unbounded.
        to: Bound<&'a Value>,
    },
}

impl<'a> PathBounds<'a> {
    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The constraints, at least one; any one of them may drive an index.
    #[must_use]
    pub fn each(&self) -> &[Constraint<'a>] {
        &self.each
    }

    /// All constraints as one, which may drive an index over a path that has one value in every
    /// document.
    #[must_use]
    pub fn together(&self) -> Constraint<'a> {
        let (first, rest) = self.each.split_first().expect("there is at least one constraint");
        rest.iter().fold(first.clone(), |all, one| all.and(one))
    }
}

impl<'a> Constraint<'a> {
    /// Whether a value meets it.
    #[must_use]
    pub fn contains(&self, value: Option<&Value>) -> bool {
        let value = value.unwrap_or(&Value::Null);
        match self {
            Self::Equal(values) => is_among(value, values),
            Self::Range { class, from, to } => {
                Class::of(value) == *class && is_after(value, *from) && is_before(value, *to)
            }
        }
    }

    /// Both constraints on the same value.
    fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Equal(values), other) | (other, Self::Equal(values)) => {
                let both = values.iter().filter(|value| other.contains(Some(value)));
                Self::Equal(both.copied().collect())
            }
            (Self::Range { class, .. }, Self::Range { class: other_class, .. })
                if class != other_class =>
            {
                Self::Equal(Vec::new())
            }
            (
                Self::Range { class, from, to },
                Self::Range { from: other_from, to: other_to, .. },
            ) => Self::Range {
                class: *class,
                from: tighter(*from, *other_from, Ordering::Greater),
                to: tighter(*to, *other_to, Ordering::Less),
            },
        }
    }

    /// What a test says about the value that it accepts, if that is a constraint.
    fn of(test: &'a Test) -> Option<Self> {
        match test {
            Test::Equals(value) => Some(Self::Equal(vec![value])),
            Test::IsIn(values) => Some(Self::Equal(values.iter().collect())),
            Test::Compares(comparison, value) => {
                let (from, to) = match comparison {
                    Comparison::Greater => (Bound::Excluded(value), Bound::Unbounded),
                    Comparison::GreaterOrEqual => (Bound::Included(value), Bound::Unbounded),
                    Comparison::Less => (Bound::Unbounded, Bound::Excluded(value)),
                    Comparison::LessOrEqual => (Bound::Unbounded, Bound::Included(value)),
                };
                Some(Self::Range { class: Class::of(value), from, to })
            }
            _ => None,
        }
    }
}

pub(super) fn of(root: &Node) -> Vec<PathBounds<'_>> {
    let mut found = Vec::new();
    collect(root, None, &mut found);
    found.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
    let mut bounds: Vec<PathBounds<'_>> = Vec::new();
    for (path, constraint) in found {
        match bounds.last_mut() {
            Some(last) if last.path == path => last.each.push(constraint),
            _ => bounds.push(PathBounds { path, each: vec![constraint] }),
        }
    }
    bounds
}

/// The constraints that a node depends on. `array` is the path to the array whose elements the node
/// is about, none at the top.
fn collect<'a>(node: &'a Node, array: Option<&Path>, found: &mut Vec<(Path, Constraint<'a>)>) {
    match node {
        Node::All(nodes) => nodes.iter().for_each(|node| collect(node, array, found)),
        Node::Test(Subject::Field(path), test) => {
            let Some(path) = array.map_or_else(|| Some(path.clone()), |a| a.through_elements(path))
            else {
                return;
            };
            match test {
                Test::HasElement(inner) => collect_elements(inner, path, found),
                _ => found.extend(Constraint::of(test).map(|constraint| (path, constraint))),
            }
        }
        Node::Any(_) | Node::Not(_) | Node::Test(Subject::Element, _) => {}
    }
}

fn collect_elements<'a>(inner: &'a Node, path: Path, found: &mut Vec<(Path, Constraint<'a>)>) {
    collect(inner, Some(&path), found);
    found.extend(on_element(inner).map(|constraint| (path, constraint)));
}

/// What a node asks of one element itself.
fn on_element(node: &Node) -> Option<Constraint<'_>> {
    match node {
        Node::All(nodes) => nodes.iter().filter_map(on_element).reduce(|all, one| all.and(&one)),
        Node::Test(Subject::Element, test) => Constraint::of(test),
        _ => None,
    }
}

fn is_among(value: &Value, values: &[&Value]) -> bool {
    values.binary_search_by(|other| compare(other, value)).is_ok()
}

fn is_after(value: &Value, from: Bound<&Value>) -> bool {
    match from {
        Bound::Included(from) => compare(value, from).is_ge(),
        Bound::Excluded(from) => compare(value, from).is_gt(),
        Bound::Unbounded => true,
    }
}

fn is_before(value: &Value, to: Bound<&Value>) -> bool {
    match to {
        Bound::Included(to) => compare(value, to).is_le(),
        Bound::Excluded(to) => compare(value, to).is_lt(),
        Bound::Unbounded => true,
    }
}

/// The bound that leaves less: the one whose value sorts as `inward` from the other's.
fn tighter<'a>(a: Bound<&'a Value>, b: Bound<&'a Value>, inward: Ordering) -> Bound<&'a Value> {
    let (value_a, value_b) = match (value_of(a), value_of(b)) {
        (None, _) => return b,
        (_, None) => return a,
        (Some(value_a), Some(value_b)) => (value_a, value_b),
    };
    match compare(value_a, value_b) {
        Ordering::Equal if matches!(a, Bound::Excluded(_)) => a,
        Ordering::Equal => b,
        order if order == inward => a,
        _ => b,
    }
}

fn value_of(bound: Bound<&Value>) -> Option<&Value> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::filter::Filter;

    fn parse(filter: &Value) -> Filter {
        Filter::parse(filter).unwrap()
    }

    fn paths(filter: &Filter) -> Vec<(String, usize)> {
        let bounds = filter.bounds();
        bounds.iter().map(|b| (b.path().to_string(), b.each().len())).collect()
    }

    #[test]
    fn conditions_of_a_conjunction_are_found_by_path() {
        let filter = parse(&json!({
            "a": 1, "b.c": {"$in": [2, 1], "$gt": 0}, "$and": [{"a": {"$lt": 9}}],
        }));
        assert_eq!(paths(&filter), [("a".to_owned(), 2), ("b.c".to_owned(), 2)]);
        let bounds = filter.bounds();
        let (one, two) = (json!(1), json!(2));
        assert_eq!(bounds[0].together(), Constraint::Equal(vec![&one]));
        assert_eq!(bounds[1].together(), Constraint::Equal(vec![&one, &two]));
    }

    #[test]
    fn what_a_match_does_not_depend_on_is_no_constraint() {
        let filter = parse(&json!({
            "$or": [{"a": 1}, {"b": 2}], "$nor": [{"c": 3}], "d": {"$ne": 4}, "e": {"$nin": [5]},
            "f": {"$not": {"$gt": 6}}, "g": {"$exists": true}, "h": {"$regex": "^x"},
        }));
        assert!(filter.bounds().is_empty());
    }

    #[test]
    fn two_ranges_are_one_only_where_a_path_has_one_value() {
        let filter = parse(&json!({"a": {"$gt": 8, "$lt": 2}}));
        let (eight, two) = (json!(8), json!(2));
        let bounds = filter.bounds();
        let range = |from, to| Constraint::Range { class: Class::Number, from, to };
        let each = [
            range(Bound::Excluded(&eight), Bound::Unbounded),
            range(Bound::Unbounded, Bound::Excluded(&two)),
        ];
        assert_eq!(bounds[0].each(), each);
        let together = range(Bound::Excluded(&eight), Bound::Excluded(&two));
        assert_eq!(bounds[0].together(), together);
        assert!(filter.matches(&json!({"a": [1, 9]})) && !together.contains(Some(&json!(9))));
    }

    #[test]
    fn conditions_on_one_element_are_one_constraint() {
        let filter = parse(&json!({"a": {"$elemMatch": {"$gte": 2, "$lt": 8, "$ne": 5}}}));
        let bounds = filter.bounds();
        let (two, eight) = (json!(2), json!(8));
        let (from, to) = (Bound::Included(&two), Bound::Excluded(&eight));
        assert_eq!(bounds[0].each(), [Constraint::Range { class: Class::Number, from, to }]);
    }

    #[test]
    fn fields_of_elements_are_found_by_the_path_through_the_array() {
        let filter = parse(&json!({"a.l": {"$elemMatch": {
            "b": 1, "0": 2, "$and": [{"m": {"$elemMatch": {"c": 3}}}],
        }}}));
        assert_eq!(paths(&filter), [("a.l.b".to_owned(), 1), ("a.l.m.c".to_owned(), 1)]);
    }

    #[test]
    fn constraints_that_exclude_each_other_leave_nothing() {
        for filter in [json!({"$gt": 1, "$lt": "a"}), json!({"$eq": 1, "$gt": 1})] {
            let filter = parse(&json!({ "a": filter }));
            assert_eq!(filter.bounds()[0].together(), Constraint::Equal(vec![]));
        }
    }

    #[test]
    fn the_tighter_of_two_bounds_counts() {
        let filter = parse(&json!({"a": {"$gt": 3, "$gte": 3, "$lt": 7, "$lte": 6.5}}));
        let together = filter.bounds()[0].together();
        for (value, inside) in [(json!(3), false), (json!(3.1), true), (json!(6.5), true)] {
            assert_eq!(together.contains(Some(&value)), inside, "{value}");
        }
        assert!(!together.contains(Some(&json!(6.6))) && !together.contains(None));
    }
}

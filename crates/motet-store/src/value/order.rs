//! The total order over values.

use core::cmp::Ordering;

use serde_json::{Map, Value};

use super::number::Exact;

/// The classes of values, in their order, which is MongoDB's for the types that JSON has.
///
/// A field that is absent counts as null wherever values are sorted or compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Null, and what is absent.
    Null,
    /// Numbers, whether written as integers or not.
    Number,
    /// Strings.
    String,
    /// Objects.
    Object,
    /// Arrays.
    Array,
    /// False and true.
    Boolean,
}

impl Class {
    /// The class of a value.
    #[must_use]
    pub const fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Object(_) => Self::Object,
            Value::Array(_) => Self::Array,
            Value::Bool(_) => Self::Boolean,
        }
    }
}

/// Which of two values sorts first.
///
/// Values of different [classes](Class) are ordered by class. Within a class:
///
/// - numbers by their exact value: integers of 64 bits are not rounded to floats, `1` equals `1.0`
///   and `-0.0` equals `0`;
/// - strings by code points, which is the order of their UTF-8 bytes;
/// - objects by their fields sorted by name, field by field, the name before the value; the order
///   in which fields were written does not count;
/// - arrays element by element;
/// - false before true.
///
/// What runs out first, sorts first. An absent value is compared as [`Value::Null`].
///
/// ```
/// use std::cmp::Ordering;
///
/// use motet_store::value::compare;
/// use serde_json::json;
///
/// assert_eq!(compare(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)), Ordering::Greater);
/// assert_eq!(compare(&json!(10), &json!("1")), Ordering::Less);
/// assert_eq!(compare(&json!([1, 2]), &json!([1])), Ordering::Greater);
/// ```
#[must_use]
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => Exact::new(a).cmp(&Exact::new(b)),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b),
        (Value::Array(a), Value::Array(b)) => compare_arrays(a, b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => Class::of(a).cmp(&Class::of(b)),
    }
}

/// Whether two values are the same: whether [`compare`] says that neither sorts first.
///
/// ```
/// use motet_store::value::equal;
/// use serde_json::json;
///
/// assert!(equal(&json!({"a": 1, "b": [2.0]}), &json!({"b": [2], "a": 1.0})));
/// assert!(!equal(&json!({"a": null}), &json!({})));
/// ```
#[must_use]
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && same_fields(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        _ => compare(a, b).is_eq(),
    }
}

fn same_fields(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
}

fn compare_arrays(a: &[Value], b: &[Value]) -> Ordering {
    let pairs = a.iter().zip(b).map(|(a, b)| compare(a, b));
    first_difference(pairs).unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn compare_objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let (sorted_a, sorted_b) = (sorted_fields(a), sorted_fields(b));
    let pairs = sorted_a
        .iter()
        .zip(&sorted_b)
        .map(|((name_a, a), (name_b, b))| name_a.cmp(name_b).then_with(|| compare(a, b)));
    first_difference(pairs).unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Option<Ordering> {
    orders.find(|order| order.is_ne())
}

/// The fields by name. A map keeps them sorted or as written, as the build of `serde_json` goes.
pub(super) fn sorted_fields(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut sorted: Vec<_> = fields.iter().collect();
    if !sorted.is_sorted_by_key(|(name, _)| *name) {
        sorted.sort_unstable_by_key(|(name, _)| *name);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_all_classes_are_in_the_stated_order() {
        let sorted = [
            json!(null),
            json!(-1.5),
            json!(0),
            json!(0.1),
            json!(9_007_199_254_740_992.0),
            json!(9_007_199_254_740_993_u64),
            json!(""),
            json!("a"),
            json!("a\u{0}"),
            json!("ab"),
            json!("\u{ffff}"),
            json!("\u{10000}"),
            json!({}),
            json!({"a": 1}),
            json!({"a": 1, "b": 0}),
            json!({"a": 2}),
            json!({"b": 0}),
            json!([]),
            json!([null]),
            json!([1]),
            json!([1, 2]),
            json!([2]),
            json!([[]]),
            json!(false),
            json!(true),
        ];
        for (at, a) in sorted.iter().enumerate() {
            for (other, b) in sorted.iter().enumerate() {
                assert_eq!(compare(a, b), at.cmp(&other), "{a} and {b}");
                assert_eq!(equal(a, b), at == other, "{a} and {b}");
            }
        }
    }

    #[test]
    fn objects_are_equal_whatever_the_order_of_their_fields() {
        let a: Value = serde_json::from_str(r#"{"x": 1, "y": {"p": 1, "q": 2}}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"y": {"q": 2.0, "p": 1}, "x": 1}"#).unwrap();
        assert!(equal(&a, &b));
        assert_eq!(compare(&a, &b), Ordering::Equal);
    }

    #[test]
    fn a_null_field_is_not_an_absent_one_inside_an_object() {
        assert!(!equal(&json!({"a": null}), &json!({"b": 1})));
        assert!(!equal(&json!({"a": null}), &json!({})));
    }
}

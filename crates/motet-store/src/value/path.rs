//! Dotted paths into documents, followed as filters and indexes follow them.

use core::fmt;

use serde_json::Value;

use crate::Error;

/// The longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 1_024;
/// The most steps in a path.
pub const PATH_STEPS_MAX: usize = 32;

/// A dotted path, such as `address.city` or `items.0.price`.
///
/// A step names a field of an object. In an array, a step that is a number names a position (from
/// 0, without leading zeros); any other step is followed into every object of the array, so that
/// a path may lead to many values. An array that lies directly in an array is entered by position
/// only. Where a step leads nowhere (a field that the object lacks, a position past the end, a
/// scalar that has no fields) the path leads to an absent value. Over an array without any object
/// it leads to nothing at all, not even an absent value.
///
/// A field whose name contains a dot or is empty has no path.
///
/// ```
/// use motet_store::value::Path;
/// use serde_json::json;
///
/// let path = Path::parse("items.price")?;
/// let order = json!({"items": [{"price": 5}, {"price": [7, 8]}, {}]});
/// let values: Vec<_> = path.values(&order).into_iter().map(|value| value.cloned()).collect();
/// let expected = [Some(json!(5)), Some(json!([7, 8])), Some(json!(7)), Some(json!(8)), None];
/// assert_eq!(values, expected);
/// # Ok::<(), motet_store::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    text: Box<str>,
    steps: Box<[Step]>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Step {
    name: Box<str>,
    /// What the step means in an array, if it is a number.
    position: Option<usize>,
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// [`Error::PathInvalid`] if it or one of its steps is empty, or if it is too long.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |why| Error::PathInvalid { path: shown(text), why };
        if text.len() > PATH_BYTES_MAX {
            return Err(invalid("it is longer than 1,024 bytes"));
        }
        if text.split('.').any(str::is_empty) {
            return Err(invalid("a step of it is empty"));
        }
        if text.split('.').count() > PATH_STEPS_MAX {
            return Err(invalid("it has more than 32 steps"));
        }
        Ok(Self { text: text.into(), steps: text.split('.').map(Step::new).collect() })
    }

    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the path leads to a value that `test` accepts. An absent value is none.
    ///
    /// An array at the end of the path is one value here; [`any_candidate`](Self::any_candidate)
    /// tries its elements too.
    pub fn any(&self, document: &Value, mut test: impl FnMut(Option<&Value>) -> bool) -> bool {
        any_from(document, &self.steps, &mut |value| test(value))
    }

    /// Whether `test` accepts one of the values that a condition on this path looks at: those that
    /// the path leads to, and the elements of each that is an array.
    pub fn any_candidate(
        &self,
        document: &Value,
        mut test: impl FnMut(Option<&Value>) -> bool,
    ) -> bool {
        self.any(document, |value| {
            test(value) || elements(value).iter().any(|element| test(Some(element)))
        })
    }

    /// The values that a condition on this path looks at, which are those that an index over the
    /// path must hold: see [`any_candidate`](Self::any_candidate). Absent ones are none.
    #[must_use]
    pub fn values<'a>(&self, document: &'a Value) -> Vec<Option<&'a Value>> {
        let mut values = Vec::new();
        any_from(document, &self.steps, &mut |value: Option<&'a Value>| {
            values.push(value);
            values.extend(elements(value).iter().map(Some));
            false
        });
        values
    }

    /// Whether one document may meet several conditions on this path with several values: whether
    /// the path goes into an array's elements or ends at an array.
    #[must_use]
    pub fn is_multiple(&self, document: &Value) -> bool {
        let mut value = document;
        for step in &self.steps {
            let next = match (value, step.position) {
                (Value::Object(fields), _) => fields.get(&*step.name),
                (Value::Array(elements), Some(position)) => elements.get(position),
                (Value::Array(_), None) => return true,
                _ => None,
            };
            let Some(next) = next else { return false };
            value = next;
        }
        value.is_array()
    }

    /// The path from an array at this one to `inner` of its elements; none where the two together
    /// would mean another place, or are too long.
    pub(crate) fn through_elements(&self, inner: &Self) -> Option<Self> {
        let enters = inner.steps.first().is_some_and(|first| first.position.is_none());
        enters.then(|| Self::parse(&format!("{self}.{inner}")).ok()).flatten()
    }
}

impl Step {
    fn new(name: &str) -> Self {
        let is_canonical = name == "0" || !name.starts_with(['0', '+']);
        let position = name.parse().ok().filter(|_| is_canonical);
        Self { name: name.into(), position }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Path({})", self.text)
    }
}

fn any_from<'a, F>(value: &'a Value, steps: &[Step], test: &mut F) -> bool
where
    F: FnMut(Option<&'a Value>) -> bool,
{
    let Some((step, rest)) = steps.split_first() else { return test(Some(value)) };
    let next = match (value, step.position) {
        (Value::Object(fields), _) => fields.get(&*step.name),
        (Value::Array(elements), Some(position)) => elements.get(position),
        (Value::Array(elements), None) => {
            let mut objects = elements.iter().filter(|element| element.is_object());
            return objects.any(|object| any_from(object, steps, test));
        }
        _ => None,
    };
    match next {
        Some(next) => any_from(next, rest, test),
        None => test(None),
    }
}

/// The elements of an array; nothing else has any.
fn elements(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(elements)) => elements,
        _ => &[],
    }
}

/// The start of a text that may be too long to be shown whole.
fn shown(text: &str) -> String {
    const CHARACTERS: usize = 100;
    text.chars().take(CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(path: &str, document: &Value) -> Vec<Option<Value>> {
        let path = Path::parse(path).unwrap();
        path.values(document).into_iter().map(Option::<&Value>::cloned).collect()
    }

    #[test]
    fn a_step_is_a_field_of_an_object_and_a_position_in_an_array() {
        let document = json!({"a": [{"0": 1}, {"b": 2}], "c": {"0": 3}});
        assert_eq!(values("c.0", &document), [Some(json!(3))]);
        assert_eq!(values("a.1.b", &document), [Some(json!(2))]);
        assert_eq!(values("a.0.0", &document), [Some(json!(1))]);
        assert_eq!(values("a.00", &document), [None, None]);
    }

    #[test]
    fn what_is_not_there_is_absent() {
        let document = json!({"a": 5, "n": null, "l": [1]});
        for path in ["x", "a.b", "n.b", "x.y.z", "l.7"] {
            assert_eq!(values(path, &document), [None], "{path}");
        }
    }

    #[test]
    fn an_array_without_objects_leads_to_nothing() {
        for list in [json!([]), json!([1, "x"]), json!([[{"b": 1}]])] {
            assert!(values("a.b", &json!({ "a": list })).is_empty(), "{list}");
        }
    }

    #[test]
    fn an_array_at_the_end_is_a_value_and_so_are_its_elements() {
        let expected = [Some(json!([1, [2]])), Some(json!(1)), Some(json!([2]))];
        assert_eq!(values("a", &json!({"a": [1, [2]]})), expected);
    }

    #[test]
    fn only_arrays_that_are_entered_make_a_path_multiple() {
        let path = |text| Path::parse(text).unwrap();
        assert!(path("a").is_multiple(&json!({"a": []})));
        assert!(path("a.b").is_multiple(&json!({"a": [{"b": 1}]})));
        assert!(!path("a.0").is_multiple(&json!({"a": [1]})));
        assert!(!path("a.b").is_multiple(&json!({"a": {"b": 1}})));
        assert!(!path("a.b").is_multiple(&json!({"a": 1})));
    }

    #[test]
    fn paths_that_are_empty_or_too_long_are_refused() {
        for text in ["", ".", "a.", ".a", "a..b"] {
            assert!(matches!(Path::parse(text), Err(Error::PathInvalid { .. })), "{text:?}");
        }
        assert!(Path::parse(&vec!["a"; PATH_STEPS_MAX].join(".")).is_ok());
        assert!(Path::parse(&vec!["a"; PATH_STEPS_MAX + 1].join(".")).is_err());
        assert!(Path::parse(&"a".repeat(PATH_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_path_through_elements_means_the_same_place() {
        let path = |text| Path::parse(text).unwrap();
        assert_eq!(path("a").through_elements(&path("b.c")), Some(path("a.b.c")));
        assert_eq!(path("a").through_elements(&path("0")), None);
    }
}

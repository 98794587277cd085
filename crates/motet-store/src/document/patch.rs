//! Changes to parts of a document.

use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::Error;
use crate::value::{Path, equal};

/// Changes to parts of a document, done in order.
///
/// ```
/// use motet_store::Patch;
/// use serde_json::json;
///
/// let patch = Patch::new().set("address.city", json!("Paris"))?.inc("visits", json!(1))?;
/// assert_eq!(
///     patch.apply(json!({"visits": 2}))?,
///     json!({"visits": 3, "address": {"city": "Paris"}}),
/// );
/// # Ok::<(), motet_store::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Set(Path, Value),
    Unset(Path),
    Inc(Path, Number),
    Merge(Map<String, Value>),
    Append(Path, Vec<Value>),
    Pull(Path, Value),
}

impl Patch {
    /// A patch that changes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a patch from JSON: an object whose fields `merge`, `set`, `unset`, `inc`, `append` and
    /// `pull` are done in this order. `merge` is an object, `unset` a list of paths, the others are
    /// objects of operands by path; a list under `append` is a list of elements.
    ///
    /// ```
    /// use motet_store::Patch;
    /// use serde_json::json;
    ///
    /// let patch = Patch::parse(&json!({"set": {"a.b": 1}, "append": {"tags": ["x", "y"]}}))?;
    /// assert_eq!(patch.apply(json!({}))?, json!({"a": {"b": 1}, "tags": ["x", "y"]}));
    /// # Ok::<(), motet_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::PatchInvalid`] and [`Error::PathInvalid`] name what is not allowed.
    pub fn parse(json: &Value) -> Result<Self, Error> {
        let fields = object(json, "")?;
        if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(invalid(unknown, "a patch has merge, set, unset, inc, append and pull"));
        }
        let mut patch = Self::new();
        if let Some(merge) = fields.get("merge") {
            patch.steps.push(Step::Merge(object(merge, "merge")?.clone()));
        }
        for (path, value) in operands(fields, "set")? {
            patch = patch.set(path, value.clone())?;
        }
        for path in paths(fields.get("unset"))? {
            patch = patch.unset(path)?;
        }
        for (path, by) in operands(fields, "inc")? {
            patch = patch.inc(path, by.clone())?;
        }
        for (path, value) in operands(fields, "append")? {
            patch = patch
                .append(path, value.as_array().map_or_else(|| vec![value.clone()], Clone::clone))?;
        }
        for (path, value) in operands(fields, "pull")? {
            patch = patch.pull(path, value.clone())?;
        }
        Ok(patch)
    }

    /// Sets a value, and makes the objects on the way to it.
    ///
    /// # Errors
    /// [`Error::PathInvalid`].
    pub fn set(self, path: &str, value: Value) -> Result<Self, Error> {
        Ok(self.with(Step::Set(Path::parse(path)?, value)))
    }

    /// Removes a field, or sets an array's element to null. Absent ones are left so.
    ///
    /// # Errors
    /// [`Error::PathInvalid`].
    pub fn unset(self, path: &str) -> Result<Self, Error> {
        Ok(self.with(Step::Unset(Path::parse(path)?)))
    }

    /// Adds to a number; an absent one counts as 0.
    ///
    /// # Errors
    /// [`Error::PathInvalid`]; [`Error::PatchInvalid`] if `by` is no number.
    pub fn inc(self, path: &str, by: Value) -> Result<Self, Error> {
        match by {
            Value::Number(by) => Ok(self.with(Step::Inc(Path::parse(path)?, by))),
            _ => Err(invalid(path, "what is added must be a number")),
        }
    }

    /// Merges into the document as JSON Merge Patch has it (RFC 7396): null removes a field.
    #[must_use]
    pub fn merge(self, fields: Map<String, Value>) -> Self {
        self.with(Step::Merge(fields))
    }

    /// Appends elements to an array; an absent one counts as empty.
    ///
    /// # Errors
    /// [`Error::PathInvalid`].
    pub fn append(self, path: &str, elements: Vec<Value>) -> Result<Self, Error> {
        Ok(self.with(Step::Append(Path::parse(path)?, elements)))
    }

    /// Removes all elements of an array that equal this value.
    ///
    /// # Errors
    /// [`Error::PathInvalid`].
    pub fn pull(self, path: &str, element: Value) -> Result<Self, Error> {
        Ok(self.with(Step::Pull(Path::parse(path)?, element)))
    }

    /// The value after all changes.
    ///
    /// # Errors
    /// [`Error::PatchInvalid`] if the value has something else where a change needs a number, an
    /// array or an object, or if a sum is no number that JSON has.
    pub fn apply(&self, value: Value) -> Result<Value, Error> {
        let mut value = value;
        self.steps.iter().try_for_each(|step| step.apply(&mut value))?;
        Ok(value)
    }

    fn with(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl Step {
    fn apply(&self, value: &mut Value) -> Result<(), Error> {
        match self {
            Self::Set(path, new) => *place(value, path)? = new.clone(),
            Self::Unset(path) => unset(value, path),
            Self::Inc(path, by) => inc(place(value, path)?, path, by)?,
            Self::Merge(fields) => merge(value, fields),
            Self::Append(path, elements) => append(place(value, path)?, path, elements)?,
            Self::Pull(path, element) => {
                if let Some(Value::Array(elements)) = find(value, path) {
                    elements.retain(|other| !equal(other, element));
                }
            }
        }
        Ok(())
    }
}

/// The place that a path names, made where it is absent. What is made is null.
fn place<'v>(value: &'v mut Value, path: &Path) -> Result<&'v mut Value, Error> {
    path.as_str().split('.').try_fold(value, |value, step| {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        match value {
            Value::Object(fields) => Ok(match fields.entry(step) {
                Entry::Occupied(field) => field.into_mut(),
                Entry::Vacant(field) => field.insert(Value::Null),
            }),
            Value::Array(elements) => step
                .parse::<usize>()
                .ok()
                .and_then(|position| elements.get_mut(position))
                .ok_or_else(|| invalid(path.as_str(), "the array has no such element")),
            _ => Err(invalid(path.as_str(), "it leads through a value that has no fields")),
        }
    })
}

/// The place that a path names, if it is there.
fn find<'v>(value: &'v mut Value, path: &Path) -> Option<&'v mut Value> {
    path.as_str().split('.').try_fold(value, child)
}

fn child<'v>(value: &'v mut Value, step: &str) -> Option<&'v mut Value> {
    match value {
        Value::Object(fields) => fields.get_mut(step),
        Value::Array(elements) => elements.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    }
}

fn unset(value: &mut Value, path: &Path) {
    let (parent, last) = match path.as_str().rsplit_once('.') {
        None => (Some(value), path.as_str()),
        Some((parent, last)) => (parent.split('.').try_fold(value, child), last),
    };
    match parent {
        Some(Value::Object(fields)) => {
            fields.shift_remove(last);
        }
        Some(elements @ Value::Array(_)) => {
            if let Some(element) = child(elements, last) {
                *element = Value::Null;
            }
        }
        _ => {}
    }
}

fn inc(value: &mut Value, path: &Path, by: &Number) -> Result<(), Error> {
    let sum = match value {
        Value::Null => Some(by.clone()),
        Value::Number(number) => sum(number, by),
        _ => return Err(invalid(path.as_str(), "it is no number")),
    };
    *value = Value::Number(sum.ok_or_else(|| invalid(path.as_str(), "the sum is out of range"))?);
    Ok(())
}

/// Integers stay exact: a sum that no integer type holds is refused instead of rounded.
fn sum(one: &Number, other: &Number) -> Option<Number> {
    let integer = |number: &Number| {
        number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
    };
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Number::from_i128(one + other),
        _ => Number::from_f64(one.as_f64()? + other.as_f64()?),
    }
}

fn merge(value: &mut Value, fields: &Map<String, Value>) {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(target) = value else { return };
    for (name, new) in fields {
        match new {
            Value::Null => {
                target.shift_remove(name);
            }
            Value::Object(inner) => merge(target.entry(name).or_insert(Value::Null), inner),
            _ => {
                target.insert(name.clone(), new.clone());
            }
        }
    }
}

fn append(value: &mut Value, path: &Path, new: &[Value]) -> Result<(), Error> {
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(elements) => {
            elements.extend_from_slice(new);
            Ok(())
        }
        _ => Err(invalid(path.as_str(), "it is no array")),
    }
}

fn operands<'v>(
    fields: &'v Map<String, Value>,
    name: &str,
) -> Result<impl Iterator<Item = (&'v str, &'v Value)>, Error> {
    let operands = fields.get(name).map(|operands| object(operands, name)).transpose()?;
    Ok(operands.into_iter().flatten().map(|(path, operand)| (path.as_str(), operand)))
}

fn paths(unset: Option<&Value>) -> Result<Vec<&str>, Error> {
    let wrong = || invalid("unset", "it must be a list of paths");
    let Some(unset) = unset else { return Ok(Vec::new()) };
    let list = unset.as_array().ok_or_else(wrong)?;
    list.iter().map(|path| path.as_str().ok_or_else(wrong)).collect()
}

fn object<'v>(value: &'v Value, at: &str) -> Result<&'v Map<String, Value>, Error> {
    value.as_object().ok_or_else(|| invalid(at, "it must be an object"))
}

fn invalid(path: &str, why: &str) -> Error {
    Error::PatchInvalid { path: path.into(), why: why.into() }
}

const FIELDS: [&str; 6] = ["merge", "set", "unset", "inc", "append", "pull"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apply(patch: &Value, to: Value) -> Result<Value, Error> {
        Patch::parse(patch)?.apply(to)
    }

    fn assert_invalid(patch: &Value, to: Value) {
        assert!(matches!(apply(patch, to), Err(Error::PatchInvalid { .. })), "{patch}");
    }

    #[test]
    fn set_makes_the_objects_on_its_way_and_takes_array_positions() {
        assert_eq!(
            apply(&json!({"set": {"a.b.c": 1}}), json!({})).unwrap(),
            json!({"a": {"b": {"c": 1}}})
        );
        assert_eq!(
            apply(&json!({"set": {"a.1": 9}}), json!({"a": [1, 2]})).unwrap(),
            json!({"a": [1, 9]})
        );
        assert_invalid(&json!({"set": {"a.2": 9}}), json!({"a": [1, 2]}));
        assert_invalid(&json!({"set": {"a.b": 9}}), json!({"a": 5}));
    }

    #[test]
    fn unset_removes_fields_and_empties_elements_and_leaves_absent_ones() {
        let patch = json!({"unset": ["a.b", "l.0", "x.y.z", "l.9"]});
        let after = apply(&patch, json!({"a": {"b": 1, "c": 2}, "l": [1, 2]})).unwrap();
        assert_eq!(after, json!({"a": {"c": 2}, "l": [null, 2]}));
    }

    #[test]
    fn inc_is_exact_and_refuses_what_no_number_holds() {
        let big = 9_007_199_254_740_993_i64;
        assert_eq!(
            apply(&json!({"inc": {"n": 1}}), json!({"n": big})).unwrap(),
            json!({"n": big + 1})
        );
        assert_eq!(apply(&json!({"inc": {"n": -3}}), json!({})).unwrap(), json!({"n": -3}));
        assert_eq!(apply(&json!({"inc": {"n": 0.5}}), json!({"n": 1})).unwrap(), json!({"n": 1.5}));
        assert_invalid(&json!({"inc": {"n": 1}}), json!({"n": u64::MAX}));
        assert_invalid(&json!({"inc": {"n": 1e308}}), json!({"n": 1.7e308}));
        assert_invalid(&json!({"inc": {"n": 1}}), json!({"n": "1"}));
        assert_invalid(&json!({"inc": {"n": "1"}}), json!({"n": 1}));
    }

    #[test]
    fn merge_follows_rfc_7396() {
        let target = json!({"a": "b", "c": {"d": "e", "f": "g"}});
        let patch =
            json!({"merge": {"a": "z", "c": {"f": null}, "n": {"deep": {"x": null, "y": 1}}}});
        let expected = json!({"a": "z", "c": {"d": "e"}, "n": {"deep": {"y": 1}}});
        assert_eq!(apply(&patch, target).unwrap(), expected);
    }

    #[test]
    fn append_and_pull_change_arrays_only() {
        let patch = json!({"append": {"l": [3, 1], "new": 7}, "pull": {"l": 1, "absent": 1}});
        assert_eq!(apply(&patch, json!({"l": [1, 2]})).unwrap(), json!({"l": [2, 3], "new": [7]}));
        assert_invalid(&json!({"append": {"l": 1}}), json!({"l": "text"}));
    }

    #[test]
    fn what_is_no_patch_is_refused_with_its_place() {
        for patch in [
            json!(1),
            json!({"sett": {}}),
            json!({"set": []}),
            json!({"unset": "a"}),
            json!({"unset": [1]}),
        ] {
            assert_invalid(&patch, json!({}));
        }
        assert!(matches!(
            apply(&json!({"set": {"a..b": 1}}), json!({})),
            Err(Error::PathInvalid { .. })
        ));
    }
}

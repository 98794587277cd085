//! Reads a filter from JSON.

use serde_json::{Map, Value};

use super::condition::{Comparison, Node, Subject, Test};
use super::pattern::{Options, Pattern};
use super::place::{Depth, Place};
use super::{FILTER_CONDITIONS_MAX, FILTER_LIST_MAX, FILTER_PATTERNS_MAX};
use crate::Error;
use crate::value::{Class, Path, compare, equal};

pub(super) fn filter(filter: &Value) -> Result<Node, Error> {
    Parser::default().filter(filter, &Place::TOP, Depth::TOP)
}

/// Counts what a filter may have only so many of.
#[derive(Default)]
struct Parser {
    conditions: usize,
    patterns: usize,
}

impl Parser {
    /// Fields with their conditions, and the operators that combine filters.
    fn filter(&mut self, filter: &Value, place: &Place<'_>, depth: Depth) -> Result<Node, Error> {
        let Value::Object(entries) = filter else {
            return Err(place.invalid("a filter has to be an object"));
        };
        let depth = depth.below(place)?;
        let mut nodes = Vec::with_capacity(entries.len());
        for (name, operand) in entries {
            nodes.push(self.entry(name, operand, &place.name(name), depth)?);
        }
        Ok(Node::All(nodes))
    }

    fn entry(
        &mut self,
        name: &str,
        operand: &Value,
        place: &Place<'_>,
        depth: Depth,
    ) -> Result<Node, Error> {
        match name {
            "$and" => Ok(Node::All(self.filters(operand, place, depth)?)),
            "$or" => Ok(Node::Any(self.filters(operand, place, depth)?)),
            "$nor" => Ok(Node::Any(self.filters(operand, place, depth)?).negated()),
            _ if FIELD_OPERATORS.contains(&name) => {
                Err(place
                    .invalid(format!("{name} needs a field: {{\"field\": {{\"{name}\": ...}}}}")))
            }
            _ if name.starts_with('$') => Err(unknown(place)),
            _ => self.field(name, operand, place, depth),
        }
    }

    fn filters(
        &mut self,
        list: &Value,
        place: &Place<'_>,
        depth: Depth,
    ) -> Result<Vec<Node>, Error> {
        self.count(place)?;
        let filters = list.as_array().filter(|filters| !filters.is_empty());
        let filters = filters.ok_or_else(|| place.expected("an array of at least one filter"))?;
        let each = filters.iter().enumerate();
        each.map(|(at, filter)| self.filter(filter, &place.position(at), depth)).collect()
    }

    fn field(
        &mut self,
        name: &str,
        operand: &Value,
        place: &Place<'_>,
        depth: Depth,
    ) -> Result<Node, Error> {
        let path = Path::parse(name).map_err(|cause| place.invalid(cause.to_string()))?;
        let subject = Subject::Field(path);
        match operand {
            Value::Object(operators) if has_operator(operators) => {
                self.conditions(&subject, operators, place, depth)
            }
            _ => self.test(&subject, Test::Equals(operand.clone()), place),
        }
    }

    /// All operators of one field or element.
    fn conditions(
        &mut self,
        subject: &Subject,
        operators: &Map<String, Value>,
        place: &Place<'_>,
        depth: Depth,
    ) -> Result<Node, Error> {
        let depth = depth.below(place)?;
        let mut nodes = Vec::with_capacity(operators.len());
        for (name, operand) in operators {
            let place = place.name(name);
            match name.as_str() {
                "$regex" => {
                    let test = self.regex(operand, operators.get("$options"), &place)?;
                    nodes.push(self.test(subject, test, &place)?);
                }
                "$options" if operators.contains_key("$regex") => {}
                "$options" => return Err(place.invalid("$options stands beside a $regex")),
                _ => nodes.push(self.operator(subject, name, operand, &place, depth)?),
            }
        }
        Ok(Node::All(nodes))
    }

    fn operator(
        &mut self,
        subject: &Subject,
        name: &str,
        operand: &Value,
        place: &Place<'_>,
        depth: Depth,
    ) -> Result<Node, Error> {
        let compares = |comparison| Test::Compares(comparison, operand.clone());
        let test = match name {
            "$not" => return self.not(subject, operand, place, depth),
            "$all" => return self.all(subject, operand, place, depth),
            "$exists" => return self.exists(subject, operand, place),
            "$elemMatch" => self.element(operand, place, depth)?,
            "$eq" | "$ne" => Test::Equals(operand.clone()),
            "$in" | "$nin" => Test::IsIn(in_order(list(operand, place)?)),
            "$gt" => compares(Comparison::Greater),
            "$gte" => compares(Comparison::GreaterOrEqual),
            "$lt" => compares(Comparison::Less),
            "$lte" => compares(Comparison::LessOrEqual),
            "$type" => Test::IsOf(types(operand, place)?),
            "$mod" => modulo(operand, place)?,
            "$size" => Test::HasLength(size(operand, place)?),
            _ => return Err(misplaced(name, place)),
        };
        let node = self.test(subject, test, place)?;
        Ok(if matches!(name, "$ne" | "$nin") { node.negated() } else { node })
    }

    fn not(
        &mut self,
        subject: &Subject,
        operand: &Value,
        place: &Place<'_>,
        depth: Depth,
    ) -> Result<Node, Error> {
        self.count(place)?;
        match operand {
            Value::Object(operators) if has_operator(operators) => {
                Ok(self.conditions(subject, operators, place, depth)?.negated())
            }
            _ => Err(place.expected("an object of operators; $ne negates a value")),
        }
    }

    fn exists(
        &mut self,
        subject: &Subject,
        operand: &Value,
        place: &Place<'_>,
    ) -> Result<Node, Error> {
        let wanted = operand.as_bool().ok_or_else(|| place.expected("true or false"))?;
        let node = self.test(subject, Test::Exists, place)?;
        Ok(if wanted { node } else { node.negated() })
    }

    /// Every entry is a condition of its own. No entry, no match.
    fn all(
        &mut self,
        subject: &Subject,
        operand: &Value,
        place: &Place<'_>,
        depth: Depth,
    ) -> Result<Node, Error> {
        let entries = array(operand, place)?;
        if entries.is_empty() {
            return Ok(Node::Any(Vec::new()));
        }
        let mut nodes = Vec::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            let place = place.position(at);
            let test = match element_match(entry) {
                Some(operand) => self.element(operand, &place.name("$elemMatch"), depth)?,
                None => Test::Equals(plain(entry, &place)?.clone()),
            };
            nodes.push(self.test(subject, test, &place)?);
        }
        Ok(Node::All(nodes))
    }

    /// Operators ask the element itself, whatever it is; fields are asked of elements that are
    /// objects.
    fn element(&mut self, operand: &Value, place: &Place<'_>, depth: Depth) -> Result<Test, Error> {
        let Value::Object(entries) = operand else {
            return Err(place.expected("an object"));
        };
        let node = if entries.keys().any(|name| FIELD_OPERATORS.contains(&name.as_str())) {
            self.conditions(&Subject::Element, entries, place, depth)?
        } else {
            let is_object = Node::Test(Subject::Element, Test::IsOf(vec![Class::Object]));
            Node::All(vec![is_object, self.filter(operand, place, depth)?])
        };
        Ok(Test::HasElement(Box::new(node)))
    }

    fn regex(
        &mut self,
        operand: &Value,
        letters: Option<&Value>,
        place: &Place<'_>,
    ) -> Result<Test, Error> {
        self.patterns += 1;
        if self.patterns > FILTER_PATTERNS_MAX {
            let why = format!("a filter has at most {FILTER_PATTERNS_MAX} regular expressions");
            return Err(place.invalid(why));
        }
        let text = operand.as_str().ok_or_else(|| place.expected("a string"))?;
        let letters = letters.map_or(Some(""), Value::as_str);
        let letters = letters.ok_or_else(|| place.invalid("$options has to be a string"))?;
        Pattern::new(text, Options::parse(letters, place)?, place).map(Test::Contains)
    }

    fn test(&mut self, subject: &Subject, test: Test, place: &Place<'_>) -> Result<Node, Error> {
        self.count(place)?;
        Ok(Node::Test(subject.clone(), test))
    }

    fn count(&mut self, place: &Place<'_>) -> Result<(), Error> {
        self.conditions += 1;
        if self.conditions > FILTER_CONDITIONS_MAX {
            let why = format!("a filter has at most {FILTER_CONDITIONS_MAX} conditions");
            return Err(place.invalid(why));
        }
        Ok(())
    }
}

/// Whether an object is conditions, not a value to be equal to.
fn has_operator(entries: &Map<String, Value>) -> bool {
    entries.keys().any(|name| name.starts_with('$'))
}

fn array<'a>(operand: &'a Value, place: &Place<'_>) -> Result<&'a [Value], Error> {
    let entries = operand.as_array().ok_or_else(|| place.expected("an array"))?;
    if entries.len() > FILTER_LIST_MAX {
        return Err(place.invalid(format!("a list has at most {FILTER_LIST_MAX} entries")));
    }
    Ok(entries)
}

/// A list of values.
fn list<'a>(operand: &'a Value, place: &Place<'_>) -> Result<&'a [Value], Error> {
    let entries = array(operand, place)?;
    for (at, entry) in entries.iter().enumerate() {
        plain(entry, &place.position(at))?;
    }
    Ok(entries)
}

/// A value in a list, which must not look like conditions.
fn plain<'a>(entry: &'a Value, place: &Place<'_>) -> Result<&'a Value, Error> {
    match entry {
        Value::Object(entries) if has_operator(entries) => {
            Err(place.invalid("operators cannot stand in this list"))
        }
        _ => Ok(entry),
    }
}

/// The operand of an entry of `$all` that is a `$elemMatch`.
fn element_match(entry: &Value) -> Option<&Value> {
    let entries = entry.as_object().filter(|entries| entries.len() == 1)?;
    entries.get("$elemMatch")
}

fn in_order(values: &[Value]) -> Vec<Value> {
    let mut values = values.to_vec();
    values.sort_by(compare);
    values.dedup_by(|a, b| equal(a, b));
    values
}

fn types(operand: &Value, place: &Place<'_>) -> Result<Vec<Class>, Error> {
    match operand {
        Value::Array(names) if !names.is_empty() => names.iter().map(|n| class(n, place)).collect(),
        _ => Ok(vec![class(operand, place)?]),
    }
}

fn class(name: &Value, place: &Place<'_>) -> Result<Class, Error> {
    match name.as_str() {
        Some("array") => Ok(Class::Array),
        Some("bool") => Ok(Class::Boolean),
        Some("null") => Ok(Class::Null),
        Some("number") => Ok(Class::Number),
        Some("object") => Ok(Class::Object),
        Some("string") => Ok(Class::String),
        _ => Err(place.expected("one or more of array, bool, null, number, object and string")),
    }
}

fn modulo(operand: &Value, place: &Place<'_>) -> Result<Test, Error> {
    let expected = || place.expected("[divisor, remainder], whole numbers, the divisor not 0");
    let Some([divisor, remainder]) = operand.as_array().map(Vec::as_slice) else {
        return Err(expected());
    };
    let divisor = whole(divisor).filter(|divisor| *divisor != 0).ok_or_else(expected)?;
    Ok(Test::Leaves { divisor, remainder: whole(remainder).ok_or_else(expected)? })
}

fn size(operand: &Value, place: &Place<'_>) -> Result<u64, Error> {
    let length = whole(operand).and_then(|length| u64::try_from(length).ok());
    length.ok_or_else(|| place.expected("a whole number that is not negative"))
}

/// A number that is an integer, however it is written.
fn whole(value: &Value) -> Option<i64> {
    let from_float = |float: f64| {
        // Every float in this range without a fraction is an i64.
        let is_whole = float.fract() == 0.0 && float.abs() < (1_u64 << 63) as f64;
        is_whole.then_some(float as i64)
    };
    value.as_i64().or_else(|| value.as_f64().and_then(from_float))
}

/// An operator that is unknown, or one that has no place among the conditions of a field.
fn misplaced(name: &str, place: &Place<'_>) -> Error {
    match name {
        "$and" | "$or" | "$nor" => {
            place.invalid(format!("{name} combines filters, not conditions"))
        }
        _ if name.starts_with('$') => unknown(place),
        _ => place.invalid("fields and operators are mixed here"),
    }
}

fn unknown(place: &Place<'_>) -> Error {
    let known = FIELD_OPERATORS.join(" ");
    place.invalid(format!("there is no such operator; there are {known} $and $or $nor"))
}

const FIELD_OPERATORS: [&str; 17] = [
    "$eq",
    "$ne",
    "$gt",
    "$gte",
    "$lt",
    "$lte",
    "$in",
    "$nin",
    "$exists",
    "$type",
    "$regex",
    "$options",
    "$mod",
    "$size",
    "$all",
    "$elemMatch",
    "$not",
];

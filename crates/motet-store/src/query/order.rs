//! The order of a query's documents.

use core::cmp::Ordering;

use serde_json::Value;

use crate::Error;
use crate::value::{Direction, Path, compare};

/// Sort fields, in order. None means any stable order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    pub(crate) fields: Vec<(Path, Direction)>,
}

impl Order {
    pub(super) fn parse(sort: &[(String, bool)]) -> Result<Self, Error> {
        let fields = sort.iter().map(|(path, descending)| {
            let direction = if *descending { Direction::Descending } else { Direction::Ascending };
            Path::parse(path).map(|path| (path, direction))
        });
        Ok(Self { fields: fields.collect::<Result<_, _>>()? })
    }

    /// Which way documents with the same sort values go by their keys.
    pub(crate) fn of_keys(&self) -> Direction {
        self.fields.last().map_or(Direction::Ascending, |(_, direction)| *direction)
    }

    /// Where a document stands.
    pub(crate) fn place(&self, key: &str, value: &Value) -> Place {
        let values = self.fields.iter().map(|(path, direction)| {
            let values = path.values(value).into_iter().map(|value| value.unwrap_or(&Value::Null));
            let value = match direction {
                Direction::Ascending => values.min_by(|one, other| compare(one, other)),
                Direction::Descending => values.max_by(|one, other| compare(one, other)),
            };
            value.cloned().unwrap_or(Value::Null)
        });
        Place { values: values.collect(), key: key.to_owned() }
    }

    pub(crate) fn compare(&self, one: &Place, other: &Place) -> Ordering {
        let values = one.values.iter().zip(&other.values).zip(&self.fields);
        let mut compared =
            values.map(|((one, other), (_, direction))| directed(compare(one, other), *direction));
        compared
            .find(|ordering| ordering.is_ne())
            .unwrap_or_else(|| directed(one.key.cmp(&other.key), self.of_keys()))
    }
}

/// Where a document stands in an order: its sort values, then its key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) values: Vec<Value>,
    pub(crate) key: String,
}

impl Place {
    /// Bytes of memory that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.key.len() + self.values.iter().map(bytes_of).sum::<usize>()
    }
}

/// Bytes of memory that a value takes, about.
fn bytes_of(value: &Value) -> usize {
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields.iter().map(|(name, one)| name.len() + bytes_of(one)).sum(),
    };
    size_of::<Value>() + inner
}

const fn directed(ordering: Ordering, direction: Direction) -> Ordering {
    match direction {
        Direction::Ascending => ordering,
        Direction::Descending => ordering.reverse(),
    }
}

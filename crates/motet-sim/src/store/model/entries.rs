//! The entries that a document must have in an index.

use std::collections::BTreeSet;

use motet_store::value::{Direction, encode};
use serde_json::{Value, json};

use super::body::{Body, KEYS, Link, key_text, unique_text};
use super::rules::Shape;

/// The keys of a document's entries in the index with this number.
pub(crate) fn entries(number: u32, shape: Shape, key: u8, body: &Body) -> BTreeSet<Vec<u8>> {
    if !shape.holds(body) {
        return BTreeSet::new();
    }
    let fields = fields(shape, body);
    let mut tuples = vec![number.to_be_bytes().to_vec()];
    for (values, direction) in &fields {
        let longer = tuples.iter().flat_map(|tuple| {
            values.iter().map(move |value| {
                let mut tuple = tuple.clone();
                let _encoded = encode(&mut tuple, Some(value), *direction);
                tuple
            })
        });
        tuples = longer.collect();
    }
    let direction = fields.last().map_or(Direction::Ascending, |(_, direction)| *direction);
    let mut end = Vec::new();
    match direction {
        Direction::Ascending => end.extend_from_slice(KEYS[usize::from(key)].as_bytes()),
        Direction::Descending => {
            for byte in KEYS[usize::from(key)].bytes() {
                if byte < 2 {
                    end.push(!1);
                    end.push(!(byte + 1));
                } else {
                    end.push(!byte);
                }
            }
            end.push(!0);
        }
    }
    tuples.into_iter().map(|tuple| [tuple, end.clone()].concat()).collect()
}

/// The values of each field of an index, with their direction.
fn fields(shape: Shape, body: &Body) -> Vec<(Vec<Value>, Direction)> {
    let up = Direction::Ascending;
    let n = || (vec![json!(body.n)], up);
    let u = || vec![body.u.map_or(Value::Null, |u| json!(unique_text(u)))];
    let tags = || (with_elements(body.tags_json()), up);
    match shape {
        Shape::N | Shape::NOfOpen => vec![n()],
        Shape::UniqueU | Shape::UniqueUOfOpen => vec![(u(), up)],
        Shape::Tags => vec![tags()],
        Shape::NThenUDescending => vec![n(), (u(), Direction::Descending)],
        Shape::TagsThenN => vec![tags(), n()],
        Shape::To => match body.to {
            Link::To(key) => vec![(vec![json!(key_text(key))], up)],
            Link::Absent | Link::Null => vec![(vec![Value::Null], up)],
        },
        Shape::Refs => {
            let refs = body.refs.as_ref();
            let texts = refs.map(|refs| refs.iter().map(|key| json!(key_text(*key))).collect());
            vec![(with_elements(texts), up)]
        }
    }
}

/// An array counts with itself and with each element.
fn with_elements(array: Option<Value>) -> Vec<Value> {
    let Some(array) = array else { return vec![Value::Null] };
    let elements = array.as_array().cloned().unwrap_or_default();
    core::iter::once(array).chain(elements).collect()
}

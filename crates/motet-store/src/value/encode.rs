//! Index keys: bytes that sort as values do.
//!
//! Each value starts with a byte of its class; strings and containers end with a zero byte that is
//! smaller than all that may stand in its place. No encoding is the start of another one, so that
//! encodings can be put one behind the other and still sort as tuples.

use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

use super::Class;
use super::number::{Exact, Sign};
use super::order::sorted_fields;

/// The most bytes that a value takes in a key.
pub const VALUE_BYTES_MAX: usize = 150;
/// The most bytes of a value that stands in a key whole, and the bytes that are kept of a longer
/// one, in front of its hash.
pub const VALUE_PREFIX_BYTES: usize = VALUE_BYTES_MAX - HASH_BYTES;

/// Whether an encoded value stands in the key whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Encoded {
    /// It does: the order of the bytes is the order of the values.
    Exact,
    /// It was too long. [`VALUE_PREFIX_BYTES`] of it are there, then 16 bytes of the SHA-256 of all
    /// of it. It sorts right among values that differ from it in the prefix, and an equal value has
    /// the same bytes; values that share the prefix sort by their hashes. What is found by such
    /// bytes must be compared again.
    Shortened,
}

/// Which way a part of a key sorts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Small values first.
    #[default]
    Ascending,
    /// Great values first: every byte is inverted.
    Descending,
}

/// Appends a value to a key. An absent value has the bytes of null.
///
/// The bytes of two values compare as [`compare`](super::compare) does, or the other way round when
/// they are [descending](Direction::Descending); the bytes of two tuples of values compare as the
/// tuples do.
///
/// ```
/// use motet_store::value::{Direction, encode};
/// use serde_json::json;
///
/// let key = |city: &str, age: u32| {
///     let mut key = Vec::new();
///     let _ = encode(&mut key, Some(&json!(city)), Direction::Ascending);
///     let _ = encode(&mut key, Some(&json!(age)), Direction::Descending);
///     key
/// };
/// assert!(key("Bern", 7) < key("Bern", 5));
/// assert!(key("Bern", 5) < key("Berne", 9));
/// ```
pub fn encode(key: &mut Vec<u8>, value: Option<&Value>, direction: Direction) -> Encoded {
    let start = key.len();
    append(key, value.unwrap_or(&Value::Null));
    let encoded = shorten(key, start);
    if direction == Direction::Descending {
        invert(&mut key[start..]);
    }
    encoded
}

/// The first byte of the class's values and the first byte past them, ascending.
#[must_use]
pub const fn class_bytes(class: Class) -> (u8, u8) {
    let first = match class {
        Class::Null => NULL,
        Class::Number => NEGATIVE,
        Class::String => STRING,
        Class::Object => OBJECT,
        Class::Array => ARRAY,
        Class::Boolean => FALSE,
    };
    (first, first + CLASS_STEP)
}

/// The smallest key that is greater than all that start with this one; none if there is none.
///
/// ```
/// use motet_store::value::successor;
///
/// assert_eq!(successor(b"ab\xff"), Some(b"ac".to_vec()));
/// assert_eq!(successor(b"\xff"), None);
/// ```
#[must_use]
pub fn successor(key: &[u8]) -> Option<Vec<u8>> {
    let last = key.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = key[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

fn append(key: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => key.push(NULL),
        Value::Bool(false) => key.push(FALSE),
        Value::Bool(true) => key.push(TRUE),
        Value::Number(number) => append_number(key, number),
        Value::String(text) => {
            key.push(STRING);
            append_text(key, text);
        }
        Value::Object(fields) => append_object(key, fields),
        Value::Array(elements) => {
            key.push(ARRAY);
            elements.iter().for_each(|element| append(key, element));
            key.push(END);
        }
    }
}

/// The sign, two bytes of exponent, then the mantissa. What is below zero has its magnitude
/// inverted.
fn append_number(key: &mut Vec<u8>, number: &Number) {
    let exact = Exact::new(number);
    match exact.sign {
        Sign::Zero => key.push(ZERO),
        Sign::Positive => {
            key.push(POSITIVE);
            append_magnitude(key, exact);
        }
        Sign::Negative => {
            key.push(NEGATIVE);
            let start = key.len();
            append_magnitude(key, exact);
            invert(&mut key[start..]);
        }
    }
}

/// Seven bits of the mantissa to a byte, the lowest bit of which says whether more bits follow that
/// are not all zero: a number of few bits takes few bytes. The highest bit is always set and left
/// out.
fn append_magnitude(key: &mut Vec<u8>, exact: Exact) {
    let biased = exact.exponent + EXPONENT_BIAS;
    key.extend_from_slice(&biased.to_be_bytes());
    let mut left = exact.mantissa << 1;
    loop {
        let seven = (left >> 57) as u8;
        left <<= 7;
        key.push(seven << 1 | u8::from(left != 0));
        if left == 0 {
            return;
        }
    }
}

fn append_text(key: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            END | ESCAPE => key.extend_from_slice(&[ESCAPE, byte + 1]),
            _ => key.push(byte),
        }
    }
    key.push(END);
}

fn append_object(key: &mut Vec<u8>, fields: &Map<String, Value>) {
    key.push(OBJECT);
    for (name, value) in sorted_fields(fields) {
        key.push(FIELD);
        append_text(key, name);
        append(key, value);
    }
    key.push(END);
}

/// Cuts what is too long. A value that stays whole is never longer than the prefix of one that does
/// not, so that the hash cannot make one look like the start of the other.
fn shorten(key: &mut Vec<u8>, start: usize) -> Encoded {
    if key.len() - start <= VALUE_PREFIX_BYTES {
        return Encoded::Exact;
    }
    let hash = Sha256::digest(&key[start..]);
    key.truncate(start + VALUE_PREFIX_BYTES);
    key.extend_from_slice(&hash[..HASH_BYTES]);
    Encoded::Shortened
}

fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}

const HASH_BYTES: usize = 16;
/// Makes the exponent of the smallest float, -1,074, positive.
const EXPONENT_BIAS: i16 = 1_100;

const END: u8 = 0x00;
/// In front of a zero or a one in a text, which is then one greater.
const ESCAPE: u8 = 0x01;
const FIELD: u8 = 0x02;
const CLASS_STEP: u8 = 0x10;
const NULL: u8 = 0x10;
const NEGATIVE: u8 = 0x20;
const ZERO: u8 = 0x21;
const POSITIVE: u8 = 0x22;
const STRING: u8 = 0x30;
const OBJECT: u8 = 0x40;
const ARRAY: u8 = 0x50;
const FALSE: u8 = 0x60;
const TRUE: u8 = 0x61;

#[cfg(test)]
mod tests;

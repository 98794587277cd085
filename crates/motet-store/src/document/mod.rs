//! Documents: what they are, how they lie in the engine, and what can be done to them.

mod patch;
mod record;
mod write;

use serde_json::Value;

pub use patch::Patch;
pub(crate) use record::Record;
pub use write::Write;
pub(crate) use write::{Expiry, Kind};

use crate::{Clock, Error};

/// A document as it was when it was read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Document {
    /// Its key, unique within its type.
    pub key: String,
    /// The clock of its last change.
    pub version: Clock,
    /// From when on it counts as absent, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// Its value.
    pub value: Value,
}

/// A document whose value is JSON text as it lies in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawDocument {
    /// The clock of its last change.
    pub version: Clock,
    /// From when on it counts as absent, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// Its value as JSON text.
    pub json: Vec<u8>,
}

impl Document {
    /// A document that is not committed yet.
    pub(crate) fn unversioned(key: &str, value: &Value) -> Self {
        Self { key: key.into(), version: Clock::ZERO, expires_ms: None, value: value.clone() }
    }

    pub(crate) fn from_record(key: &str, record: &Record<'_>) -> Result<Self, Error> {
        let value = serde_json::from_slice(record.json).map_err(|error| Error::Damaged {
            what: format!("document {key:?}"),
            why: error.to_string(),
        })?;
        Ok(Self { key: key.into(), version: record.version, expires_ms: record.expires_ms, value })
    }
}

/// Checks a key of a document.
pub(crate) fn check_key(key: &str) -> Result<(), Error> {
    match key.len() {
        1..=DOCUMENT_KEY_BYTES_MAX => Ok(()),
        bytes => Err(Error::KeyInvalid { bytes, max: DOCUMENT_KEY_BYTES_MAX }),
    }
}

/// Checks that a value can be read again: a parser of JSON goes only so deep.
pub(crate) fn check_depth(value: &Value) -> Result<(), Error> {
    if nests_within(value, VALUE_DEPTH_MAX) {
        return Ok(());
    }
    Err(Error::ValueTooDeep { max: VALUE_DEPTH_MAX })
}

fn nests_within(value: &Value, levels: usize) -> bool {
    let Some(inner) = levels.checked_sub(1) else { return !value.is_array() && !value.is_object() };
    match value {
        Value::Array(elements) => elements.iter().all(|value| nests_within(value, inner)),
        Value::Object(fields) => fields.values().all(|value| nests_within(value, inner)),
        _ => true,
    }
}

/// Checks a name of a type or environment. Names that start with `~` are the store's own.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let starts = name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic());
    let fits = name.len() <= NAME_BYTES_MAX
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if starts && fits { Ok(()) } else { Err(Error::NameInvalid { name: name.into() }) }
}

/// Whether a type of this name is the store's own: its documents are in no log.
pub(crate) fn is_own_name(type_name: &str) -> bool {
    type_name.starts_with('~')
}

/// The longest key of a document, in bytes of UTF-8.
pub const DOCUMENT_KEY_BYTES_MAX: usize = 480;

/// How deep the arrays and objects of a value may nest. Parsers take 128 levels; what is around a
/// value when it travels needs some of them.
pub const VALUE_DEPTH_MAX: usize = 100;

/// The longest name of a type or environment, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_to_480_bytes() {
        assert!(check_key("a").is_ok() && check_key(&"k".repeat(480)).is_ok());
        assert!(matches!(check_key(""), Err(Error::KeyInvalid { bytes: 0, .. })));
        assert!(matches!(check_key(&"k".repeat(481)), Err(Error::KeyInvalid { bytes: 481, .. })));
        assert!(check_key(&"\u{e4}".repeat(241)).is_err(), "bytes count, not characters");
    }

    #[test]
    fn a_value_nests_up_to_100_levels() {
        let nested = |levels| (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        assert!(check_depth(&nested(0)).is_ok() && check_depth(&nested(100)).is_ok());
        assert!(matches!(check_depth(&nested(101)), Err(Error::ValueTooDeep { max: 100 })));
    }

    #[test]
    fn a_name_starts_with_a_letter_and_fits_into_a_path() {
        for good in ["Order", "a", "a-b_c.d9"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let long = "n".repeat(65);
        for bad in ["", "~jobs", "9a", "a/b", "..", "a b", "\u{e4}", long.as_str()] {
            assert!(matches!(check_name(bad), Err(Error::NameInvalid { .. })), "{bad}");
        }
    }
}

//! The documents that all systems store.

use serde_json::{Value, json};

/// A document of about 200 bytes whose key and indexed values lie anywhere among the others.
pub(crate) struct Sample {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) city: String,
    pub(crate) total: u64,
}

impl Sample {
    pub(crate) fn new(number: u64) -> Self {
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let city = format!("city-{:04}", (spread >> 20) % 5_000);
        let total = (spread >> 12) % 300_000;
        let value = json!({
            "city": city,
            "total": total,
            "open": number.is_multiple_of(3),
            "note": "a text of a length that a short comment has, so that a document is as long as one",
            "tags": ["first", "second"],
            "at": 1_700_000_000_000_u64 + number,
        });
        Self { key: format!("o-{spread:016x}"), value, city, total }
    }

    pub(crate) fn json(&self) -> Vec<u8> {
        self.value.to_string().into_bytes()
    }
}

//! Where a page ended.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::order::Place;
use crate::Error;

/// The place of the last document of a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Cursor {
    /// In a sorted query: its sort values and its key, whichever way the next page is found.
    Sorted { values: Vec<Value>, key: String },
    /// In one without a sort: its entry in an index behind the index's number, or its key in
    /// `Documents`.
    Found { index: Option<String>, at: Vec<u8> },
}

impl Cursor {
    pub(super) fn sorted(place: Place) -> Self {
        Self::Sorted { values: place.values, key: place.key }
    }

    pub(super) fn to_text(&self) -> String {
        let json = serde_json::to_vec(self).expect("values, texts and bytes can be written");
        URL_SAFE_NO_PAD.encode(json)
    }

    pub(super) fn from_text(text: &str) -> Result<Self, Error> {
        let invalid = Error::CursorInvalid { why: "it is no cursor" };
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid.clone())?;
        serde_json::from_slice(&json).map_err(|_| invalid)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_anything_else_is_refused() {
        for cursor in [
            Cursor::Sorted { values: vec![json!(1), json!(null)], key: "k".into() },
            Cursor::Found { index: Some("i".into()), at: vec![0, 255] },
        ] {
            assert_eq!(Cursor::from_text(&cursor.to_text()).unwrap(), cursor);
        }
        for text in ["", "!", "e30", "bnVsbA"] {
            assert!(matches!(Cursor::from_text(text), Err(Error::CursorInvalid { .. })), "{text}");
        }
    }
}

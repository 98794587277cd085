//! A document as it lies in the engine.
//!
//! ```text
//! 0        flags: bit 0 = it expires
//! 1..9     version, big-endian
//! 9..17    when it expires, milliseconds since 1970, big-endian; only with bit 0
//! rest     the value as JSON text
//! ```
//!
//! The text is kept as it is, so that a value can be handed on without being parsed.

use core::fmt;

use crate::{Clock, Error};

/// The stored form, borrowed from the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) version: Clock,
    /// Milliseconds since 1970 from which on the document counts as absent.
    pub(crate) expires_ms: Option<u64>,
    pub(crate) json: &'a [u8],
}

impl<'a> Record<'a> {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(17 + self.json.len());
        bytes.push(if self.expires_ms.is_some() { EXPIRES } else { 0 });
        bytes.extend_from_slice(&self.version.to_bytes());
        if let Some(expires_ms) = self.expires_ms {
            bytes.extend_from_slice(&expires_ms.to_be_bytes());
        }
        bytes.extend_from_slice(self.json);
        bytes
    }

    /// The record that lies there; `what` names the document to people.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it is of a format that this build does not know.
    pub(crate) fn parse(bytes: &'a [u8], what: fmt::Arguments<'_>) -> Result<Self, Error> {
        Self::from_bytes(bytes).ok_or_else(|| Error::Damaged {
            what: what.to_string(),
            why: "its record has another format".into(),
        })
    }

    /// `None` if the bytes are no record of a format that this build knows.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (flags, rest) = bytes.split_first()?;
        let (version, rest) = rest.split_first_chunk::<8>()?;
        let version = Clock::from_bytes(*version);
        match *flags {
            0 => Some(Self { version, expires_ms: None, json: rest }),
            EXPIRES => {
                let (expires_ms, json) = rest.split_first_chunk::<8>()?;
                Some(Self { version, expires_ms: Some(u64::from_be_bytes(*expires_ms)), json })
            }
            _ => None,
        }
    }

    /// Whether it counts as there at this time.
    pub(crate) fn is_live(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms)
    }
}

const EXPIRES: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_with_and_without_an_expiry() {
        for expires_ms in [None, Some(1_700_000_000_000)] {
            let record = Record { version: Clock::new(9), expires_ms, json: b"{\"a\":1}" };
            assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
        }
    }

    #[test]
    fn what_is_cut_short_or_of_another_format_is_none() {
        let record = Record { version: Clock::new(9), expires_ms: Some(5), json: b"" };
        let bytes = record.to_bytes();
        for end in 0..bytes.len() {
            assert_eq!(Record::from_bytes(&bytes[..end]), None, "{end} bytes");
        }
        let mut later = bytes;
        later[0] = 0x80;
        assert_eq!(Record::from_bytes(&later), None);
    }

    #[test]
    fn a_document_is_absent_from_the_millisecond_in_which_it_expires() {
        let record = Record { version: Clock::new(1), expires_ms: Some(100), json: b"1" };
        assert!(record.is_live(99) && !record.is_live(100));
    }
}

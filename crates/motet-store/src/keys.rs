//! How keys are laid out in the engine's tables. `docs/design/store.md` shows the whole layout.

use crate::Clock;

/// A type's number, which stands in keys instead of its name. A name keeps its number for ever,
/// also when the type is dropped and used again, so that a cached number is never wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TypeId(pub(crate) u32);

/// `Documents`: the type's number, then the document's key.
pub(crate) fn document(type_id: TypeId, key: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + key.len());
    bytes.extend_from_slice(&type_id.0.to_be_bytes());
    bytes.extend_from_slice(key.as_bytes());
    bytes
}

/// Type and document key of a key of `Documents`, if it is one.
pub(crate) fn split_document(bytes: &[u8]) -> Option<(TypeId, &str)> {
    let (type_id, key) = bytes.split_first_chunk::<4>()?;
    Some((TypeId(u32::from_be_bytes(*type_id)), core::str::from_utf8(key).ok()?))
}

/// The first possible key after this one.
pub(crate) fn just_after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// `Log`: the clock.
pub(crate) const fn log(clock: Clock) -> [u8; 8] {
    clock.to_bytes()
}

/// `Index`: the reserved index of expiries, ordered by time: when, then the document's key.
pub(crate) fn expiry(expires_ms: u64, document: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(12 + document.len());
    bytes.extend_from_slice(&EXPIRY_INDEX.to_be_bytes());
    bytes.extend_from_slice(&expires_ms.to_be_bytes());
    bytes.extend_from_slice(document);
    bytes
}

/// When, and the key in `Documents`, of a key of the index of expiries.
pub(crate) fn split_expiry(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (index, rest) = bytes.split_first_chunk::<4>()?;
    let (expires_ms, document) = rest.split_first_chunk::<8>()?;
    (u32::from_be_bytes(*index) == EXPIRY_INDEX)
        .then_some((u64::from_be_bytes(*expires_ms), document))
}

/// Where the index of expiries begins.
pub(crate) const EXPIRY_START: [u8; 4] = EXPIRY_INDEX.to_be_bytes();

/// The first key after the index of expiries.
pub(crate) const EXPIRY_END: [u8; 4] = (EXPIRY_INDEX + 1).to_be_bytes();

/// The first number of an index; those below are the store's own.
pub(crate) const INDEX_FIRST: u32 = 16;

/// Documents by the time at which they expire.
const EXPIRY_INDEX: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_key_is_read_back() {
        let key = document(TypeId(7), "a/b");
        assert_eq!(split_document(&key), Some((TypeId(7), "a/b")));
        assert_eq!(split_document(&key[..3]), None);
        assert_eq!(split_document(&[0, 0, 0, 1, 0xff]), None, "not UTF-8");
    }

    #[test]
    fn expiries_sort_by_time() {
        let document = document(TypeId(1), "k");
        assert!(expiry(255, &document) < expiry(256, &document));
        assert_eq!(split_expiry(&expiry(256, &document)), Some((256, document.as_slice())));
    }
}

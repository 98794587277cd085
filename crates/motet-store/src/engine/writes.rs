//! What a decider wants written.

use super::Table;
use crate::Error;

/// Writes in the order in which they are applied: of two to one key the later one holds.
///
/// All keys and values lie in one buffer, so that a batch of thousands costs a handful of
/// allocations.
///
/// ```
/// use motet_store::engine::{Table, Writes};
///
/// let mut writes = Writes::default();
/// writes.put(Table::Documents, b"a", b"1");
/// writes.remove(Table::Documents, b"b");
/// let all: Vec<_> = writes.iter().collect();
/// assert_eq!(all[0], (Table::Documents, &b"a"[..], Some(&b"1"[..])));
/// assert_eq!(all[1], (Table::Documents, &b"b"[..], None));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Writes {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    table: Table,
    start: usize,
    key_end: usize,
    /// Where the value ends; `None` removes the key.
    value_end: Option<usize>,
}

impl Writes {
    /// Sets a key.
    pub fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        let (start, key_end) = self.push_key(key);
        self.bytes.extend_from_slice(value);
        self.entries.push(Entry { table, start, key_end, value_end: Some(self.bytes.len()) });
    }

    /// Removes a key; that it is absent already is no error.
    pub fn remove(&mut self, table: Table, key: &[u8]) {
        let (start, key_end) = self.push_key(key);
        self.entries.push(Entry { table, start, key_end, value_end: None });
    }

    /// Table, key, and the value or `None` for a removal.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Table, &[u8], Option<&[u8]>)> {
        self.entries.iter().map(|entry| {
            let value = entry.value_end.map(|end| &self.bytes[entry.key_end..end]);
            (entry.table, &self.bytes[entry.start..entry.key_end], value)
        })
    }

    /// Bytes of all keys and values.
    #[must_use]
    pub const fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Number of writes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether every engine that takes keys and transactions up to this size can write these.
    pub(super) fn check(&self, key_bytes_max: usize, bytes_max: usize) -> Result<(), Error> {
        let bytes = self.bytes.len();
        if bytes > bytes_max {
            return Err(Error::TransactionTooLarge { bytes, max: bytes_max });
        }
        for entry in &self.entries {
            let bytes = entry.key_end - entry.start;
            if bytes == 0 || bytes > key_bytes_max {
                return Err(Error::KeyInvalid { bytes, max: key_bytes_max });
            }
        }
        Ok(())
    }

    fn push_key(&mut self, key: &[u8]) -> (usize, usize) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        (start, self.bytes.len())
    }
}

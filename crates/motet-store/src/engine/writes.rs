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

    /// Whether these remove something, and put only what goes along with a removal: the change in the
    /// log, and settings. Settings alone are taken too, for keeping less of the log is what a full
    /// store may need. Entries of indexes without a value, as expiries are, may move: as many go at
    /// least. An engine has room for all these beyond its size.
    pub(crate) fn makes_room(&self) -> bool {
        let (mut removed, mut moved, mut logs) = (0, 0, false);
        for (table, _, value) in self.iter() {
            match (table, value) {
                (_, None) => removed += 1,
                (Table::Log, Some(_)) => logs = true,
                (Table::Catalog, Some(_)) => {}
                (Table::Index, Some([])) => moved += 1,
                (Table::Documents | Table::Index, Some(_)) => return false,
            }
        }
        removed >= moved && (removed > 0 || !logs)
    }

    fn push_key(&mut self, key: &[u8]) -> (usize, usize) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        (start, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_removals_with_their_changes_in_the_log_and_moves_make_room() {
        let mut writes = Writes::default();
        writes.put(Table::Catalog, b"setting", b"1");
        assert!(writes.makes_room());
        writes.put(Table::Log, b"1", b"removed");
        assert!(!writes.makes_room());
        writes.remove(Table::Documents, b"k");
        assert!(writes.makes_room());
        writes.put(Table::Index, b"later", b"");
        assert!(writes.makes_room());
        writes.put(Table::Index, b"another", b"");
        assert!(!writes.makes_room(), "more come than go");
        writes.remove(Table::Index, b"sooner");
        assert!(writes.makes_room());
        writes.put(Table::Documents, b"l", b"");
        assert!(!writes.makes_room());
    }
}

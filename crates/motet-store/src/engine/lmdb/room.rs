//! Whether there is room for what a decider wants written, decided before anything is.

use super::{Core, TXN_BYTES_MAX};
use crate::Error;
use crate::engine::{KEY_BYTES_MAX, Table, Writes};

impl Core {
    /// Bytes that these writes take beyond the `used` ones, or why they are refused. Removals count
    /// nothing, for what they free is known only later.
    pub(super) fn admit(&self, writes: &Writes, used: u64) -> Result<u64, Error> {
        writes.check(KEY_BYTES_MAX, TXN_BYTES_MAX)?;
        let bytes = pages_bytes(writes, self.page_bytes);
        let max = self.options.max_bytes;
        if used.saturating_add(bytes) > max && !makes_room(writes) {
            return Err(Error::StoreFull { bytes: used, max });
        }
        Ok(bytes)
    }
}

/// Bytes that the puts take, as if no key was there before.
fn pages_bytes(writes: &Writes, page_bytes: u64) -> u64 {
    let put = writes.iter().filter_map(|(_, key, value)| Some((key.len() + value?.len()) as u64));
    put.map(|bytes| match bytes + ENTRY_BYTES {
        // What does not fit twice into a page gets pages of its own.
        bytes if bytes > page_bytes / 2 => bytes.next_multiple_of(page_bytes),
        bytes => bytes,
    })
    .sum()
}

/// Whether these writes remove something, and put only what goes along with a removal: the change
/// in the log, and settings. Settings alone are taken too, for keeping less of the log is what a
/// full store may need. There is always room for them, in the part of the map beyond the size.
fn makes_room(writes: &Writes) -> bool {
    let (mut removes, mut logs) = (false, false);
    for (table, _, value) in writes.iter() {
        match (table, value) {
            (_, None) => removes = true,
            (Table::Log, Some(_)) => logs = true,
            (Table::Catalog, Some(_)) => {}
            (Table::Documents | Table::Index, Some(_)) => return false,
        }
    }
    removes || !logs
}

/// Node header and slot of an entry in its page.
const ENTRY_BYTES: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_fills_half_a_page_takes_whole_pages() {
        let mut writes = Writes::default();
        writes.put(Table::Documents, b"k", &[0; 100]);
        assert_eq!(pages_bytes(&writes, 4_096), 101 + ENTRY_BYTES);
        writes.put(Table::Documents, b"k", &[0; 5_000]);
        assert_eq!(pages_bytes(&writes, 4_096), 101 + ENTRY_BYTES + 8_192);
    }

    #[test]
    fn settings_and_a_removal_with_its_change_in_the_log_make_room() {
        let mut writes = Writes::default();
        writes.put(Table::Catalog, b"setting", b"1");
        assert!(makes_room(&writes));
        writes.put(Table::Log, b"1", b"removed");
        assert!(!makes_room(&writes));
        writes.remove(Table::Documents, b"k");
        assert!(makes_room(&writes));
        writes.put(Table::Documents, b"l", b"");
        assert!(!makes_room(&writes));
    }
}

//! Whether there is room for what a decider wants written, decided before anything is.

use super::{Core, TXN_BYTES_MAX};
use crate::Error;
use crate::engine::{KEY_BYTES_MAX, Writes};

impl Core {
    /// Bytes that these writes take beyond the `used` ones, or why they are refused. Removals count
    /// nothing, for what they free is known only later.
    pub(super) fn admit(&self, writes: &Writes, used: u64) -> Result<u64, Error> {
        writes.check(KEY_BYTES_MAX, TXN_BYTES_MAX)?;
        let bytes = pages_bytes(writes, self.page_bytes);
        let max = self.options.max_bytes;
        if used.saturating_add(bytes) > max && !writes.makes_room() {
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

/// Node header and slot of an entry in its page.
const ENTRY_BYTES: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Table;

    #[test]
    fn a_value_that_fills_half_a_page_takes_whole_pages() {
        let mut writes = Writes::default();
        writes.put(Table::Documents, b"k", &[0; 100]);
        assert_eq!(pages_bytes(&writes, 4_096), 101 + ENTRY_BYTES);
        writes.put(Table::Documents, b"k", &[0; 5_000]);
        assert_eq!(pages_bytes(&writes, 4_096), 101 + ENTRY_BYTES + 8_192);
    }
}

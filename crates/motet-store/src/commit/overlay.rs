//! What a decider has decided so far, over what the transaction holds.

use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;

use motet_protocol::fault::planted;

use crate::engine::{OnEntry, Read, Table, Writes};
use crate::keys::just_after;
use crate::value::successor;
use crate::{Error, lookup};

/// Reads see the decider's own writes. Writes leave in the order of their keys, which a tree of
/// pages takes with fewer splits than any other order.
pub(super) struct Overlay<'t> {
    below: &'t dyn Read,
    writes: [BTreeMap<Vec<u8>, Option<Vec<u8>>>; Table::ALL.len()],
    /// Bytes of the keys and values in `writes`.
    bytes: usize,
    fetched: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<'t> Overlay<'t> {
    pub(super) fn new(below: &'t dyn Read) -> Self {
        Self { below, writes: Default::default(), bytes: 0, fetched: BTreeMap::new() }
    }

    pub(super) const fn below(&self) -> &'t dyn Read {
        self.below
    }

    /// Bytes of everything that is to be written.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads documents that will be asked for, all in one question. What would be too much to hold
    /// is read again when it is asked for.
    pub(super) async fn fetch_documents(&mut self, keys: &[Vec<u8>]) -> Result<(), Error> {
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let fetched = &mut self.fetched;
        let mut bytes = 0;
        let mut each = |place: usize, value: Option<&[u8]>| {
            if bytes < FETCHED_BYTES_MAX {
                bytes += value.map_or(0, <[u8]>::len);
                fetched.insert(keys[place].to_vec(), value.map(<[u8]>::to_vec));
            }
        };
        self.below.get_many(Table::Documents, &keys, &mut each).await
    }

    pub(super) async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if let Some(own) = self.writes[table as usize].get(key)
            && !(planted("patch-stale-value") && self.fetched.contains_key(key))
        {
            return Ok(own.clone());
        }
        if table == Table::Documents
            && let Some(fetched) = self.fetched.get(key)
        {
            return Ok(fetched.clone());
        }
        lookup::one(self.below, table, key).await
    }

    /// Shows all entries whose key starts with a prefix: the decider's own, then those below that it
    /// has not changed.
    pub(super) async fn under(
        &self,
        table: Table,
        prefix: &[u8],
        each: &mut OnEntry<'_>,
    ) -> Result<(), Error> {
        let own = &self.writes[table as usize];
        let starting = own.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded));
        for (key, value) in starting.take_while(|(key, _)| key.starts_with(prefix)) {
            if let Some(value) = value
                && each(key, value).is_break()
            {
                return Ok(());
            }
        }
        let mut below = |key: &[u8], value: &[u8]| {
            if own.contains_key(key) { ControlFlow::Continue(()) } else { each(key, value) }
        };
        let end = successor(prefix);
        lookup::range(self.below, table, prefix, end.as_deref(), &mut below).await
    }

    /// The first entries after a key whose key starts with a prefix, in order.
    pub(super) async fn page(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        max: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
        let start = after.map_or_else(|| prefix.to_vec(), |after| just_after(after.to_vec()));
        let own = &self.writes[table as usize];
        let starting = own.range::<[u8], _>((Bound::Included(start.as_slice()), Bound::Unbounded));
        let starting = starting.take_while(|(key, _)| key.starts_with(prefix));
        let present = starting.filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
        let mut entries: Vec<_> = present.take(max).collect();
        let mut left = max;
        let mut below = |key: &[u8], value: &[u8]| {
            if !own.contains_key(key) {
                entries.push((key.to_vec(), value.to_vec()));
                left -= 1;
            }
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let end = successor(prefix);
        lookup::range(self.below, table, &start, end.as_deref(), &mut below).await?;
        entries.sort_unstable();
        entries.truncate(max);
        Ok(entries)
    }

    pub(super) fn put(&mut self, table: Table, key: Vec<u8>, value: Vec<u8>) {
        self.set(table, key, Some(value));
    }

    pub(super) fn remove(&mut self, table: Table, key: Vec<u8>) {
        self.set(table, key, None);
    }

    fn set(&mut self, table: Table, key: Vec<u8>, value: Option<Vec<u8>>) {
        let key_bytes = key.len();
        self.bytes += key_bytes + value.as_ref().map_or(0, Vec::len);
        if let Some(before) = self.writes[table as usize].insert(key, value) {
            self.bytes -= key_bytes + before.map_or(0, |before| before.len());
        }
    }

    pub(super) fn into_writes(self) -> Writes {
        let mut writes = Writes::default();
        for (table, entries) in Table::ALL.into_iter().zip(self.writes) {
            for (key, value) in entries {
                match value {
                    Some(value) => writes.put(table, &key, &value),
                    None => writes.remove(table, &key),
                }
            }
        }
        writes
    }
}

/// Bytes of documents after which no more are fetched.
const FETCHED_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::memory::Memory;
    use crate::engine::{Decision, Engine as _, Transaction, decides};

    /// Writes keys of indexes.
    struct Seed([&'static str; 5]);

    impl Seed {
        async fn run(&self, _: &dyn Transaction) -> Result<Decision, Error> {
            let mut writes = Writes::default();
            self.0.iter().for_each(|key| writes.put(Table::Index, key.as_bytes(), b""));
            Ok(Decision { writes, changes: 0 })
        }
    }

    decides!(Seed);

    #[test]
    fn its_bytes_are_those_of_what_it_writes() {
        let engine = Memory::default();
        let view = pollster::block_on(engine.view()).unwrap();
        let mut overlay = Overlay::new(view.as_ref());
        overlay.put(Table::Documents, b"a".to_vec(), vec![0; 100]);
        overlay.put(Table::Documents, b"a".to_vec(), vec![0; 10]);
        overlay.put(Table::Index, b"a".to_vec(), Vec::new());
        overlay.put(Table::Log, b"ab".to_vec(), vec![0; 7]);
        overlay.remove(Table::Log, b"ab".to_vec());
        assert_eq!(overlay.bytes(), 11 + 1 + 2);
        assert_eq!(overlay.bytes(), overlay.into_writes().byte_len());
    }

    #[test]
    fn pages_have_its_own_entries_among_those_below_in_order() {
        let engine = Memory::default();
        let seed = Box::new(Seed(["a", "b1", "b2", "b4", "c"]));
        pollster::block_on(engine.write(vec![seed])).pop().unwrap().unwrap();
        let view = pollster::block_on(engine.view()).unwrap();
        let mut overlay = Overlay::new(view.as_ref());
        overlay.remove(Table::Index, b"b2".to_vec());
        overlay.put(Table::Index, b"b3".to_vec(), Vec::new());
        overlay.put(Table::Index, b"b5".to_vec(), Vec::new());
        let page = |after: Option<&str>, max| {
            let after = after.map(str::as_bytes);
            let page = pollster::block_on(overlay.page(Table::Index, b"b", after, max)).unwrap();
            page.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(page(None, 2), ["b1", "b3"]);
        assert_eq!(page(Some("b3"), 2), ["b4", "b5"]);
        assert_eq!(page(Some("b5"), 2), [""; 0]);
    }
}

//! What a decider has decided so far, over what the transaction holds.

use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;

use motet_protocol::fault::planted;

use crate::engine::{OnEntry, Read, Table, Writes};
use crate::value::successor;
use crate::{Error, lookup};

/// Reads see the decider's own writes. Writes leave in the order of their keys, which a tree of
/// pages takes with fewer splits than any other order.
pub(super) struct Overlay<'t> {
    below: &'t dyn Read,
    writes: [BTreeMap<Vec<u8>, Option<Vec<u8>>>; Table::ALL.len()],
    fetched: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<'t> Overlay<'t> {
    pub(super) fn new(below: &'t dyn Read) -> Self {
        Self { below, writes: Default::default(), fetched: BTreeMap::new() }
    }

    pub(super) const fn below(&self) -> &'t dyn Read {
        self.below
    }

    /// Reads documents that will be asked for, all in one question.
    pub(super) async fn fetch_documents(&mut self, keys: &[Vec<u8>]) -> Result<(), Error> {
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let fetched = &mut self.fetched;
        let mut each = |place: usize, value: Option<&[u8]>| {
            fetched.insert(keys[place].to_vec(), value.map(<[u8]>::to_vec));
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

    pub(super) fn put(&mut self, table: Table, key: Vec<u8>, value: Vec<u8>) {
        self.writes[table as usize].insert(key, Some(value));
    }

    pub(super) fn remove(&mut self, table: Table, key: Vec<u8>) {
        self.writes[table as usize].insert(key, None);
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

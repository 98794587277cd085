//! The engine's tables with the versions that views still look at.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use motet_store::engine::{Direction, OnEntry, OnValue, Range, Table, Writes};

/// Sorted maps of which every view sees the commit that it was taken at. What a group has written
/// is seen by its own deciders only, until it is committed.
#[derive(Default)]
pub(super) struct Tables {
    maps: [BTreeMap<Box<[u8]>, Vec<Version>>; Table::ALL.len()],
    /// The number of the last commit.
    committed: u64,
    /// How many views look at each commit.
    views: BTreeMap<u64, usize>,
    /// Keys that the open group has written.
    touched: Vec<(Table, Box<[u8]>)>,
    /// Keys that were removed while a view still looked at them.
    graves: Vec<(Table, Box<[u8]>)>,
}

struct Version {
    commit: u64,
    value: Option<Box<[u8]>>,
}

impl Tables {
    pub(super) const fn committed(&self) -> u64 {
        self.committed
    }

    /// What the deciders of the open group look at.
    pub(super) const fn open(&self) -> u64 {
        self.committed + 1
    }

    pub(super) fn hold_view(&mut self) -> u64 {
        *self.views.entry(self.committed).or_default() += 1;
        self.committed
    }

    pub(super) fn release_view(&mut self, at: u64) {
        if let Some(count) = self.views.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                self.views.remove(&at);
            }
        }
    }

    pub(super) fn put(&mut self, table: Table, key: &[u8], value: Option<&[u8]>) {
        let open = self.open();
        let value = value.map(Into::into);
        let map = &mut self.maps[table as usize];
        if !map.contains_key(key) {
            if value.is_none() {
                return;
            }
            map.insert(key.into(), Vec::with_capacity(1));
        }
        let versions = map.get_mut(key).expect("it was made where it was absent");
        match versions.last_mut() {
            Some(last) if last.commit == open => last.value = value,
            _ => {
                versions.push(Version { commit: open, value });
                self.touched.push((table, key.into()));
            }
        }
    }

    pub(super) fn apply(&mut self, writes: &Writes) {
        for (table, key, value) in writes.iter() {
            self.put(table, key, value);
        }
    }

    /// Forgets what the open group has written.
    pub(super) fn undo(&mut self) {
        let open = self.open();
        for (table, key) in std::mem::take(&mut self.touched) {
            let map = &mut self.maps[table as usize];
            let Some(versions) = map.get_mut(&key) else { continue };
            versions.retain(|version| version.commit < open);
            if versions.is_empty() {
                map.remove(&key);
            }
        }
    }

    /// Shows to everybody what the open group has written.
    pub(super) fn commit(&mut self) {
        self.committed += 1;
        let oldest = self.views.keys().next().copied().unwrap_or(self.committed);
        let touched = std::mem::take(&mut self.touched);
        let graves = std::mem::take(&mut self.graves);
        for (table, key) in touched.into_iter().chain(graves) {
            let map = &mut self.maps[table as usize];
            let Some(versions) = map.get_mut(&key) else { continue };
            let seen = versions.iter().rposition(|version| version.commit <= oldest).unwrap_or(0);
            versions.drain(..seen);
            let removed = versions.last().is_none_or(|version| version.value.is_none());
            if removed && versions.len() <= 1 && oldest == self.committed {
                map.remove(&key);
            } else if removed {
                self.graves.push((table, key));
            }
        }
    }

    pub(super) fn get_many(&self, at: u64, table: Table, keys: &[&[u8]], each: &mut OnValue<'_>) {
        let map = &self.maps[table as usize];
        for (place, key) in keys.iter().enumerate() {
            each(place, map.get(*key).and_then(|versions| value(versions, at)));
        }
    }

    pub(super) fn range(&self, at: u64, range: Range<'_>, each: &mut OnEntry<'_>) {
        if is_empty(range.from, range.to) {
            return;
        }
        let map = &self.maps[range.table as usize];
        let mut entries = map.range::<[u8], _>((range.from, range.to));
        let mut next = || match range.direction {
            Direction::Forward => entries.next(),
            Direction::Backward => entries.next_back(),
        };
        while let Some((key, versions)) = next() {
            if let Some(value) = value(versions, at)
                && each(key, value) == ControlFlow::Break(())
            {
                return;
            }
        }
    }
}

fn value(versions: &[Version], at: u64) -> Option<&[u8]> {
    let version = versions.iter().rev().find(|version| version.commit <= at)?;
    version.value.as_deref()
}

/// Whether no key lies between these ends, which the standard library's ranges panic on.
fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from >= to,
    }
}

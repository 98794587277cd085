//! Maps and sets as sorted vectors, for modules whose size counts.
//!
//! The ordered collections of the standard library are trees, and every kind of key and value
//! brings two to four kilobytes of WebAssembly. The maps of a page or a node hold at most a few
//! thousand entries; moving those on insertion costs less than a message. Iteration is in the
//! order of the keys, so simulated runs replay exactly.

use core::borrow::Borrow;
use core::iter::{FromIterator, Map};
use core::ops::Index;
use core::slice;

/// Entries of a [`SortedMap`].
type Iter<'a, K, V> = Map<slice::Iter<'a, (K, V)>, fn(&'a (K, V)) -> (&'a K, &'a V)>;
/// Entries of a [`SortedMap`], values to be changed.
type IterMut<'a, K, V> = Map<slice::IterMut<'a, (K, V)>, fn(&'a mut (K, V)) -> (&'a K, &'a mut V)>;
/// Values of a [`SortedSet`].
type Values<'a, T> = Map<slice::Iter<'a, (T, ())>, fn(&'a (T, ())) -> &'a T>;

/// A map in the order of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> SortedMap<K, V> {
    /// An empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes all entries out.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Entries, in the order of their keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// Entries, in the order of their keys.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// Keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator {
        self.entries.iter().map(|(key, _)| key)
    }

    /// Values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator {
        self.entries.iter().map(|(_, value)| value)
    }

    /// Values, in the order of their keys.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// Values, in the order of their keys.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.entries.into_iter().map(|(_, value)| value)
    }

    /// The entry with the lowest key.
    #[must_use]
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.entries.first().map(|(key, value)| (key, value))
    }

    /// The entry with the highest key.
    #[must_use]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.entries.last().map(|(key, value)| (key, value))
    }

    /// Takes the entry with the lowest key out.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        if self.entries.is_empty() { None } else { Some(self.entries.remove(0)) }
    }

    /// Keeps the entries that `keep` accepts.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        // Keys often come in order: the end is the place of most new ones.
        match self.entries.last() {
            Some((last, _)) if last.borrow() < key => Err(self.entries.len()),
            _ => self.entries.binary_search_by(|(found, _)| found.borrow().cmp(key)),
        }
    }

    /// Whether the key is there.
    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// The value of a key.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|index| &self.entries[index].1)
    }

    /// The value of a key.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|index| &mut self.entries[index].1)
    }

    /// Sets the value of a key and gives back the one before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(index) => Some(core::mem::replace(&mut self.entries[index].1, value)),
            Err(index) => {
                self.entries.insert(index, (key, value));
                None
            }
        }
    }

    /// Takes the value of a key out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Takes a key and its value out.
    pub fn remove_entry<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|index| self.entries.remove(index))
    }

    /// The place of a key, whether or not it is there.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        let place = self.find(&key);
        Entry { map: self, key, place }
    }
}

/// The place of a key in a map.
pub struct Entry<'a, K, V> {
    map: &'a mut SortedMap<K, V>,
    key: K,
    place: Result<usize, usize>,
}

impl<'a, K, V> Entry<'a, K, V> {
    /// The value, or the one that `make` makes now.
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'a mut V {
        let index = match self.place {
            Ok(index) => index,
            Err(index) => {
                self.map.entries.insert(index, (self.key, make()));
                index
            }
        };
        &mut self.map.entries[index].1
    }

    /// The value, or this one from now on.
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// The value, or the default one from now on.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value if there is one.
    #[must_use]
    pub fn and_modify(self, change: impl FnOnce(&mut V)) -> Self {
        if let Ok(index) = self.place {
            change(&mut self.map.entries[index].1);
        }
        self
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut SortedMap<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<K: Ord + Borrow<Q>, Q: Ord + ?Sized, V> Index<&Q> for SortedMap<K, V> {
    type Output = V;

    /// # Panics
    ///
    /// When the key is not there.
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the key is in the map")
    }
}

/// A set in the order of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedSet<T> {
    values: SortedMap<T, ()>,
}

impl<T> SortedSet<T> {
    /// An empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: SortedMap::new() }
    }

    /// Values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Takes all values out.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// Values, in order.
    pub fn iter(&self) -> Values<'_, T> {
        self.values.entries.iter().map(|(value, ())| value)
    }

    /// The lowest value.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.values.first_key_value().map(|(value, ())| value)
    }

    /// Keeps the values that `keep` accepts.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.values.retain(|value, ()| keep(value));
    }
}

impl<T: Ord> SortedSet<T> {
    /// Whether the value is there.
    #[must_use]
    pub fn contains<Q: Ord + ?Sized>(&self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.values.contains_key(value)
    }

    /// Puts a value in; `false` when it was there.
    pub fn insert(&mut self, value: T) -> bool {
        self.values.insert(value, ()).is_none()
    }

    /// Takes a value out; `false` when it was not there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.values.remove(value).is_some()
    }
}

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.insert(value);
        }
    }
}

impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut set = Self::new();
        set.extend(values);
        set
    }
}

impl<T> IntoIterator for SortedSet<T> {
    type Item = T;
    type IntoIter = Map<std::vec::IntoIter<(T, ())>, fn((T, ())) -> T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.into_iter().map(|(value, ())| value)
    }
}

impl<'a, T> IntoIterator for &'a SortedSet<T> {
    type Item = &'a T;
    type IntoIter = Values<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u32),
        Remove(u8),
        Bump(u8),
        PopFirst,
        Retain(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (any::<u8>(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
            2 => any::<u8>().prop_map(Step::Remove),
            2 => any::<u8>().prop_map(Step::Bump),
            1 => Just(Step::PopFirst),
            1 => (1_u8..8).prop_map(Step::Retain),
        ]
    }

    proptest! {
        #[test]
        fn a_sorted_map_does_what_a_tree_does(steps in prop::collection::vec(step(), 0..200)) {
            let (mut tree, mut map) = (BTreeMap::new(), SortedMap::new());
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        prop_assert_eq!(map.insert(key, value), tree.insert(key, value));
                    }
                    Step::Remove(key) => prop_assert_eq!(map.remove(&key), tree.remove(&key)),
                    Step::Bump(key) => {
                        let bump = |value: &mut u32| *value = value.wrapping_add(1);
                        let left = *map.entry(key).and_modify(bump).or_insert(7);
                        prop_assert_eq!(left, *tree.entry(key).and_modify(bump).or_insert(7));
                    }
                    Step::PopFirst => prop_assert_eq!(map.pop_first(), tree.pop_first()),
                    Step::Retain(part) => {
                        map.retain(|key, _| key % part != 0);
                        tree.retain(|key, _| key % part != 0);
                    }
                }
                prop_assert_eq!(map.get(&9), tree.get(&9));
                prop_assert_eq!(map.first_key_value(), tree.first_key_value());
                prop_assert_eq!(map.last_key_value(), tree.last_key_value());
            }
            prop_assert!(map.iter().eq(tree.iter()));
            prop_assert!(map.into_iter().eq(tree));
        }
    }

    #[test]
    fn a_set_holds_each_value_once_and_in_order() {
        let mut set: SortedSet<_> = ["c", "a", "b", "a"].into_iter().collect();
        assert!(!set.insert("b") && set.insert("d") && set.remove("a") && !set.remove("a"));
        assert_eq!(set.first(), Some(&"b"));
        assert!(set.into_iter().eq(["b", "c", "d"]));
    }
}

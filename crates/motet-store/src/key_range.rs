//! Which documents of a type to read, by key.

use crate::keys::{self, TypeId};
use crate::value::successor;

/// Documents of one type by key, in the order of the keys' bytes.
///
/// ```
/// use motet_store::KeyRange;
///
/// let range = KeyRange::prefix("2026-").after("2026-03-01").limit(20);
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyRange {
    prefix: String,
    from: Option<String>,
    after: Option<String>,
    pub(crate) limit: Option<usize>,
}

impl KeyRange {
    /// All documents.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Those whose key starts with this.
    #[must_use]
    pub fn prefix(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }

    /// Only from this key on.
    #[must_use]
    pub fn from(mut self, key: impl Into<String>) -> Self {
        self.from = Some(key.into());
        self
    }

    /// Only after this key: the next page, given the last key of this one.
    #[must_use]
    pub fn after(mut self, key: impl Into<String>) -> Self {
        self.after = Some(key.into());
        self
    }

    /// At most this many.
    #[must_use]
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Whether a key lies in it, whatever its limit.
    pub(crate) fn contains(&self, key: &str) -> bool {
        key.starts_with(&self.prefix)
            && self.from.as_deref().is_none_or(|from| key >= from)
            && self.after.as_deref().is_none_or(|after| key > after)
    }

    /// The first key of `Documents`, and the one before which it ends.
    pub(crate) fn bounds(&self, type_id: TypeId) -> (Vec<u8>, Option<Vec<u8>>) {
        let prefix = keys::document(type_id, &self.prefix);
        let end = successor(&prefix);
        let from = self.from.as_ref().map(|key| keys::document(type_id, key));
        let after = self.after.as_ref().map(|key| keys::just_after(keys::document(type_id, key)));
        let start = [Some(prefix), from, after].into_iter().flatten().max();
        (start.expect("there is always the prefix"), end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_start_holds_and_the_prefix_ends_the_range() {
        let id = TypeId(1);
        let (start, end) = KeyRange::prefix("b").from("a").after("b5").bounds(id);
        assert_eq!(start, [&[0, 0, 0, 1][..], b"b5\0"].concat());
        assert_eq!(end, Some([&[0, 0, 0, 1][..], b"c"].concat()));
        let (start, end) = KeyRange::all().bounds(id);
        assert_eq!((start, end), (vec![0, 0, 0, 1], Some(vec![0, 0, 0, 2])));
    }
}

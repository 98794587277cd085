//! Filters: which documents a query, a subscription or a partial index is about.
//!
//! The operators are MongoDB's and so is what they mean over arrays:
//!
//! | operators | a field matches if one of its values |
//! | -- | -- |
//! | a plain value, `$eq` | equals it; null matches an absent field too |
//! | `$in` | equals one of the list |
//! | `$gt` `$gte` `$lt` `$lte` | is of the operand's [class](crate::value::Class) and beyond it |
//! | `$type` | is of one of the named types: `array`, `bool`, `null`, `number`, `object`, `string` |
//! | `$regex`, `$options` | is a string with a match; options are `i`, `m`, `s` and `x` |
//! | `$mod` | is a whole number that leaves the remainder: `[divisor, remainder]` |
//! | `$exists` | is there, be it null (`false`: none is) |
//! | `$size` | is an array of that length |
//! | `$elemMatch` | is an array with an element that meets all conditions |
//! | `$all` | equals the entry, for every entry of the list |
//! | `$ne` `$nin` `$not` | (not) what the opposite says: they match exactly where it does not |
//!
//! `$and`, `$or` and `$nor` combine whole filters. The values of a field are those that its
//! [path](crate::value::Path) leads to and, where one is an array, its elements; `$size`,
//! `$elemMatch` and `$exists` look at the array itself. Two conditions on one field may be met by
//! two of its values; inside `$elemMatch` they are met by one.
//!
//! Regular expressions take time linear in the text, so there is no lookaround and there are no
//! backreferences. Whatever is not known is an error.

mod bounds;
mod condition;
mod entry_range;
mod parse;
mod pattern;
mod place;

use serde_json::Value;

pub use bounds::{Constraint, PathBounds};
pub use entry_range::EntryRange;
pub use pattern::{PATTERN_BYTES_MAX, PATTERN_PROGRAM_BYTES_MAX};

use crate::Error;
use condition::Node;

/// How deep conditions may nest.
pub const FILTER_DEPTH_MAX: usize = 32;
/// The most conditions in a filter. Every operator counts, and every entry of `$all`.
pub const FILTER_CONDITIONS_MAX: usize = 1_000;
/// The most entries of a `$in`, `$nin` or `$all`.
pub const FILTER_LIST_MAX: usize = 10_000;
/// The most regular expressions in a filter.
pub const FILTER_PATTERNS_MAX: usize = 32;

/// A filter that was read and found to be one.
///
/// ```
/// use motet_store::filter::Filter;
/// use serde_json::json;
///
/// let filter = Filter::parse(&json!({"age": {"$gte": 18}, "tags": "new"}))?;
/// assert!(filter.matches(&json!({"age": 20, "tags": ["new", "red"]})));
/// assert!(!filter.matches(&json!({"age": "20", "tags": ["new"]})));
/// # Ok::<(), motet_store::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Filter {
    root: Node,
}

impl Filter {
    /// Reads a filter.
    ///
    /// ```
    /// use motet_store::Error;
    /// use motet_store::filter::Filter;
    /// use serde_json::json;
    ///
    /// let unknown = Filter::parse(&json!({"$and": [{"age": {"$above": 18}}]}));
    /// assert!(matches!(unknown, Err(Error::FilterInvalid { at, .. }) if at == "$and[0].age.$above"));
    /// ```
    ///
    /// # Errors
    /// [`Error::FilterInvalid`] for an unknown operator, an operand of the wrong type, a regular
    /// expression that is wrong or too large, and what exceeds a limit of this module;
    /// [`Error::RegexUnsupported`] for a regular expression with lookaround or a backreference.
    pub fn parse(filter: &Value) -> Result<Self, Error> {
        Ok(Self { root: parse::filter(filter)? })
    }

    /// Whether a document matches.
    ///
    /// The time is linear in the size of the document, but for the sorting of its objects' fields
    /// where `$in` or a comparison looks at objects.
    #[must_use]
    pub fn matches(&self, document: &Value) -> bool {
        self.root.matches(document)
    }

    /// What every document that matches must hold, for a planner to choose an index by: the
    /// conditions that all of the filter depends on, by path, in the order of the paths.
    ///
    /// ```
    /// use motet_store::filter::{Constraint, Filter};
    /// use serde_json::json;
    ///
    /// let filter = Filter::parse(&json!({"city": "Bern", "age": {"$gt": 17, "$lt": 65}}))?;
    /// let bounds = filter.bounds();
    /// assert_eq!(bounds[0].path().as_str(), "age");
    /// assert_eq!(bounds[0].each().len(), 2);
    /// assert!(matches!(bounds[0].together(), Constraint::Range { .. }));
    /// assert!(matches!(bounds[1].together(), Constraint::Equal(values) if values == [&json!("Bern")]));
    /// # Ok::<(), motet_store::Error>(())
    /// ```
    #[must_use]
    pub fn bounds(&self) -> Vec<PathBounds<'_>> {
        bounds::of(&self.root)
    }
}

//! What an index is, as its user and the catalogue describe it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::document::DOCUMENT_KEY_BYTES_MAX;
use crate::engine::KEY_BYTES_MAX;
use crate::filter::Filter;
use crate::keys::TypeId;
use crate::value::{Direction, Path, VALUE_BYTES_MAX};

/// What an index holds: its fields in order, and its conditions.
///
/// A document with several values in a field (an array, or several objects in one) has an entry for
/// each. Absent fields count as null.
///
/// ```
/// use motet_store::{IndexSpec, Store};
/// use serde_json::json;
///
/// let env = Store::in_memory().env("default")?;
/// let spec = IndexSpec::new().field("customer").descending("total").matching(json!({"open": true}));
/// env.create_index("Order", "open_by_customer", &spec)?;
/// # Ok::<(), motet_store::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexSpec {
    pub(crate) fields: Vec<Field>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(crate) unique: bool,
    /// The filter of a partial index.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub(crate) only: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field {
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(crate) descending: bool,
}

impl IndexSpec {
    /// An index of no field yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Then by this field, small values first.
    #[must_use]
    pub fn field(mut self, path: impl Into<String>) -> Self {
        self.fields.push(Field { path: path.into(), descending: false });
        self
    }

    /// Then by this field, great values first.
    #[must_use]
    pub fn descending(mut self, path: impl Into<String>) -> Self {
        self.fields.push(Field { path: path.into(), descending: true });
        self
    }

    /// No two documents may have the same values. One in which a field is absent or null is not
    /// held against another.
    #[must_use]
    pub const fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Only documents that match this filter are in the index, and bound by its uniqueness.
    #[must_use]
    pub fn matching(mut self, filter: Value) -> Self {
        self.only = Some(filter);
        self
    }
}

impl IndexSpec {
    /// Its fields in order: path, and whether great values come first.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&str, bool)> {
        self.fields.iter().map(|field| (field.path.as_str(), field.descending))
    }

    /// Whether no two documents may have the same values.
    #[must_use]
    pub const fn is_unique(&self) -> bool {
        self.unique
    }

    /// The filter of a partial index.
    #[must_use]
    pub const fn filter(&self) -> Option<&Value> {
        self.only.as_ref()
    }
}

/// How far an index is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IndexState {
    /// Existing documents are being added; queries do not use it yet.
    Building,
    /// Queries use it.
    Ready,
    /// It could not be built; queries do not use it, and nothing is refused on its account.
    Failed {
        /// Why.
        reason: String,
    },
}

/// An index, as the catalogue has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndexRecord {
    pub(crate) id: u32,
    pub(crate) type_id: u32,
    pub(crate) spec: IndexSpec,
    pub(crate) state: IndexState,
    /// Whether a document has ever had several entries: such an index gives no order.
    #[serde(default)]
    pub(crate) multiple: bool,
    /// Whether a value has ever been too long to stand in an entry whole.
    #[serde(default)]
    pub(crate) shortened: bool,
}

/// An index, ready to be used.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) record: IndexRecord,
    pub(crate) fields: Vec<(Path, Direction)>,
    pub(crate) only: Option<Filter>,
}

impl Index {
    /// Reads what a record describes.
    ///
    /// # Errors
    /// What is not a path or filter; [`Error::IndexInvalid`].
    pub(crate) fn new(name: &str, record: IndexRecord) -> Result<Self, Error> {
        let count = record.spec.fields.len();
        if !(1..=INDEX_FIELDS_MAX).contains(&count) {
            let why = format!("it has {count} fields; an index has 1 to {INDEX_FIELDS_MAX}");
            return Err(Error::IndexInvalid { name: name.into(), why });
        }
        let fields = record.spec.fields.iter().map(|field| {
            let direction =
                if field.descending { Direction::Descending } else { Direction::Ascending };
            Path::parse(&field.path).map(|path| (path, direction))
        });
        let fields = fields.collect::<Result<_, Error>>()?;
        let only = record.spec.only.as_ref().map(Filter::parse).transpose()?;
        Ok(Self { name: name.into(), record, fields, only })
    }

    pub(crate) const fn type_id(&self) -> TypeId {
        TypeId(self.record.type_id)
    }

    /// Whether writers have to keep it.
    pub(crate) const fn is_kept(&self) -> bool {
        !matches!(self.record.state, IndexState::Failed { .. })
    }
}

/// The most fields of an index: their values and the document's key fit into a key of the engine.
pub const INDEX_FIELDS_MAX: usize = 6;

const _: () = assert!(
    // A document's key takes two bytes for each of its own at worst, and one for its end.
    4 + INDEX_FIELDS_MAX * VALUE_BYTES_MAX + 2 * DOCUMENT_KEY_BYTES_MAX < KEY_BYTES_MAX,
    "every entry fits into a key of the engine"
);

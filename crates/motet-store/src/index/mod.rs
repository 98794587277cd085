//! Indexes: entries that sort as the documents' values do, kept in the write's own transaction.

mod build;
mod entries;
mod spec;

pub(crate) use build::{Build, Clear, Create, Drop, Progress, add, is_cleared, remove};
pub(crate) use entries::{Entries, append_document_key};
pub use spec::{INDEX_FIELDS_MAX, IndexSpec, IndexState};
pub(crate) use spec::{Index, IndexRecord};

/// An index, as it is reported.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IndexStatus {
    /// Its name, unique within its type.
    pub name: String,
    /// What it holds.
    pub spec: IndexSpec,
    /// How far it is.
    pub state: IndexState,
    /// How many documents have been added to it, while it is being built.
    pub scanned: Option<u64>,
}

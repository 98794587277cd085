//! What can be wrong with an environment.

use core::fmt;

use crate::Clock;

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// The log lacks changes in its middle or at its end.
    LogGap {
        /// The first clock that is missing.
        missing: Clock,
        /// The next clock that is there; `None` at the end.
        next: Option<Clock>,
    },
    /// A change of the log contradicts itself or its neighbours.
    LogEntry {
        /// The change.
        clock: Clock,
        /// What does not fit.
        why: String,
    },
    /// A document cannot be read, or is of no type.
    Document {
        /// Its type.
        type_name: String,
        /// Its key.
        key: String,
        /// What does not fit.
        why: String,
    },
    /// A document is not what its last change made it.
    NotItsLastChange {
        /// Its type.
        type_name: String,
        /// Its key.
        key: String,
        /// The document's version; 0 if it is not there.
        version: Clock,
        /// The last change of it in the log; 0 if there is none where one must be.
        logged: Clock,
    },
    /// An index lacks an entry of a document.
    EntryMissing {
        /// The index.
        index: String,
        /// The document's type.
        type_name: String,
        /// The document's key.
        key: String,
    },
    /// An index has an entry that follows from no document.
    EntrySuperfluous {
        /// The index.
        index: String,
        /// The document's type.
        type_name: String,
        /// The key of the document that it leads to.
        key: String,
    },
    /// Two documents have the same values in a unique index.
    NotUnique {
        /// The index.
        index: String,
        /// The documents' type.
        type_name: String,
        /// One key.
        key: String,
        /// The other.
        other: String,
    },
    /// There are entries of an index that is in no catalogue.
    UnknownIndex {
        /// Its number.
        id: u32,
    },
    /// A document that expires is not among those that will be removed.
    ExpiryMissing {
        /// The document's type.
        type_name: String,
        /// The document's key.
        key: String,
    },
    /// A time of expiry is kept that the document does not have.
    ExpirySuperfluous {
        /// The document's type.
        type_name: String,
        /// The document's key.
        key: String,
        /// The time, in milliseconds since 1970.
        expires_ms: u64,
    },
}

impl Finding {
    /// The invariant that does not hold, by its name in the requirements.
    #[must_use]
    pub const fn invariant(&self) -> &'static str {
        match self {
            Self::LogGap { .. } | Self::LogEntry { .. } => "clock",
            Self::Document { .. } | Self::NotItsLastChange { .. } => "durable",
            Self::ExpiryMissing { .. } | Self::ExpirySuperfluous { .. } => "expiry",
            _ => "index",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LogGap { missing, next: Some(next) } => {
                write!(f, "the log has no change {missing}; the next one is {next}")
            }
            Self::LogGap { missing, next: None } => {
                write!(f, "the log ends before its change {missing}")
            }
            Self::LogEntry { clock, why } => write!(f, "the log's change {clock}: {why}"),
            Self::Document { type_name, key, why } => write!(f, "{type_name} {key:?}: {why}"),
            Self::NotItsLastChange { type_name, key, version, logged } => write!(
                f,
                "{type_name} {key:?} is at version {version}, its last change in the log is {logged}"
            ),
            Self::EntryMissing { index, type_name, key } => {
                write!(f, "the index {index:?} lacks an entry of {type_name} {key:?}")
            }
            Self::EntrySuperfluous { index, type_name, key } => write!(
                f,
                "the index {index:?} has an entry of {type_name} {key:?} that does not follow from it"
            ),
            Self::NotUnique { index, type_name, key, other } => write!(
                f,
                "{type_name} {key:?} and {other:?} have the same values in the unique index {index:?}"
            ),
            Self::UnknownIndex { id } => {
                write!(f, "there are entries of an index {id}, which is in no catalogue")
            }
            Self::ExpiryMissing { type_name, key } => {
                write!(f, "{type_name} {key:?} expires and would never be removed")
            }
            Self::ExpirySuperfluous { type_name, key, expires_ms } => {
                write!(f, "{type_name} {key:?} does not expire at {expires_ms}, as is kept")
            }
        }
    }
}

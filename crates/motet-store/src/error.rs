//! What can go wrong, one variant per cause.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use motet_protocol::ErrorCode;

use crate::Clock;

/// Why a call of the store failed. [`code`](Self::code) is the stable name that crosses the wire;
/// its row in the error table says what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key is empty or too long.
    #[error("the key has {bytes} bytes; a key has 1 to {max}")]
    KeyInvalid {
        /// Bytes of the key.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A value is larger than allowed.
    #[error("the value has {bytes} bytes, at most {max} are allowed")]
    ValueTooLarge {
        /// Bytes of the value.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A value's arrays and objects nest deeper than allowed.
    #[error("the value nests deeper than the {max} levels that are allowed")]
    ValueTooDeep {
        /// Levels allowed.
        max: usize,
    },
    /// One transaction would write more than the engine takes.
    #[error("the transaction writes {bytes} bytes, at most {max} are allowed")]
    TransactionTooLarge {
        /// Bytes of all keys and values.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A batch has more writes than allowed.
    #[error("the batch has {writes} writes, at most {max} are allowed")]
    BatchTooLarge {
        /// How many it has.
        writes: usize,
        /// How many are allowed.
        max: usize,
    },
    /// The removal of an expired document takes more with it than one transaction may have. It counts
    /// as absent, and stays in the store until enough of what refers to it is removed.
    #[error("the expired {type_name} {key:?} is kept, for what goes with it is too much: {why}")]
    ExpiryTooLarge {
        /// The document's type.
        type_name: String,
        /// The document's key.
        key: String,
        /// What there is too much of.
        why: String,
    },
    /// The environment has reached the size that it was given.
    #[error("the environment holds {bytes} bytes of the {max} that it may")]
    StoreFull {
        /// Bytes in use.
        bytes: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// The medium has no room left.
    #[error("the disk is full")]
    DiskFull,
    /// The medium refuses writes.
    #[error("{path} cannot be written", path = path.display())]
    ReadOnly {
        /// What cannot be written.
        path: PathBuf,
    },
    /// Others have the store open, and must not.
    #[error("{path} is open elsewhere", path = path.display())]
    InUse {
        /// What is open.
        path: PathBuf,
    },
    /// The files are not a store's.
    #[error("{path} is not a Motet store: {why}", path = path.display())]
    NotAStore {
        /// What was found.
        path: PathBuf,
        /// What gives it away.
        why: &'static str,
    },
    /// A copy is being made here, or one was cut short.
    #[error("{path} holds a part of a copy", path = path.display())]
    CopyUnfinished {
        /// Where the copy was to be.
        path: PathBuf,
    },
    /// The files are a store's, of a later format.
    #[error("the store has format {found}, this build knows up to {known}")]
    StoreNewer {
        /// The format of the files.
        found: u32,
        /// The newest format that this build reads.
        known: u32,
    },
    /// Something in the store was written by a later build, which keeps rules in it that this one does
    /// not know and would break.
    #[error("{what} is of a later build: {why}")]
    EntryNewer {
        /// What.
        what: String,
        /// What this build does not know.
        why: String,
    },
    /// The files are damaged.
    #[error("{path} is damaged: {why}", path = path.display())]
    Corrupt {
        /// What is damaged.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// Another process holds the right to write and does not go on.
    #[error("process {pid} has held the right to write for {held_ms} ms without going on")]
    WriterStalled {
        /// The process that holds it.
        pid: u32,
        /// For how long the same transaction has held it, in milliseconds.
        held_ms: u64,
    },
    /// Others wrote all the time, and this write's turn did not come.
    #[error("the turn to write did not come within {waited_ms} ms")]
    WriterBusy {
        /// How long it waited, in milliseconds.
        waited_ms: u64,
    },
    /// Too many writes wait already.
    #[error("{waiting} writes wait already")]
    WriteQueueFull {
        /// How many.
        waiting: usize,
    },
    /// A view was kept longer than allowed, so that its pages could be used again.
    #[error("the view is older than {max_ms} ms")]
    ViewExpired {
        /// How long a view may be kept, in milliseconds.
        max_ms: u64,
    },
    /// Every slot for a view is taken.
    #[error("{max} views are held already, by all processes together")]
    ReadersFull {
        /// How many there may be.
        max: u32,
    },
    /// A decider panicked; nothing of it was written.
    #[error("the transaction panicked: {message}")]
    DeciderPanicked {
        /// What the panic said, if it was text.
        message: String,
    },
    /// A sync to disk failed before: what is on the medium is not known, so nothing more is written.
    #[error("an earlier sync to disk failed: {cause}")]
    Poisoned {
        /// What the system said then.
        cause: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Log entries that were asked for are gone.
    #[error("the log is kept from clock {kept_from}, asked for was {asked}")]
    LogTruncated {
        /// What was asked for.
        asked: Clock,
        /// From this clock on every change is still there.
        kept_from: Clock,
    },
    /// A position is beyond the log's end, so what came after it is not known here.
    #[error("the log ends at clock {head}, asked for was what comes after {asked}")]
    LogPositionAhead {
        /// The position that was asked for.
        asked: Clock,
        /// The clock of the last change.
        head: Clock,
    },
    /// A name of a type or environment is not allowed.
    #[error("{name:?} is not a name of a type or environment")]
    NameInvalid {
        /// The name.
        name: String,
    },
    /// There is a document where none may be.
    #[error("{type_name} {key:?} exists already, at version {version}")]
    AlreadyExists {
        /// The document's type.
        type_name: String,
        /// The document's key.
        key: String,
        /// Its version.
        version: Clock,
    },
    /// There is no document where one must be.
    #[error("there is no {type_name} {key:?}")]
    NotFound {
        /// The document's type.
        type_name: String,
        /// The document's key.
        key: String,
    },
    /// The document is not at the version that the write is for.
    #[error("{type_name} {key:?} is at version {found}, not {expected}")]
    VersionMismatch {
        /// The document's type.
        type_name: String,
        /// The document's key.
        key: String,
        /// The version that the write is for; 0 for none.
        expected: Clock,
        /// The version that the document has; 0 for none.
        found: Clock,
    },
    /// Something that the transaction read was changed by another before it committed.
    #[error("{type_name} {key:?} was changed while the transaction ran")]
    Conflict {
        /// The type of the document that was changed.
        type_name: String,
        /// Its key.
        key: String,
    },
    /// An index is described in a way that cannot be.
    #[error("the index {name:?} cannot be: {why}")]
    IndexInvalid {
        /// Its name.
        name: String,
        /// What does not fit.
        why: String,
    },
    /// There is an index of this name with another description.
    #[error("{type_name} has an index {name:?} already, with another description")]
    IndexExists {
        /// The type.
        type_name: String,
        /// The index's name.
        name: String,
    },
    /// There is no index of this name.
    #[error("{type_name} has no index {name:?}")]
    IndexNotFound {
        /// The type.
        type_name: String,
        /// The index's name.
        name: String,
    },
    /// A document would have too many entries in an index.
    #[error("the document has {entries} entries in the index {index:?}, at most {max} are allowed")]
    IndexEntriesTooMany {
        /// The index's name.
        index: String,
        /// How many entries.
        entries: usize,
        /// How many are allowed.
        max: usize,
    },
    /// Another document has the same values in a unique index.
    #[error("{type_name} {other:?} has the same values in the unique index {index:?}")]
    UniqueViolation {
        /// The documents' type.
        type_name: String,
        /// The index's name.
        index: String,
        /// The key of the document that has them.
        other: String,
    },
    /// A schema is none, or one that cannot be used.
    #[error("the schema cannot be used: {why}")]
    SchemaInvalid {
        /// What does not fit.
        why: String,
    },
    /// A document does not fit its type's schema.
    #[error("{type_name} {key:?} does not fit the schema: {why}")]
    SchemaViolation {
        /// The document's type.
        type_name: String,
        /// The document's key.
        key: String,
        /// Where, and what does not fit.
        why: String,
    },
    /// A document refers to one that is not there.
    #[error("{0}, which is not there")]
    ReferenceMissing(Box<BrokenReference>),
    /// A document cannot be removed while another refers to it.
    #[error("{0}, which therefore cannot be removed")]
    ReferenceRestricted(Box<BrokenReference>),
    /// A reference was defined just now, and who refers to what is not yet known.
    #[error("who refers to documents of {to} is still being found out")]
    ReferencesBuilding {
        /// The type that is referred to.
        to: String,
    },
    /// A cursor does not belong to the query.
    #[error("the cursor cannot be used: {why}")]
    CursorInvalid {
        /// What does not fit.
        why: &'static str,
    },
    /// A query without a limit gives too much.
    #[error("the query gives more than {max} documents")]
    ResultTooLarge {
        /// How many are allowed.
        max: usize,
    },
    /// A query has to sort more than may be held in memory.
    #[error(
        "the query has more than {max} bytes to sort: set a limit, or make an index that has the order"
    )]
    SortTooLarge {
        /// How many bytes are allowed.
        max: usize,
    },
    /// A patch does not fit the document.
    #[error("the patch does not fit at {path:?}: {why}")]
    PatchInvalid {
        /// The path in the document.
        path: String,
        /// What does not fit.
        why: String,
    },
    /// Something in the store cannot be read by this build.
    #[error("{what} cannot be read: {why}")]
    Damaged {
        /// What.
        what: String,
        /// What does not fit.
        why: String,
    },
    /// A filter is none.
    #[error("the filter is wrong at {at:?}: {why}")]
    FilterInvalid {
        /// The place in it, such as `$and[1].age.$gt`; empty for the filter itself.
        at: String,
        /// What is wrong there.
        why: String,
    },
    /// A regular expression asks for what cannot be done in linear time.
    #[error("the regular expression at {at:?} uses {what}, which takes more than linear time")]
    RegexUnsupported {
        /// The place in the filter.
        at: String,
        /// What it uses.
        what: &'static str,
    },
    /// A path into documents is none.
    #[error("{path:?} is no path: {why}")]
    PathInvalid {
        /// The path, cut after 100 characters.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An idempotency key was used before, for another request.
    #[error("the idempotency key was used before, for another request")]
    IdempotencyKeyReused,
    /// The system refused something.
    #[error("{doing}: {cause}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        #[source]
        cause: Arc<io::Error>,
    },
}

/// A reference, and the document that it leads to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{type_name} {key:?} refers at {path:?} to {to} {target:?}")]
#[non_exhaustive]
pub struct BrokenReference {
    /// The type of the document that has the reference.
    pub type_name: String,
    /// Its key.
    pub key: String,
    /// Where the reference is.
    pub path: String,
    /// The type that it refers to.
    pub to: String,
    /// The key that it refers to.
    pub target: String,
}

impl Error {
    /// The stable code, whose row says what to do.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::KeyInvalid { .. } => ErrorCode::KeyInvalid,
            Self::ValueTooLarge { .. } => ErrorCode::ValueTooLarge,
            Self::ValueTooDeep { .. } => ErrorCode::ValueTooDeep,
            Self::BatchTooLarge { .. }
            | Self::TransactionTooLarge { .. }
            | Self::ExpiryTooLarge { .. } => ErrorCode::TransactionTooLarge,
            Self::StoreFull { .. } => ErrorCode::StoreFull,
            Self::DiskFull => ErrorCode::DiskFull,
            Self::ReadOnly { .. } => ErrorCode::StoreReadOnly,
            Self::InUse { .. } => ErrorCode::StoreInUse,
            Self::NotAStore { .. } => ErrorCode::NotAStore,
            Self::CopyUnfinished { .. } => ErrorCode::CopyUnfinished,
            Self::StoreNewer { .. } | Self::EntryNewer { .. } => ErrorCode::StoreNewer,
            Self::Corrupt { .. } => ErrorCode::StoreCorrupt,
            Self::WriterStalled { .. } => ErrorCode::WriterStalled,
            Self::WriterBusy { .. } => ErrorCode::WriterBusy,
            Self::WriteQueueFull { .. } => ErrorCode::WriteQueueFull,
            Self::ViewExpired { .. } => ErrorCode::ReadViewExpired,
            Self::ReadersFull { .. } => ErrorCode::ReadersFull,
            Self::DeciderPanicked { .. } => ErrorCode::DeciderPanicked,
            Self::Poisoned { .. } => ErrorCode::StorePoisoned,
            Self::Closed => ErrorCode::StoreClosed,
            Self::LogTruncated { .. } => ErrorCode::LogTruncated,
            Self::LogPositionAhead { .. } => ErrorCode::LogPositionAhead,
            Self::NameInvalid { .. } => ErrorCode::NameInvalid,
            Self::AlreadyExists { .. } => ErrorCode::AlreadyExists,
            Self::NotFound { .. } => ErrorCode::NotFound,
            Self::VersionMismatch { .. } => ErrorCode::VersionMismatch,
            Self::Conflict { .. } => ErrorCode::TransactionConflict,
            Self::IndexInvalid { .. } => ErrorCode::IndexInvalid,
            Self::IndexExists { .. } => ErrorCode::IndexExists,
            Self::IndexNotFound { .. } => ErrorCode::IndexNotFound,
            Self::IndexEntriesTooMany { .. } => ErrorCode::IndexEntriesTooMany,
            Self::UniqueViolation { .. } => ErrorCode::UniqueViolation,
            Self::SchemaInvalid { .. } => ErrorCode::SchemaInvalid,
            Self::SchemaViolation { .. } => ErrorCode::SchemaViolation,
            Self::ReferenceMissing(_) => ErrorCode::ReferenceMissing,
            Self::ReferenceRestricted(_) => ErrorCode::ReferenceRestricted,
            Self::ReferencesBuilding { .. } => ErrorCode::ReferencesBuilding,
            Self::CursorInvalid { .. } => ErrorCode::CursorInvalid,
            Self::ResultTooLarge { .. } | Self::SortTooLarge { .. } => ErrorCode::ResultTooLarge,
            Self::PatchInvalid { .. } => ErrorCode::PatchInvalid,
            Self::Damaged { .. } => ErrorCode::StoreCorrupt,
            Self::FilterInvalid { .. } => ErrorCode::FilterInvalid,
            Self::RegexUnsupported { .. } => ErrorCode::RegexUnsupported,
            Self::PathInvalid { .. } => ErrorCode::PathInvalid,
            Self::IdempotencyKeyReused => ErrorCode::IdempotencyKeyReused,
            Self::Io { .. } => ErrorCode::StoreIo,
        }
    }

    /// Whether the same call may succeed later unchanged.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        self.code().retryable()
    }

    /// What the system said while `doing` something.
    pub(crate) fn io(doing: impl Into<String>, cause: io::Error) -> Self {
        Self::Io { doing: doing.into(), cause: Arc::new(cause) }
    }
}

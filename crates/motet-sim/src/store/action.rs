//! What processes do, as a seed draws it: without knowing what the environment will hold.

use super::fault::Fault;
use super::model::Kept;
use super::model::body::{Body, Part};
use super::model::rules::{Shape, Spec};

/// One thing that one process does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Writes, all or nothing.
    Write(Vec<DrawnWrite>),
    Begin,
    ReadInside(Read),
    WriteInside(DrawnWrite),
    Commit,
    Define(u8, Spec),
    /// A type, the number of the index's name, and what it holds.
    CreateIndex(u8, u8, Shape),
    DropIndex(u8, u8),
    SetRetention(Kept),
    /// Pins the log under a name's number, so far behind its end, or takes the pin away.
    Pin(u8, Option<u64>),
    Maintain,
    Read(Read),
    /// Changes of the log, from so far behind its end.
    ReadLog(u64),
    /// The next changes of a reader that began at the log's beginning, so many at most.
    ReadPage(usize),
    /// Reads what the catalogue says of a type.
    Describe(u8),
    /// Sets the process's wall clock so far from true time, milliseconds.
    SetClock(i64),
    /// Nothing happens in the process for so long, milliseconds.
    Pause(u64),
    /// Ends the views that the process holds.
    ExpireViews,
    /// Ends the process's handle and opens another.
    Reopen,
}

#[derive(Clone, Debug)]
pub(crate) enum Read {
    Get(u8, u8),
    Range(u8, Keys),
    Query(u8, Search),
}

/// A range of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) prefix: bool,
    pub(crate) from: Option<u8>,
    pub(crate) limit: Option<usize>,
}

/// A query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    pub(crate) filter: Filter,
    pub(crate) sort: Sort,
    pub(crate) limit: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Filter {
    All,
    N(i64),
    NFrom(i64),
    NBetween(i64, i64),
    Tag(u8),
    U(u8),
    OpenN(i64),
    OpenU(u8),
    TagN(u8, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    None,
    N,
    NDescending,
    NThenUDescending,
}

/// A write whose version and references depend on what is there when it is made.
#[derive(Clone, Debug)]
pub(crate) struct DrawnWrite {
    pub(crate) kind: u8,
    pub(crate) key: u8,
    pub(crate) change: Change,
    pub(crate) if_version: Option<Expected>,
    pub(crate) expiry: super::model::write::Expiry,
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put(Body),
    Create(Body),
    Update(Body),
    Patch(Part),
    Remove,
}

/// The version that a write is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    None,
    Present,
    Stale,
}

/// A call of another process that comes in on the way.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) process: usize,
    pub(crate) action: Action,
    pub(crate) after_writes: u32,
    pub(crate) joins: bool,
}

/// One step of a run.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Time that passes before it, milliseconds.
    pub(crate) after_ms: u64,
    pub(crate) process: usize,
    pub(crate) action: Action,
    pub(crate) guests: Vec<Guest>,
    /// What happens to a group of deciders, and how many groups it lets pass first.
    pub(crate) fault: Option<(Fault, u32)>,
    pub(crate) reversed: bool,
}

/// Kinds of operations, for the coverage of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Put,
    Create,
    Update,
    Patch,
    Remove,
    Batch,
    Transaction,
    Define,
    CreateIndex,
    DropIndex,
    SetRetention,
    Pin,
    Maintain,
    Get,
    Range,
    Query,
    ReadLog,
    ReadPage,
    Describe,
}

impl Operation {
    pub(crate) const ALL: [Self; 19] = [
        Self::Put,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Remove,
        Self::Batch,
        Self::Transaction,
        Self::Define,
        Self::CreateIndex,
        Self::DropIndex,
        Self::SetRetention,
        Self::Pin,
        Self::Maintain,
        Self::Get,
        Self::Range,
        Self::Query,
        Self::ReadLog,
        Self::ReadPage,
        Self::Describe,
    ];

    pub(crate) const fn writes(self) -> bool {
        !matches!(
            self,
            Self::Get | Self::Range | Self::Query | Self::ReadLog | Self::ReadPage | Self::Describe
        )
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Remove => "remove",
            Self::Batch => "batch",
            Self::Transaction => "transaction",
            Self::Define => "define",
            Self::CreateIndex => "create-index",
            Self::DropIndex => "drop-index",
            Self::SetRetention => "retention",
            Self::Pin => "pin",
            Self::Maintain => "maintain",
            Self::Get => "get",
            Self::Range => "range",
            Self::Query => "query",
            Self::ReadLog => "read-log",
            Self::ReadPage => "read-page",
            Self::Describe => "describe",
        }
    }
}

impl Action {
    /// What it counts as; `None` for what is done to a process.
    pub(crate) fn operation(&self) -> Option<Operation> {
        Some(match self {
            Self::Write(writes) => match writes.as_slice() {
                [write] => match write.change {
                    Change::Put(_) => Operation::Put,
                    Change::Create(_) => Operation::Create,
                    Change::Update(_) => Operation::Update,
                    Change::Patch(_) => Operation::Patch,
                    Change::Remove => Operation::Remove,
                },
                _ => Operation::Batch,
            },
            Self::Commit => Operation::Transaction,
            Self::Define(..) => Operation::Define,
            Self::CreateIndex(..) => Operation::CreateIndex,
            Self::DropIndex(..) => Operation::DropIndex,
            Self::SetRetention(_) => Operation::SetRetention,
            Self::Pin(..) => Operation::Pin,
            Self::Maintain => Operation::Maintain,
            Self::Read(Read::Get(..)) => Operation::Get,
            Self::Read(Read::Range(..)) => Operation::Range,
            Self::Read(Read::Query(..)) => Operation::Query,
            Self::ReadLog(_) => Operation::ReadLog,
            Self::ReadPage(_) => Operation::ReadPage,
            Self::Describe(_) => Operation::Describe,
            Self::Begin
            | Self::ReadInside(_)
            | Self::WriteInside(_)
            | Self::SetClock(_)
            | Self::Pause(_)
            | Self::ExpireViews
            | Self::Reopen => return None,
        })
    }
}

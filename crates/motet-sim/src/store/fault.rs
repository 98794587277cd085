//! What goes wrong.

use super::action::Operation;
use crate::coverage::Coverage;

/// What strikes an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Another process commits between what it read and its own commit.
    Overtaken,
    /// It shares its group with another process's.
    Joined,
    /// Its group fails, and it is asked again.
    AskedTwice,
    /// Its group fails, and the first one fails again on its own.
    DiskFullOnce,
    /// Its group fails, and so does everyone on its own.
    DiskFull,
    /// Its process ends before the commit.
    CrashBefore,
    /// Its process ends after the commit and before the answer.
    CrashAfter,
    /// Another process has changed the catalogue since its process last looked.
    StaleCatalog,
    /// Its process's wall clock is behind the log's time.
    ClockBehind,
    /// Its process's wall clock is far ahead.
    ClockAhead,
}

impl Fault {
    /// All of them.
    pub(crate) const ALL: [Self; 10] = [
        Self::Overtaken,
        Self::Joined,
        Self::AskedTwice,
        Self::DiskFullOnce,
        Self::DiskFull,
        Self::CrashBefore,
        Self::CrashAfter,
        Self::StaleCatalog,
        Self::ClockBehind,
        Self::ClockAhead,
    ];

    /// Those that happen to a group of deciders.
    pub(crate) const OF_GROUPS: [Self; 5] =
        [Self::AskedTwice, Self::DiskFullOnce, Self::DiskFull, Self::CrashBefore, Self::CrashAfter];

    /// Whether it can happen to what only reads.
    pub(crate) const fn strikes_reads(self) -> bool {
        matches!(self, Self::StaleCatalog | Self::ClockBehind | Self::ClockAhead)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Overtaken => "overtaken",
            Self::Joined => "joined",
            Self::AskedTwice => "twice",
            Self::DiskFullOnce => "full-once",
            Self::DiskFull => "disk-full",
            Self::CrashBefore => "crash-before",
            Self::CrashAfter => "crash-after",
            Self::StaleCatalog => "catalog",
            Self::ClockBehind => "behind",
            Self::ClockAhead => "ahead",
        }
    }
}

/// The table of which faults struck which operations.
pub(crate) fn coverage() -> Coverage {
    let (rows, columns) = (Operation::ALL.map(Operation::name), Fault::ALL.map(Fault::name));
    // What only reads has no group of deciders.
    let can_be = |operation: usize, fault: usize| {
        Operation::ALL[operation].writes() || Fault::ALL[fault].strikes_reads()
    };
    Coverage::new("operation", &rows, &columns, can_be)
}

//! What a session writes down: before each call what it asks, and after it what it was told.
//!
//! A file of lines, each written at once, so that a killed process leaves all but its last line
//! whole. A call without an answer has an outcome that its session does not know.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use motet_store::{Change, Document};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Line {
    /// Writes that are about to be committed, under a name that each of their values carries, and
    /// what they were decided by.
    Attempt { by: String, reads: Reads, writes: Vec<Planned> },
    /// The attempt was committed, and gave these versions.
    Committed { by: String, versions: Vec<u64> },
    /// The attempt was refused, before the log had this end and at the latest at this time.
    Refused { by: String, code: String, why: String, head: u64, ms: u64 },
    /// Reads of one view that led to no write.
    Viewed { reads: Reads },
    /// A description of the type `Shape` is about to be set; only documents of this generation
    /// fit it.
    Describing { generation: u64, head: u64 },
    /// The description was set.
    Described { generation: u64, head: u64 },
    /// A tail gave this change.
    Saw(Seen),
    /// A transaction did not read what it wrote.
    Contradiction { what: String },
}

/// Reads of one view, between two looks at the log's end and at the wall clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reads {
    pub(crate) head_before: u64,
    pub(crate) head_after: u64,
    pub(crate) ms_before: u64,
    pub(crate) ms_after: u64,
    pub(crate) each: Vec<Read>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Read {
    Key {
        of: String,
        key: String,
        found: Option<Found>,
    },
    Prefix {
        of: String,
        prefix: String,
        limit: Option<usize>,
        found: Vec<Found>,
    },
    /// Those with this value in this field.
    Field {
        of: String,
        field: String,
        value: Value,
        found: Vec<Found>,
    },
}

/// A document as it was read; a transaction is told no version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) key: String,
    pub(crate) version: Option<u64>,
    pub(crate) value: Value,
}

impl From<&Document> for Found {
    fn from(document: &Document) -> Self {
        let version = Some(document.version.number());
        Self { key: document.key.clone(), version, value: document.value.clone() }
    }
}

/// A write, as it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Planned {
    Put {
        of: String,
        key: String,
        value: Value,
        ttl_ms: Option<u64>,
        how: How,
    },
    /// Adds to `n`, and names the attempt.
    Add {
        of: String,
        key: String,
        n: i64,
    },
    Remove {
        of: String,
        key: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum How {
    Put,
    Create,
    Update,
}

impl Planned {
    pub(crate) fn at(&self) -> (&str, &str) {
        match self {
            Self::Put { of, key, .. } | Self::Add { of, key, .. } | Self::Remove { of, key } => {
                (of, key)
            }
        }
    }
}

/// A change, as the log or a tail gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) clock: u64,
    pub(crate) of: String,
    pub(crate) key: String,
    pub(crate) op: String,
    pub(crate) previous: Option<u64>,
    pub(crate) time: u64,
    pub(crate) transaction: u64,
    pub(crate) value: Option<Value>,
}

impl From<&Change> for Seen {
    fn from(change: &Change) -> Self {
        Self {
            clock: change.clock.number(),
            of: change.type_name.clone(),
            key: change.key.clone(),
            op: format!("{:?}", change.op),
            previous: change.previous.map(motet_store::Clock::number),
            time: change.time.number(),
            transaction: change.transaction.number(),
            value: change.value.clone(),
        }
    }
}

/// Writes a session's history.
pub(crate) struct Recorder(File);

impl Recorder {
    /// A new history of a session.
    pub(crate) fn create(path: &Path) -> Self {
        Self(File::create_new(path).expect("a history of its own"))
    }

    pub(crate) fn note(&mut self, line: &Line) {
        self.note_all(std::slice::from_ref(line));
    }

    pub(crate) fn note_all(&mut self, lines: &[Line]) {
        let mut text = String::new();
        for line in lines {
            text += &serde_json::to_string(line).expect("a line can be written");
            text.push('\n');
        }
        self.0.write_all(text.as_bytes()).expect("a history can be written");
    }
}

/// A history, but for a last line that was cut short.
pub(crate) fn read(path: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path).expect("a history");
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).expect("a line")).collect()
}

/// The histories of all sessions of a kind, by session, each in the order of time.
pub(crate) fn read_all(directory: &Path, kind: &str) -> Vec<Vec<Line>> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
        .filter(|name| name.starts_with(kind))
        .collect();
    names.sort();
    names.iter().map(|name| read(&directory.join(name))).collect()
}

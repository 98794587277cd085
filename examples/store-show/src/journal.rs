//! What a worker was told, line by line. A line is one write to the file, so that a worker that is
//! killed leaves whole lines.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use motet_store::{Clock, Error};
use serde_json::json;

/// A worker's journal.
pub(crate) struct Journal(File);

/// When an operation began.
#[derive(Clone, Copy)]
pub(crate) struct Begun(u64);

impl Begun {
    pub(crate) fn now() -> Self {
        Self(now_us())
    }
}

impl Journal {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Self(file.with_context(|| format!("opening {}", path.display()))?))
    }

    /// The store acknowledged these changes of these documents.
    pub(crate) fn committed(
        &mut self,
        op: &str,
        begun: Begun,
        documents: &[(&str, &str)],
        clocks: &[Clock],
        conflicts: u32,
    ) -> Result<()> {
        let changes = documents.iter().zip(clocks);
        let changes: Vec<_> = changes
            .map(|((kind, key), clock)| json!({"type": kind, "key": key, "clock": clock.number()}))
            .collect();
        self.line(&json!({
            "op": op, "beganUs": begun.0, "endedUs": now_us(),
            "changes": changes, "conflicts": conflicts,
        }))
    }

    /// A query gave so many rows.
    pub(crate) fn queried(&mut self, begun: Begun, rows: usize) -> Result<()> {
        self.line(&json!({"op": "query", "beganUs": begun.0, "endedUs": now_us(), "rows": rows}))
    }

    /// The store refused; what it says.
    pub(crate) fn refused(&mut self, op: &str, begun: Begun, error: &Error) -> Result<()> {
        self.line(&json!({
            "op": op, "beganUs": begun.0, "endedUs": now_us(),
            "error": error.code().name(), "says": error.to_string(),
        }))
    }

    fn line(&mut self, value: &serde_json::Value) -> Result<()> {
        Ok(self.0.write_all(format!("{value}\n").as_bytes())?)
    }
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

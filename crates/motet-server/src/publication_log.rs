//! An audit log of every accepted publication: one JSON object per line, only ever appended to.
//!
//! It is written from the broker's own answers and knows nothing of deliveries, so whoever checks
//! deliveries can hold them against it.

use core::time::Duration;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use motet_realtime::message::StreamPosition;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::error;

/// Lines that may wait to be written. When the disk does not keep up the hub goes on and the log
/// says how many lines it lacks.
const WAITING_MAX: usize = 100_000;
/// How long a line may wait before it reaches the file.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);
/// Payloads up to so many bytes are logged as they are, larger ones by their hash alone.
const DATA_BYTES_MAX: usize = 4_096;

/// Appends to the log.
pub struct PublicationLog {
    lines: mpsc::Sender<String>,
    writer: JoinHandle<()>,
    skipped: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    ts_ms: u64,
    channel: &'a str,
    epoch: &'a str,
    offset: u64,
    size: usize,
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Skipped {
    ts_ms: u64,
    skipped: u64,
}

impl PublicationLog {
    /// Opens the log, creating it when it is not there.
    ///
    /// # Errors
    /// When the file cannot be opened for appending.
    pub async fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).append(true).open(path).await?;
        let (lines, mut waiting) = mpsc::channel::<String>(WAITING_MAX);
        let writer = tokio::spawn(async move {
            let mut batch = Vec::new();
            while waiting.recv_many(&mut batch, WAITING_MAX).await > 0 {
                let text: String = batch.drain(..).collect();
                let mut written = file.write_all(text.as_bytes()).await;
                if written.is_ok() {
                    written = file.flush().await;
                }
                if let Err(cause) = written {
                    error!(%cause, "the publication log cannot be written");
                }
                // More lines gather in the meantime and go out in one write.
                tokio::time::sleep(FLUSH_INTERVAL).await;
            }
        });
        Ok(Self { lines, writer, skipped: 0 })
    }

    /// Appends a publication.
    pub fn append(&mut self, channel: &str, position: Option<&StreamPosition>, data: &[u8]) {
        let line = Line {
            ts_ms: now_ms(),
            channel,
            epoch: position.map_or("", |position| &position.epoch),
            offset: position.map_or(0, |position| position.offset),
            size: data.len(),
            sha256: Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect(),
            data: (data.len() <= DATA_BYTES_MAX)
                .then(|| serde_json::from_slice(data).ok())
                .flatten(),
        };
        if self.skipped > 0 {
            let note = Skipped { ts_ms: line.ts_ms, skipped: self.skipped };
            if self.write(&note) {
                self.skipped = 0;
            }
        }
        if !self.write(&line) {
            self.skipped += 1;
        }
    }

    /// Writes what waits and closes the file.
    pub async fn close(self) {
        drop(self.lines);
        // An error says that the writer panicked; it has said so itself.
        self.writer.await.ok();
    }

    /// False when the line found no room.
    fn write(&self, line: &impl Serialize) -> bool {
        let Ok(mut text) = serde_json::to_string(line) else { return false };
        text.push('\n');
        self.lines.try_send(text).is_ok()
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

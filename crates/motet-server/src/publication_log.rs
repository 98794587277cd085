//! An audit log of every accepted publication: one JSON object per line, only ever appended to.
//!
//! It is written from the broker's own answers and knows nothing of deliveries, so whoever checks
//! deliveries can hold them against it.

use core::time::Duration;
use std::fs::TryLockError;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use motet_realtime::codec::json::append_line;
use motet_realtime::message::StreamPosition;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{error, warn};

/// Lines that may wait to be written. When the disk does not keep up the hub goes on and the log
/// says how many lines it lacks.
const WAITING_MAX: usize = 100_000;
/// How long a line may wait before it reaches the file.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);
/// Payloads up to so many bytes are logged as they are, larger ones by their hash alone.
const DATA_BYTES_MAX: usize = 4_096;

/// How every line begins.
const LINE_START: &[u8] = b"{\"ts_ms\":";
/// More than LINE_START has.
const BEGINNING_BYTES: u64 = 64;
/// More than the longest line has.
const TAIL_BYTES: u64 = 64 << 10;

/// Appends to the log.
pub struct PublicationLog {
    lines: mpsc::Sender<Vec<u8>>,
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
    /// When the file cannot be opened for appending, is something else than a log, or is written by
    /// another server.
    pub async fn open(path: &Path) -> io::Result<Self> {
        let options = OpenOptions::new().create(true).read(true).append(true).to_owned();
        let mut file = options.open(path).await?;
        // A pipe or a device has no past.
        if file.metadata().await?.is_file() {
            lock(&file).await?;
            check_beginning(&mut file).await?;
            cut_unfinished_line(&mut file).await?;
        }
        let (lines, waiting) = mpsc::channel(WAITING_MAX);
        let writer = tokio::spawn(Writer { file, lost: 0 }.run(waiting));
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
        line_of(line).is_some_and(|text| self.lines.try_send(text).is_ok())
    }
}

/// A line of the log. Payloads may have line breaks between their tokens, which would let whoever
/// publishes write lines of their own.
fn line_of(line: &impl Serialize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    append_line(&mut text, line).ok()?;
    text.push(b'\n');
    Some(text)
}

/// Whether a line is one of a log, or the beginning of one.
fn is_ours(line: &[u8]) -> bool {
    let known = line.len().min(LINE_START.len());
    line[..known] == LINE_START[..known]
}

fn no_log() -> io::Error {
    let text = "this file is no publication log: name another one, or one that does not exist";
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// A file that begins otherwise than a log is left alone: somebody named the wrong one.
async fn check_beginning(file: &mut File) -> io::Result<()> {
    file.seek(io::SeekFrom::Start(0)).await?;
    let mut beginning = Vec::new();
    file.take(BEGINNING_BYTES).read_to_end(&mut beginning).await?;
    // Writes that failed leave empty lines.
    if is_ours(beginning.trim_ascii_start()) { Ok(()) } else { Err(no_log()) }
}

/// A process that was killed while it wrote leaves half a line, which the next line would be
/// joined to. What ends otherwise than a log is left alone too.
async fn cut_unfinished_line(file: &mut File) -> io::Result<()> {
    let length = file.metadata().await?.len();
    let start = length.saturating_sub(TAIL_BYTES);
    file.seek(io::SeekFrom::Start(start)).await?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).await?;
    let mut backwards = tail.rsplit(|byte| *byte == b'\n');
    let unfinished = backwards.next().unwrap_or_default();
    // A write that failed leaves an empty line.
    let last = backwards.find(|line| !line.is_empty()).unwrap_or_default();
    if !is_ours(unfinished) || !is_ours(last) {
        return Err(no_log());
    }
    if unfinished.is_empty() {
        return Ok(());
    }
    warn!("the publication log ended with an unfinished line, which was cut off");
    file.set_len(length - unfinished.len() as u64).await
}

/// Writes lines in the order in which they come.
struct Writer<W> {
    file: W,
    /// Lines that could not be written since the last that could.
    lost: u64,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    async fn run(mut self, mut waiting: mpsc::Receiver<Vec<u8>>) {
        let mut batch = Vec::new();
        while waiting.recv_many(&mut batch, WAITING_MAX).await > 0 {
            self.write(&mut batch).await;
            // More lines gather in the meantime and go out in one write.
            tokio::time::sleep(FLUSH_INTERVAL).await;
        }
        if self.lost > 0 {
            error!(lines = self.lost, "the publication log lacks its last lines");
        }
    }

    async fn write(&mut self, batch: &mut Vec<Vec<u8>>) {
        let mut text = Vec::new();
        if self.lost > 0 {
            // The write that failed may have left half a line.
            text.push(b'\n');
            let note = Skipped { ts_ms: now_ms(), skipped: self.lost };
            text.extend(line_of(&note).unwrap_or_default());
        }
        text.extend(batch.iter().flatten());
        let mut written = self.file.write_all(&text).await;
        if written.is_ok() {
            written = self.file.flush().await;
        }
        match written {
            Ok(()) if self.lost > 0 => {
                warn!(lines = self.lost, "the publication log is written again; it lacks lines");
                self.lost = 0;
            }
            Ok(()) => {}
            Err(cause) => {
                if self.lost == 0 {
                    error!(%cause, "the publication log cannot be written: make room on its disk");
                }
                self.lost += batch.len() as u64;
            }
        }
        batch.clear();
    }
}

/// Locks the file for as long as it is open: two servers would cut each other's unfinished lines.
async fn lock(file: &File) -> io::Result<()> {
    // A clone shares the lock, and leaves it to the original when it is dropped.
    match file.try_clone().await?.into_std().await.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::other("another server writes this log; give each one its own"))
        }
        Err(TryLockError::Error(cause)) => Err(cause),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use serde_json::Value;

    use super::*;

    /// A disk with so much room.
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
    }

    impl AsyncWrite for Disk {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let fits = bytes.len().min(self.room);
            if fits == 0 {
                return Poll::Ready(Err(io::ErrorKind::StorageFull.into()));
            }
            self.room -= fits;
            self.bytes.extend_from_slice(&bytes[..fits]);
            Poll::Ready(Ok(fits))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn line(number: u64) -> String {
        format!("{{\"ts_ms\":{number},\"channel\":\"a\"}}\n")
    }

    #[tokio::test]
    async fn a_full_disk_is_told_in_the_log_once_there_is_room_again() {
        let disk = Disk { bytes: Vec::new(), room: line(1).len() + 5 };
        let mut writer = Writer { file: disk, lost: 0 };
        let lines = |numbers: &[u64]| numbers.iter().map(|n| line(*n).into()).collect::<Vec<_>>();
        writer.write(&mut lines(&[1])).await;
        writer.write(&mut lines(&[2, 3])).await;
        writer.write(&mut lines(&[4])).await;
        writer.file.room = 1_000;
        writer.write(&mut lines(&[5])).await;
        let text = String::from_utf8(writer.file.bytes).expect("text");
        let [first, half, note, last] = text.lines().collect::<Vec<_>>()[..] else {
            panic!("{text}")
        };
        let number = |line: &str, key: &str| {
            serde_json::from_str::<Value>(line).expect("JSON")[key].as_u64().expect("a number")
        };
        assert_eq!((number(first, "ts_ms"), number(last, "ts_ms")), (1, 5));
        assert_eq!((half, number(note, "skipped")), (&line(2)[..5], 3));
    }

    #[tokio::test]
    async fn a_log_has_one_writer_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        let first = PublicationLog::open(&path).await.expect("opened");
        let refused = PublicationLog::open(&path).await.err().map(|cause| cause.to_string());
        assert!(refused.is_some_and(|text| text.contains("another server")));
        first.close().await;
        PublicationLog::open(&path).await.expect("free again").close().await;
    }

    async fn reopened(before: &str) -> (io::Result<()>, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        std::fs::write(&path, before).expect("written");
        let outcome = match PublicationLog::open(&path).await {
            Ok(mut log) => {
                log.append("a", None, b"1");
                log.close().await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        (outcome, std::fs::read_to_string(&path).expect("a log"))
    }

    #[tokio::test]
    async fn the_half_line_of_a_killed_process_is_cut_off() {
        for half in ["", "{", "{\"ts_ms\":", "{\"ts_ms\":17,\"channel\":\"a\""] {
            let (outcome, text) = reopened(&format!("{}{half}", line(1))).await;
            outcome.expect("opened");
            assert!(text.starts_with(&line(1)), "{text}");
            let whole = text.lines().map(serde_json::from_str::<Value>);
            assert_eq!(whole.filter(Result::is_ok).count(), 2, "{text}");
            assert_eq!(text.lines().count(), 2, "{text}");
        }
    }

    #[tokio::test]
    async fn a_payload_with_line_breaks_is_one_line_and_no_line_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        let mut log = PublicationLog::open(&path).await.expect("opened");
        log.append("chat", None, b"[\n1,\r\n{\"ts_ms\":1,\"channel\":\"bank\"}\r\n]");
        log.append("chat", None, b"1\n{\"ts_ms\":1,\"channel\":\"bank\"}");
        log.close().await;
        let text = std::fs::read_to_string(&path).expect("a log");
        assert!(!text.contains('\r'), "{text}");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let channels: Vec<_> = lines.iter().map(|line| line["channel"].as_str()).collect();
        assert_eq!(channels, [Some("chat"), Some("chat")]);
        assert_eq!(lines[0]["data"][1]["channel"], "bank");
        assert_eq!(lines[1].get("data"), None, "no JSON, so its hash alone");
    }

    #[tokio::test]
    async fn a_file_that_is_no_log_is_left_as_it_is() {
        let behind = format!("{}a note\n", line(1));
        let before = format!("a note\n{}", line(1));
        let long = "x".repeat(100_000);
        for text in ["a note to myself", "a note\nto myself", "a note\n", &behind, &before, &long] {
            let (outcome, after) = reopened(text).await;
            let error = outcome.expect_err("refused").to_string();
            assert!(error.contains("no publication log"), "{error}");
            assert_eq!(after, text);
        }
    }
}

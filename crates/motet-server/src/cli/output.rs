//! What commands print: tables for people, JSON lines for programs, progress beside both.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::failure::CommandError;

/// How a command prints.
#[derive(Debug, Args)]
pub struct Form {
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
}

/// Where a command prints.
pub(super) struct Output {
    to: BufWriter<io::Stdout>,
}

impl Output {
    pub(super) fn new() -> Self {
        Self { to: BufWriter::new(io::stdout()) }
    }

    pub(super) fn line(&mut self, text: &str) -> Result<(), CommandError> {
        let written = self.to.write_all(text.as_bytes()).and_then(|()| self.to.write_all(b"\n"));
        written.map_err(|cause| CommandError::file("standard output", cause))
    }

    pub(super) fn json(&mut self, value: &impl Serialize) -> Result<(), CommandError> {
        self.line(&json_text(value))
    }

    /// A table; long cells are broken to fit the terminal, if it is one.
    pub(super) fn table<const N: usize>(
        &mut self,
        heads: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Result<(), CommandError> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(heads);
        if let Some(width) = terminal_width() {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        for row in rows {
            table.add_row(row);
        }
        self.line(&table.trim_fmt())
    }

    /// Hands on what is there, for whoever follows it.
    pub(super) fn flush(&mut self) -> Result<(), CommandError> {
        self.to.flush().map_err(|cause| CommandError::file("standard output", cause))
    }
}

/// A key as it can be shown: what would move a terminal's cursor is written out.
pub(super) fn shown(key: &str) -> String {
    let plain = !key.chars().any(char::is_control);
    if plain { key.to_owned() } else { key.escape_default().to_string() }
}

/// A value as JSON text.
pub(super) fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is printed can be written as JSON")
}

/// Says on stderr, now and then, how far a long work is.
pub(super) struct Progress {
    what: &'static str,
    unit: &'static str,
    done: u64,
    said: Instant,
    begun: Instant,
    is_terminal: bool,
    /// Whether the next output would overwrite a part of what it said last.
    is_in_line: bool,
    to: Box<dyn Write + Send>,
}

impl Progress {
    pub(super) fn new(what: &'static str) -> Self {
        let (now, to) = (Instant::now(), io::stderr());
        let (said, begun, is_terminal) = (now, now, to.is_terminal());
        let to = Box::new(to);
        Self { what, unit: "", done: 0, said, begun, is_terminal, is_in_line: false, to }
    }

    /// Does a work that writes files below a directory, and says how much it has written.
    pub(super) fn of_files<T>(
        what: &'static str,
        below: &Path,
        work: impl FnOnce() -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let before = bytes_below(below);
        let mut progress = Self::new(what);
        progress.unit = " MB";
        let (end, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                while ended.recv_timeout(EVERY_ON_TERMINAL) == Err(RecvTimeoutError::Timeout) {
                    let bytes = bytes_below(below).saturating_sub(before);
                    progress.reach(bytes / 1_000_000);
                }
            });
            let done = work();
            drop(end);
            done
        })
    }

    pub(super) fn add(&mut self, count: u64) {
        self.reach(self.done + count);
    }

    fn reach(&mut self, done: u64) {
        self.done = done;
        let every = if self.is_terminal { EVERY_ON_TERMINAL } else { EVERY_IN_FILE };
        if self.said.elapsed() >= every {
            self.said = Instant::now();
            self.say(self.is_terminal);
        }
    }

    /// The last word on it.
    pub(super) fn end(mut self) {
        self.say(false);
    }

    fn say(&mut self, is_in_line: bool) {
        self.is_in_line = is_in_line;
        let end = if is_in_line { "\r" } else { "\n" };
        let seconds = self.begun.elapsed().as_secs_f64();
        let Self { what, done, unit, to, .. } = self;
        // Progress that cannot be told is no reason to stop.
        write!(to, "{what}: {done}{unit} in {seconds:.1} s{end}").ok();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_in_line {
            self.say(false);
        }
    }
}

/// Bytes of all files below a directory, which others may change meanwhile.
fn bytes_below(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

fn terminal_width() -> Option<u16> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    (size.ws_col > 20).then_some(size.ws_col)
}

const EVERY_ON_TERMINAL: Duration = Duration::from_millis(200);
const EVERY_IN_FILE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_line_that_was_begun_on_a_terminal_is_ended_whatever_becomes_of_the_work() {
        let said = |is_terminal: bool, done: u64| {
            let (mut from, to) = io::pipe().expect("a pipe");
            let mut progress = Progress::new("done");
            (progress.is_terminal, progress.to) = (is_terminal, Box::new(to));
            progress.said -= if done > 0 { EVERY_IN_FILE } else { Duration::ZERO };
            progress.add(done);
            drop(progress);
            let mut text = String::new();
            from.read_to_string(&mut text).expect("text");
            text
        };
        let (terminal, file) = (said(true, 3), said(false, 3));
        assert!(terminal.contains('\r') && terminal.ends_with(" s\n"), "{terminal:?}");
        assert_eq!(
            (file.matches("done: 3").count(), file.ends_with(" s\n")),
            (1, true),
            "{file:?}"
        );
        assert_eq!(said(true, 0), "", "what was not begun is not ended");
    }
}

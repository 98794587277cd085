//! npm `lmdb`, in a process of its own that takes turns with the others (`lmdb-js.ts`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// The process; it ends with this value.
pub(crate) struct LmdbJs {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl LmdbJs {
    pub(crate) fn open(path: &Path, indexed: bool) -> Result<Self> {
        let script = std::env::var_os("MOTET_LMDB_JS");
        let script = script.context("MOTET_LMDB_JS is not set: use cargo xtask bench store")?;
        let mut node = Command::new("node");
        node.args(["--import", "tsx"]).arg(script).arg(path).arg(indexed.to_string());
        let mut child = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let asks = child.stdin.take().context("its input is piped")?;
        let answers = BufReader::new(child.stdout.take().context("its output is piped")?);
        Ok(Self { child, asks, answers })
    }

    /// Has it make the documents that come next, which is not measured.
    pub(crate) fn prepare(&mut self, first: u64, count: u64) -> Result<()> {
        self.ask(&format!("{first} {count}"), "ready")
    }

    /// Has it write them.
    pub(crate) fn write(&mut self) -> Result<()> {
        self.ask("write", "done")
    }

    fn ask(&mut self, line: &str, expected: &str) -> Result<()> {
        writeln!(self.asks, "{line}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        ensure!(answer.trim() == expected, "lmdb-js.ts says {answer:?} to {line:?}");
        Ok(())
    }
}

impl Drop for LmdbJs {
    fn drop(&mut self) {
        // What it holds is thrown away with the folder.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

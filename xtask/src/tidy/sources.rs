//! The text files of the repository.

use std::fs;
use std::time::Duration;

use anyhow::Result;

use crate::process;
use crate::workspace::{command, root};

/// File name endings of what people write here.
const EXTENSIONS: [&str; 15] = [
    "rs", "ts", "tsx", "mts", "mjs", "js", "html", "css", "toml", "json", "md", "sh", "py", "yml",
    "vue",
];
const EXTENSIONLESS: [&str; 2] = [".ci/run", ".npmrc"];

/// One text file.
pub(super) struct Source {
    /// From the root, with slashes.
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// The last part of the path.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether a tool writes the whole file.
    pub(super) fn is_generated(&self) -> bool {
        self.text.lines().next().is_some_and(|line| line.contains("by `cargo xtask generate`"))
            || self.path == "docs/errors.md"
    }

    /// A lock file of a package manager.
    pub(super) fn is_lock(&self) -> bool {
        matches!(self.name(), "Cargo.lock" | "package-lock.json")
    }

    /// Whether the whole file is test code.
    pub(super) fn is_test(&self) -> bool {
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self.path.contains(".test.")
            || self.name() == "tests.rs"
            || self.name().ends_with("_test.rs")
            || self.name().ends_with("_tests.rs")
    }
}

/// All text files, in the order of their paths.
pub(super) struct Sources(Vec<Source>);

impl Sources {
    /// Reads what git tracks or would track.
    pub(super) fn load() -> Result<Self> {
        let mut git = command("git");
        git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
        let listed = process::capture(&mut git, Duration::from_secs(60))?;
        let mut sources = Vec::new();
        for path in listed.split('\0').filter(|path| is_text(path)) {
            // A file that was removed but not yet committed is still listed.
            let Ok(bytes) = fs::read(root().join(path)) else { continue };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            sources.push(Source { path: path.to_owned(), text });
        }
        sources.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Self(sources))
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let source = |(path, text): &(&str, &str)| Source {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        Self(files.iter().map(source).collect())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Source> {
        self.0.iter()
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.0.iter().filter(|source| source.extension() == "rs")
    }

    pub(super) fn find(&self, path: &str) -> Option<&Source> {
        self.0.iter().find(|source| source.path == path)
    }
}

fn is_text(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    EXTENSIONS.contains(&extension) || EXTENSIONLESS.contains(&path) || path == "Cargo.lock"
}

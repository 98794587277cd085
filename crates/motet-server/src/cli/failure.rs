//! Why a command did not do what it was asked to.

use std::io;

use motet_protocol::ErrorCode;
use thiserror::Error;

/// Why a command did not do what it was asked to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The store refused it.
    #[error(transparent)]
    Store(#[from] motet_store::Error),
    /// What was given is not what the command takes.
    #[error("{what}: {why}")]
    Input {
        /// What was given.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file cannot be read or written.
    #[error("{what}: {cause}")]
    File {
        /// The file.
        what: String,
        /// Why.
        cause: io::Error,
    },
    /// The command cannot be done.
    #[error("{what}")]
    Refused {
        /// Its code.
        code: ErrorCode,
        /// What it is about.
        what: String,
    },
}

impl CommandError {
    /// The code of the error table.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Input { .. } => ErrorCode::CommandInvalid,
            Self::File { .. } => ErrorCode::FileUnusable,
            Self::Refused { code, .. } => *code,
        }
    }

    /// Code, what happened, to what, and what to do: for a terminal.
    #[must_use]
    pub fn report(&self) -> String {
        let info = self.code().info();
        format!("{}: {} {self}\n  {}", info.name, info.message, info.next_step)
    }

    /// Whether whoever read the output has gone, and wants no more of it.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::File { cause, .. } if cause.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(super) fn input(what: impl Into<String>, why: &impl ToString) -> Self {
        Self::Input { what: what.into(), why: why.to_string() }
    }

    pub(super) fn file(what: impl Into<String>, cause: io::Error) -> Self {
        Self::File { what: what.into(), cause }
    }
}

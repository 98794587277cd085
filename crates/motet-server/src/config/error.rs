//! Why a configuration was refused.

use std::io;

use motet_protocol::ErrorCode;
use thiserror::Error;

/// Why a configuration was refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {cause}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        cause: io::Error,
    },
    /// The file is not TOML.
    #[error("{file}: line {line}: {expected}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        expected: String,
    },
    /// A key is not known.
    #[error("{file}: {key}: {expected}")]
    UnknownKey {
        /// The file.
        file: String,
        /// The key's path.
        key: String,
        /// The keys that are known there.
        expected: String,
    },
    /// A key has a value that cannot be used.
    #[error("{file}: {key}: {expected}")]
    Invalid {
        /// The file.
        file: String,
        /// The key's path.
        key: String,
        /// What is wrong with it, or what is expected there.
        expected: String,
    },
}

impl ConfigError {
    /// The code of the error table.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownKey { .. } => ErrorCode::ServerConfigUnknownKey,
            _ => ErrorCode::ServerConfigInvalid,
        }
    }

    pub(super) fn invalid(file: &str, key: impl Into<String>, expected: impl Into<String>) -> Self {
        let expected = format!("expected {}", expected.into());
        Self::Invalid { file: file.to_owned(), key: key.into(), expected }
    }

    pub(super) fn syntax(file: &str, text: &str, cause: &toml::de::Error) -> Self {
        let rendered = cause.to_string();
        let line = rendered
            .split_once("line ")
            .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next())
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(1);
        // What stands before the value; the value itself may be a secret.
        let source = text.lines().nth(line - 1).unwrap_or_default();
        let name = source.split('=').next().unwrap_or_default().trim();
        let mut expected = cause.message().to_owned();
        if expected == "duplicate key" {
            expected = format!("{name}: this is set before; remove one of the two");
        }
        Self::Syntax { file: file.to_owned(), line, expected }
    }

    pub(super) fn from_path(
        file: &str,
        cause: &serde_path_to_error::Error<toml::de::Error>,
    ) -> Self {
        let key = cause.path().to_string();
        let expected = with_range(cause.inner().message());
        let file = file.to_owned();
        if expected.starts_with("unknown field") {
            Self::UnknownKey { file, key, expected }
        } else {
            Self::Invalid { file, key, expected }
        }
    }
}

/// Says in numbers what the name of a type says to those who know it.
fn with_range(message: &str) -> String {
    let ranges = [
        ("u16", u64::from(u16::MAX)),
        ("u32", u64::from(u32::MAX)),
        // The largest number of the format.
        ("u64", i64::MAX.unsigned_abs()),
        ("usize", i64::MAX.unsigned_abs()),
    ];
    for (name, max) in ranges {
        if let Some(start) = message.strip_suffix(&format!("expected {name}")) {
            return format!("{start}expected a whole number from 0 to {max}");
        }
    }
    message.to_owned()
}

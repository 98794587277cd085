//! Why the server did not start.

use std::io;
use std::net::{IpAddr, SocketAddr};

use motet_protocol::ErrorCode;
use thiserror::Error;

use crate::auth::KeyError;
use crate::config::ConfigError;

/// Why the server did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The configuration was refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address to listen on is none.
    #[error("{address}: {cause}")]
    Address {
        /// The text given.
        address: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The address cannot be listened on.
    #[error("{address}: {cause}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: io::Error,
    },
    /// The certificate or key cannot be used.
    #[error("{0}")]
    Tls(String),
    /// A token key cannot be used.
    #[error("{0}")]
    TokenKey(#[from] KeyError),
    /// The publication log cannot be opened.
    #[error("{path}: {cause}")]
    PublicationLog {
        /// The file.
        path: String,
        /// Why.
        cause: io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] motet_store::Error),
    /// A store without tokens would be open to others.
    #[error("{address} can be reached from other machines")]
    TokensRequired {
        /// The address to listen on.
        address: IpAddr,
    },
    /// A token cannot be made.
    #[error("no token can be made: {0}")]
    Token(String),
}

impl ServerError {
    /// The code of the error table.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Config(error) => error.code(),
            Self::Bind { cause, .. } if cause.kind() == io::ErrorKind::AddrInUse => {
                ErrorCode::AddressInUse
            }
            Self::Bind { .. } | Self::Address { .. } => ErrorCode::AddressRefused,
            Self::Store(error) => error.code(),
            Self::TokensRequired { .. } => ErrorCode::TokensRequired,
            Self::Tls(_) => ErrorCode::TlsInvalid,
            Self::TokenKey(_) | Self::PublicationLog { .. } | Self::Token(_) => {
                ErrorCode::ServerConfigInvalid
            }
        }
    }

    /// Code, what happened, to what, and what to do: one line for a terminal.
    #[must_use]
    pub fn report(&self) -> String {
        let info = self.code().info();
        format!("{}: {} {self}\n  {}", info.name, info.message, info.next_step)
    }
}

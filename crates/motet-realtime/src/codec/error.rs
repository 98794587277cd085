//! Why bytes are no message, or a message cannot become bytes.

use crate::message::DisconnectCode;

/// The cause of a malformed message, as its parser tells it.
pub type Cause = Box<dyn core::error::Error + Send + Sync>;

/// Bytes that are no frame of messages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A client's frame without a command.
    #[error("the frame is empty")]
    EmptyFrame,
    /// The frame is larger than the limit.
    #[error("the frame has {bytes} bytes, more than the limit")]
    FrameTooLarge {
        /// Its size.
        bytes: usize,
    },
    /// A message is, or claims to be, larger than the limit.
    #[error("a message has {bytes} bytes, more than the limit")]
    MessageTooLarge {
        /// Its size.
        bytes: usize,
    },
    /// A length prefix promises more than the frame holds, or is no number.
    #[error("a length prefix does not match the frame")]
    LengthPrefix,
    /// A command holds several requests, of which only one could be answered.
    #[error("a command holds more than one request")]
    SeveralRequests,
    /// A message does not parse.
    #[error("a message does not parse")]
    Malformed(#[source] Cause),
}

impl DecodeError {
    /// The code with which a server closes the connection of a client that sent this.
    #[must_use]
    pub const fn disconnect_code(&self) -> DisconnectCode {
        match self {
            Self::FrameTooLarge { .. } | Self::MessageTooLarge { .. } => {
                DisconnectCode::MESSAGE_TOO_BIG
            }
            Self::EmptyFrame | Self::LengthPrefix | Self::SeveralRequests | Self::Malformed(_) => {
                DisconnectCode::BAD_REQUEST
            }
        }
    }
}

/// A message that has no form in an encoding.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A payload is not JSON, so it cannot be embedded in a JSON message.
    #[error("the payload is not JSON")]
    PayloadNotJson(#[source] Cause),
}

impl EncodeError {
    /// The code with which a server closes the connection of a client that should get this.
    #[must_use]
    pub const fn disconnect_code(&self) -> DisconnectCode {
        match self {
            Self::PayloadNotJson(_) => DisconnectCode::INAPPROPRIATE_PROTOCOL,
        }
    }
}

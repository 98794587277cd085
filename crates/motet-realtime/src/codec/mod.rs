//! Encodings of the messages: JSON and Protobuf, each usable without the other.
//!
//! A frame is what one WebSocket message carries: several protocol messages, separated by `\n`
//! (JSON) or prefixed with their length (Protobuf). Decoding is lazy, one message at a time, so
//! that a bad message costs nothing beyond itself and a frame of a thousand messages needs no
//! thousandfold memory. [`Encoding`] chooses at run time; a caller with one encoding uses
//! [`json`] or [`protobuf`] alone.

mod error;
mod framing;
pub mod json;
mod payload;
pub mod protobuf;

use bytes::Bytes;

pub use error::{Cause, DecodeError, EncodeError};

pub use framing::{Frame, Framing};

use crate::message::{Command, Reply};

/// Sizes beyond which a frame is not even looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one frame.
    pub frame_bytes_max: usize,
    /// Bytes of one message in it, without its delimiter.
    pub message_bytes_max: usize,
}

impl Limits {
    /// What a server accepts of a client unless configured otherwise: 64 KiB.
    pub const COMMANDS: Self = Self { frame_bytes_max: 64 << 10, message_bytes_max: 64 << 10 };

    /// What a client accepts of its server: 16 MiB, room for a full recovery.
    pub const REPLIES: Self = Self { frame_bytes_max: 16 << 20, message_bytes_max: 16 << 20 };

    fn check_frame(&self, frame: &Bytes) -> Result<(), DecodeError> {
        if frame.len() > self.frame_bytes_max {
            return Err(DecodeError::FrameTooLarge { bytes: frame.len() });
        }
        Ok(())
    }

    fn check_message(&self, bytes: usize) -> Result<(), DecodeError> {
        if bytes > self.message_bytes_max {
            return Err(DecodeError::MessageTooLarge { bytes });
        }
        Ok(())
    }
}

/// The encoding of a connection, fixed for its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Text frames.
    #[default]
    Json,
    /// Binary frames.
    Protobuf,
}

/// The commands of one frame, decoded one by one. Ends after the first error.
pub enum Commands {
    /// Of a JSON frame.
    Json(json::Commands),
    /// Of a Protobuf frame.
    Protobuf(protobuf::Commands),
}

/// The replies of one frame, decoded one by one. Ends after the first error.
pub enum Replies {
    /// Of a JSON frame.
    Json(json::Replies),
    /// Of a Protobuf frame.
    Protobuf(protobuf::Replies),
}

impl Encoding {
    /// Appends a command to a frame.
    ///
    /// # Errors
    /// [`EncodeError`] when the payload does not fit the encoding; the frame is unchanged then.
    pub fn append_command(
        self,
        frame: &mut Vec<u8>,
        command: &Command<Bytes>,
    ) -> Result<(), EncodeError> {
        match self {
            Self::Json => json::append_command(frame, command),
            Self::Protobuf => {
                protobuf::append_command(frame, command);
                Ok(())
            }
        }
    }

    /// Appends a reply to a frame.
    ///
    /// # Errors
    /// [`EncodeError`] when the payload does not fit the encoding; the frame is unchanged then.
    pub fn append_reply(
        self,
        frame: &mut Vec<u8>,
        reply: &Reply<Bytes>,
    ) -> Result<(), EncodeError> {
        match self {
            Self::Json => json::append_reply(frame, reply),
            Self::Protobuf => {
                protobuf::append_reply(frame, reply);
                Ok(())
            }
        }
    }

    /// Appends a message that was encoded before, as the only one of its frame. Encoding once and
    /// appending for each subscriber is what makes a broadcast cheap.
    pub fn append_encoded(self, frame: &mut Vec<u8>, message: &[u8]) {
        if self == Self::Json {
            json::separate(frame);
        }
        frame.extend_from_slice(message);
    }

    /// The commands of a frame.
    ///
    /// # Errors
    /// [`DecodeError`] when the frame is empty or too large.
    pub fn commands(self, frame: Bytes, limits: Limits) -> Result<Commands, DecodeError> {
        Ok(match self {
            Self::Json => Commands::Json(json::Commands::new(frame, limits)?),
            Self::Protobuf => Commands::Protobuf(protobuf::Commands::new(frame, limits)?),
        })
    }

    /// The replies of a frame.
    ///
    /// # Errors
    /// [`DecodeError`] when the frame is too large.
    pub fn replies(self, frame: Bytes, limits: Limits) -> Result<Replies, DecodeError> {
        Ok(match self {
            Self::Json => Replies::Json(json::Replies::new(frame, limits)?),
            Self::Protobuf => Replies::Protobuf(protobuf::Replies::new(frame, limits)?),
        })
    }
}

impl Iterator for Commands {
    type Item = Result<Command<Bytes>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Json(commands) => commands.next(),
            Self::Protobuf(commands) => commands.next(),
        }
    }
}

impl Iterator for Replies {
    type Item = Result<Reply<Bytes>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Json(replies) => replies.next(),
            Self::Protobuf(replies) => replies.next(),
        }
    }
}

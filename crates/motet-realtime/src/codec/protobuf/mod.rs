//! Protobuf: each message prefixed with its length as an unsigned varint.
//!
//! A length prefix is only ever compared with what the frame holds; nothing is allocated for it.
//! Fields that are not known are skipped.

mod command;
mod publication;
mod reply;
mod wire;

use bytes::{Buf as _, Bytes};
use prost::Message;

use super::{DecodeError, Limits, payload};
use crate::message::{Command, Reply};

/// Appends a command to a frame.
pub fn append_command(frame: &mut Vec<u8>, command: &Command<Bytes>) {
    append(frame, &wire::Command::encode(command));
}

/// Appends a reply to a frame.
pub fn append_reply(frame: &mut Vec<u8>, reply: &Reply<Bytes>) {
    append(frame, &wire::Reply::encode(reply));
}

fn append(frame: &mut Vec<u8>, message: &impl Message) {
    message.encode_length_delimited(frame).expect("a vector has room for every message");
}

/// The commands of one frame, decoded one by one. Ends after the first error.
pub struct Commands(Delimited);

impl Commands {
    /// Starts with the first command.
    ///
    /// # Errors
    /// [`DecodeError`] when the frame is empty or too large.
    pub fn new(frame: Bytes, limits: Limits) -> Result<Self, DecodeError> {
        if frame.is_empty() {
            return Err(DecodeError::EmptyFrame);
        }
        Delimited::new(frame, limits).map(Self)
    }
}

impl Iterator for Commands {
    type Item = Result<Command<Bytes>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self(messages) = self;
        let message = messages.next_message::<wire::Command>()?;
        let command = message.and_then(|(wire, source)| wire.decode(source));
        if command.is_err() {
            messages.rest.clear();
        }
        Some(command)
    }
}

/// The replies of one frame, decoded one by one. Ends after the first error.
pub struct Replies(Delimited);

impl Replies {
    /// Starts with the first reply.
    ///
    /// # Errors
    /// [`DecodeError`] when the frame is too large.
    pub fn new(frame: Bytes, limits: Limits) -> Result<Self, DecodeError> {
        Delimited::new(frame, limits).map(Self)
    }
}

impl Iterator for Replies {
    type Item = Result<Reply<Bytes>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (wire, source) = match self.0.next_message::<wire::Reply>()? {
            Ok(decoded) => decoded,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(wire.decode(source)))
    }
}

/// The messages of a frame.
struct Delimited {
    rest: Bytes,
    frame_bytes: usize,
    limits: Limits,
}

impl Delimited {
    fn new(frame: Bytes, limits: Limits) -> Result<Self, DecodeError> {
        limits.check_frame(&frame)?;
        Ok(Self { frame_bytes: frame.len(), rest: frame, limits })
    }

    fn next_message<M: Message + Default>(&mut self) -> Option<Result<(M, Source), DecodeError>> {
        if self.rest.is_empty() {
            return None;
        }
        let message = self.split_message().and_then(|bytes| {
            M::decode(bytes).map_err(|error| DecodeError::Malformed(error.into()))
        });
        if message.is_err() {
            self.rest.clear();
        }
        Some(message.map(|message| (message, Source { frame_bytes: self.frame_bytes })))
    }

    fn split_message(&mut self) -> Result<Bytes, DecodeError> {
        let length = prost::encoding::decode_varint(&mut self.rest)
            .map_err(|_| DecodeError::LengthPrefix)?;
        let length = usize::try_from(length).map_err(|_| DecodeError::LengthPrefix)?;
        self.limits.check_message(length)?;
        if length > self.rest.remaining() {
            return Err(DecodeError::LengthPrefix);
        }
        Ok(self.rest.split_to(length))
    }
}

/// The frame that the payloads of a parsed message may share memory with.
#[derive(Clone, Copy)]
struct Source {
    frame_bytes: usize,
}

impl Source {
    fn payload(self, payload: Bytes) -> Bytes {
        payload::detach(payload, self.frame_bytes)
    }

    fn optional(self, payload: Bytes) -> Option<Bytes> {
        payload::present(self.payload(payload))
    }
}

/// An optional payload as a field: absent when there is none.
fn field(payload: Option<&Bytes>) -> Bytes {
    payload.cloned().unwrap_or_default()
}

//! JSON: one object per message, separated by `\n`, payloads embedded as they are.
//!
//! Zero values are left out. A payload is checked to be JSON and loses its raw line breaks, which
//! stand between tokens only; otherwise not one byte of it changes. Members that are not known are
//! ignored, and `null` counts as absent everywhere but in a payload.

mod command;
mod publication;
mod reply;
mod wire;

use std::io;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{DecodeError, EncodeError, Limits, payload};
use crate::message::{Command, Reply};

/// Appends a command to a frame.
///
/// # Errors
/// [`EncodeError`] when the payload is not JSON; the frame is unchanged then.
pub fn append_command(frame: &mut Vec<u8>, command: &Command<Bytes>) -> Result<(), EncodeError> {
    append(frame, &wire::Command::encode(command)?);
    Ok(())
}

/// Appends a reply to a frame.
///
/// # Errors
/// [`EncodeError`] when the payload is not JSON; the frame is unchanged then.
pub fn append_reply(frame: &mut Vec<u8>, reply: &Reply<Bytes>) -> Result<(), EncodeError> {
    append(frame, &wire::Reply::encode(reply)?);
    Ok(())
}

/// Ends the last message of a frame, if there is one, so that another can follow.
pub(super) fn separate(frame: &mut Vec<u8>) {
    if !frame.is_empty() {
        frame.push(b'\n');
    }
}

fn append(frame: &mut Vec<u8>, message: &impl Serialize) {
    separate(frame);
    append_line(frame, message).expect("messages have string keys");
}

/// Appends a value as one line, whatever is embedded in it; the line break after it is left to the
/// caller.
///
/// # Errors
/// When the value has no form in JSON, such as a map whose keys are no texts.
pub fn append_line(text: &mut Vec<u8>, value: &impl Serialize) -> Result<(), serde_json::Error> {
    serde_json::to_writer(SingleLine(text), value)
}

/// Drops raw line breaks. Those of strings are escaped by the serializer and those of an embedded
/// payload can only stand between its tokens.
struct SingleLine<'a>(&'a mut Vec<u8>);

impl io::Write for SingleLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.contains(&b'\n') || bytes.contains(&b'\r') {
            self.0.extend(bytes.iter().filter(|byte| !matches!(byte, b'\n' | b'\r')));
        } else {
            self.0.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The commands of one frame, decoded one by one. Ends after the first error.
pub struct Commands(Lines);

impl Commands {
    /// Starts with the first command.
    ///
    /// # Errors
    /// [`DecodeError`] when the frame is empty or too large.
    pub fn new(frame: Bytes, limits: Limits) -> Result<Self, DecodeError> {
        if frame.is_empty() {
            return Err(DecodeError::EmptyFrame);
        }
        Ok(Self(Lines::new(frame, limits)?))
    }
}

impl Iterator for Commands {
    type Item = Result<Command<Bytes>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self(lines) = self;
        let line = lines.next()?;
        let frame = &lines.frame;
        let command = line.and_then(|line| {
            let wire: wire::Command<'_> = serde_json::from_slice(&line).map_err(malformed)?;
            wire.decode(&Source { frame })
        });
        if command.is_err() {
            self.0.end();
        }
        Some(command)
    }
}

/// The replies of one frame, decoded one by one. Ends after the first error; blank lines are
/// skipped.
pub struct Replies(Lines);

impl Replies {
    /// Starts with the first reply.
    ///
    /// # Errors
    /// [`DecodeError`] when the frame is too large.
    pub fn new(frame: Bytes, limits: Limits) -> Result<Self, DecodeError> {
        Ok(Self(Lines::new(frame, limits)?))
    }
}

impl Iterator for Replies {
    type Item = Result<Reply<Bytes>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self(lines) = self;
        let line =
            lines.find(|line| line.as_ref().map_or(true, |line| !line.trim_ascii().is_empty()))?;
        let frame = &lines.frame;
        let reply = line.and_then(|line| {
            let wire: wire::Reply<'_> = serde_json::from_slice(&line).map_err(malformed)?;
            Ok(wire.decode(&Source { frame }))
        });
        if reply.is_err() {
            self.0.end();
        }
        Some(reply)
    }
}

fn malformed(error: serde_json::Error) -> DecodeError {
    DecodeError::Malformed(error.into())
}

/// The lines of a frame; one line break at its end begins no further line.
struct Lines {
    frame: Bytes,
    limits: Limits,
    next: usize,
}

impl Lines {
    fn new(frame: Bytes, limits: Limits) -> Result<Self, DecodeError> {
        limits.check_frame(&frame)?;
        Ok(Self { frame, limits, next: 0 })
    }

    fn end(&mut self) {
        self.next = self.frame.len();
    }
}

impl Iterator for Lines {
    type Item = Result<Bytes, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.frame.get(self.next..).filter(|rest| !rest.is_empty())?;
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = self.frame.slice(self.next..self.next + length);
        self.next += length + 1;
        Some(self.limits.check_message(length).map(|()| line))
    }
}

/// The frame that the raw values of a parsed message point into.
struct Source<'a> {
    frame: &'a Bytes,
}

impl Source<'_> {
    fn payload(&self, raw: Option<&RawValue>) -> Bytes {
        raw.map_or_else(Bytes::new, |raw| {
            payload::detach(self.frame.slice_ref(raw.get().as_bytes()), self.frame.len())
        })
    }

    fn optional(&self, raw: Option<&RawValue>) -> Option<Bytes> {
        raw.map(|raw| self.payload(Some(raw)))
    }
}

/// A payload as a JSON value; an empty one is an absent one.
fn embed(payload: &Bytes) -> Result<Option<&RawValue>, EncodeError> {
    if payload.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(payload)
        .map(Some)
        .map_err(|error| EncodeError::PayloadNotJson(error.into()))
}

fn embed_optional(payload: Option<&Bytes>) -> Result<Option<&RawValue>, EncodeError> {
    payload.map_or(Ok(None), embed)
}

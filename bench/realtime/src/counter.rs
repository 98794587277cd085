//! Counts deliveries in what a subscriber's socket gives, message by message.

use anyhow::{Context as _, Result};
use memchr::{memchr, memchr_iter};

use crate::frame::Decoder;

/// What a piece of a stream held.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) deliveries: u64,
    pub(crate) pings: u64,
}

/// The counting of one connection.
pub(crate) enum Counter {
    Motet(Box<Lines>),
    Nats(Box<Messages>),
    Redis(Fixed),
}

impl Counter {
    /// Counts what is complete in a piece of the stream.
    pub(crate) fn feed(&mut self, input: &[u8]) -> Result<Counted> {
        match self {
            Self::Motet(lines) => lines.feed(input),
            Self::Nats(messages) => messages.feed(input),
            Self::Redis(fixed) => Ok(fixed.feed(input)),
        }
    }
}

/// Centrifuge JSON in WebSocket frames: a publication a line, a ping is `{}`.
#[derive(Default)]
pub(crate) struct Lines {
    decoder: Decoder,
    length: usize,
}

impl Lines {
    const PING_BYTES: usize = 2;

    fn feed(&mut self, mut input: &[u8]) -> Result<Counted> {
        let mut counted = Counted::default();
        while let Some(piece) = self.decoder.next(&mut input)? {
            let mut begin = 0;
            for end in memchr_iter(b'\n', piece.bytes) {
                self.length += end - begin;
                self.end(&mut counted);
                begin = end + 1;
            }
            self.length += piece.bytes.len() - begin;
            if piece.ends {
                self.end(&mut counted);
            }
        }
        Ok(counted)
    }

    fn end(&mut self, counted: &mut Counted) {
        match std::mem::take(&mut self.length) {
            0 => {}
            Self::PING_BYTES => counted.pings += 1,
            _ => counted.deliveries += 1,
        }
    }
}

/// NATS: a line `MSG subject sid size`, then the payload and a line end.
#[derive(Default)]
pub(crate) struct Messages {
    line: Vec<u8>,
    payload_left: usize,
}

impl Messages {
    fn feed(&mut self, mut input: &[u8]) -> Result<Counted> {
        let mut counted = Counted::default();
        while !input.is_empty() {
            if self.payload_left > 0 {
                let taken = self.payload_left.min(input.len());
                self.payload_left -= taken;
                input = &input[taken..];
                counted.deliveries += u64::from(self.payload_left == 0);
                continue;
            }
            let Some(end) = memchr(b'\n', input) else {
                self.line.extend_from_slice(input);
                break;
            };
            if self.line.is_empty() {
                self.payload_left = read_line(&input[..end], &mut counted)?;
            } else {
                self.line.extend_from_slice(&input[..end]);
                self.payload_left = read_line(&self.line, &mut counted)?;
                self.line.clear();
            }
            input = &input[end + 1..];
        }
        Ok(counted)
    }
}

/// Bytes that follow the line: the payload and its line end.
fn read_line(line: &[u8], counted: &mut Counted) -> Result<usize> {
    if line.starts_with(b"PING") {
        counted.pings += 1;
    }
    if !line.starts_with(b"MSG ") {
        return Ok(0);
    }
    let digits = line.trim_ascii_end().rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let size: usize = std::str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse().ok())
        .context("a NATS message without a size")?;
    Ok(size + 2)
}

/// Redis: nothing but messages of one size.
pub(crate) struct Fixed {
    message_bytes: usize,
    partial: usize,
}

impl Fixed {
    pub(crate) fn new(message_bytes: usize) -> Self {
        Self { message_bytes, partial: 0 }
    }

    fn feed(&mut self, input: &[u8]) -> Counted {
        let bytes = self.partial + input.len();
        self.partial = bytes % self.message_bytes;
        Counted { deliveries: (bytes / self.message_bytes) as u64, pings: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(mut counter: Counter, stream: &[u8], step: usize) -> Counted {
        let mut sum = Counted::default();
        for part in stream.chunks(step) {
            let counted = counter.feed(part).unwrap();
            sum.deliveries += counted.deliveries;
            sum.pings += counted.pings;
        }
        sum
    }

    #[test]
    fn lines_are_publications_but_for_pings() {
        let stream = b"\x81\x0f{\"push\":1}\n{}\n\n\x81\x0a{\"push\":2}";
        for step in [1, 3, stream.len()] {
            let counted = total(Counter::Motet(Box::default()), stream, step);
            assert_eq!(counted, Counted { deliveries: 2, pings: 1 });
        }
    }

    #[test]
    fn nats_messages_are_counted_when_their_payload_is_whole() {
        let stream =
            b"MSG bench 1 3\r\nabc\r\nPING\r\nMSG bench 1 3\r\nM\nG\r\nMSG bench 1 5\r\nab";
        for step in [1, 4, stream.len()] {
            let counted = total(Counter::Nats(Box::default()), stream, step);
            assert_eq!(counted, Counted { deliveries: 2, pings: 1 });
        }
    }
}

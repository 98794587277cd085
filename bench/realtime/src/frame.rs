//! WebSocket frames as a client writes and reads them.

use anyhow::{Result, bail};

/// The key may be any; a load generator has no reason to draw one for each frame.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
const TEXT: u8 = 0x81;
const OPCODE_CLOSE: u8 = 8;

/// Appends a text frame.
pub(crate) fn append_text(out: &mut Vec<u8>, payload: &[u8]) {
    out.push(TEXT);
    match u16::try_from(payload.len()) {
        Ok(length @ 0..=125) => out.push(0x80 | length.to_be_bytes()[1]),
        Ok(length) => {
            out.push(0x80 | 126);
            out.extend(length.to_be_bytes());
        }
        Err(_) => {
            out.push(0x80 | 127);
            out.extend((payload.len() as u64).to_be_bytes());
        }
    }
    out.extend(MASK);
    out.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

/// The HTTP request that makes a connection a WebSocket.
pub(crate) fn upgrade(port: u16) -> String {
    format!(
        "GET /connection/websocket HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Version: 13\r\n\r\n"
    )
}

/// Where the answer to [`upgrade`] ends, once all of it is there.
pub(crate) fn upgraded(answer: &[u8]) -> Result<Option<usize>> {
    let Some(end) = memchr::memmem::find(answer, b"\r\n\r\n") else { return Ok(None) };
    if !answer.starts_with(b"HTTP/1.1 101") {
        let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        bail!("the server refused the WebSocket: {}", String::from_utf8_lossy(line));
    }
    Ok(Some(end + 4))
}

/// A part of a frame's payload.
pub(crate) struct Piece<'a> {
    pub(crate) bytes: &'a [u8],
    /// The frame ends with it.
    pub(crate) ends: bool,
}

/// Takes frames apart as their bytes come, without copying them.
#[derive(Default)]
pub(crate) struct Decoder {
    header: Vec<u8>,
    left: u64,
    in_payload: bool,
}

impl Decoder {
    /// The next part of a payload; takes it off the input.
    pub(crate) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>> {
        while !self.in_payload {
            let Some((byte, rest)) = input.split_first() else { return Ok(None) };
            self.header.push(*byte);
            *input = rest;
            self.begin_payload()?;
        }
        if input.is_empty() && self.left > 0 {
            return Ok(None);
        }
        let taken = input.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let (bytes, rest) = input.split_at(taken);
        *input = rest;
        self.left -= taken as u64;
        let ends = self.left == 0;
        self.in_payload = !ends;
        Ok(Some(Piece { bytes, ends }))
    }

    fn begin_payload(&mut self) -> Result<()> {
        let [first, second, extended @ ..] = self.header.as_slice() else { return Ok(()) };
        let wanted = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if extended.len() < wanted {
            return Ok(());
        }
        if first & 0x0f == OPCODE_CLOSE {
            bail!("the server closed the WebSocket");
        }
        self.left = match wanted {
            0 => u64::from(second & 0x7f),
            _ => extended.iter().fold(0, |length, byte| (length << 8) | u64::from(*byte)),
        };
        self.header.clear();
        self.in_payload = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(stream: &[u8], step: usize) -> Vec<Vec<u8>> {
        let mut decoder = Decoder::default();
        let (mut frames, mut frame) = (Vec::new(), Vec::new());
        for mut part in stream.chunks(step) {
            while let Some(piece) = decoder.next(&mut part).unwrap() {
                frame.extend_from_slice(piece.bytes);
                if piece.ends {
                    frames.push(std::mem::take(&mut frame));
                }
            }
        }
        frames
    }

    #[test]
    fn frames_of_all_sizes_come_out_whole_however_they_are_cut() {
        let mut stream = Vec::new();
        let payloads = [vec![], vec![1; 5], vec![2; 125], vec![3; 126], vec![4; 70_000]];
        for payload in &payloads {
            stream.push(TEXT);
            match payload.len() {
                short @ 0..=125 => stream.push(short as u8),
                medium @ 126..=0xffff => {
                    stream.push(126);
                    stream.extend((medium as u16).to_be_bytes());
                }
                long => {
                    stream.push(127);
                    stream.extend((long as u64).to_be_bytes());
                }
            }
            stream.extend(payload);
        }
        for step in [1, 7, 1_000, stream.len()] {
            assert_eq!(decoded(&stream, step), payloads);
        }
    }

    #[test]
    fn a_written_frame_carries_its_payload_masked() {
        let mut out = Vec::new();
        append_text(&mut out, b"hello");
        assert_eq!(out[..2], [0x81, 0x85]);
        let back: Vec<_> = out[6..].iter().zip(MASK.iter().cycle()).map(|(a, b)| a ^ b).collect();
        assert_eq!(back, b"hello");
    }
}

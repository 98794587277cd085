//! Many commands into few frames.

use bytes::Bytes;
use motet_protocol::{Error, ErrorCode};

use super::EncodeError;
use crate::message::Command;

/// Commands as frames, in order.
#[derive(Debug, Default)]
pub struct Packed {
    /// The frames.
    pub frames: Vec<Vec<u8>>,
    /// Ids of commands that are in none of them, and why.
    pub left_out: Vec<(u32, Error)>,
}

/// Puts commands into as few frames as a limit of bytes per frame allows, with the `append` of one
/// encoding. A command that is too large or cannot be encoded is left out and named.
pub fn pack(
    commands: &[Command<Bytes>],
    frame_bytes_max: usize,
    append: impl Fn(&mut Vec<u8>, &Command<Bytes>) -> Result<(), EncodeError>,
) -> Packed {
    let mut packed = Packed::default();
    let mut frame = Vec::new();
    for command in commands {
        let end = frame.len();
        if append(&mut frame, command).is_err() {
            packed.left_out.push((command.id, ErrorCode::Uncloneable.into()));
            continue;
        }
        if frame.len() <= frame_bytes_max {
            continue;
        }
        frame.truncate(end);
        if end > 0 {
            packed.frames.push(core::mem::take(&mut frame));
        }
        // It was encoded before, so it is encoded again, without a delimiter before it.
        if append(&mut frame, command).is_err() || frame.len() > frame_bytes_max {
            frame.clear();
            packed.left_out.push((command.id, ErrorCode::PayloadTooLarge.into()));
        }
    }
    if !frame.is_empty() {
        packed.frames.push(frame);
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Encoding, Limits};
    use crate::message::{PublishRequest, Request};

    fn publish(id: u32, payload: &str) -> Command<Bytes> {
        let data = Bytes::copy_from_slice(payload.as_bytes());
        let channel = "c".to_owned();
        Command::new(id, Request::Publish(PublishRequest { channel, data, kind: 0, motet: None }))
    }

    #[test]
    fn a_frame_ends_where_the_next_command_would_not_fit() {
        let commands: Vec<_> = (1..=20).map(|id| publish(id, "\"0123456789\"")).collect();
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let packed = encoding.pack(&commands, 200);
            assert!(packed.frames.len() > 1 && packed.left_out.is_empty());
            assert!(packed.frames.iter().all(|frame| frame.len() <= 200));
            let decode =
                |frame: Vec<u8>| encoding.commands(frame.into(), Limits::COMMANDS).unwrap();
            let decoded: Result<Vec<_>, _> = packed.frames.into_iter().flat_map(decode).collect();
            assert_eq!(decoded.unwrap(), commands);
            assert_eq!(encoding.pack(&commands, 10_000).frames.len(), 1);
        }
    }

    #[test]
    fn what_cannot_be_sent_is_left_out_by_name() {
        let long = "9".repeat(300);
        let commands = [publish(1, "1"), publish(2, &long), publish(3, "{"), publish(4, "4")];
        let packed = Encoding::Json.pack(&commands, 200);
        let named: Vec<_> = packed.left_out.iter().map(|(id, error)| (*id, error.code)).collect();
        assert_eq!(named, [(2, ErrorCode::PayloadTooLarge), (3, ErrorCode::Uncloneable)]);
        assert_eq!(packed.frames.len(), 2);
    }
}

//! Which commands share a frame, and which are too large for any.

use motet_protocol::{Error, ErrorCode};

use crate::message::{Command, Request};

/// What a frame is written into: lines of text, or messages with their lengths before them.
pub trait Frame: Default {
    /// Bytes on the wire.
    fn bytes(&self) -> usize;

    /// Appends a frame of one message.
    fn append(&mut self, message: &Self);
}

impl Frame for String {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn append(&mut self, message: &Self) {
        if !self.is_empty() {
            self.push('\n');
        }
        self.push_str(message);
    }
}

impl Frame for Vec<u8> {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn append(&mut self, message: &Self) {
        self.extend_from_slice(message);
    }
}

/// Puts commands into as few frames as the server's limit allows, and learns where the server
/// takes less than it was said to.
#[derive(Debug)]
pub struct Framing {
    /// Most bytes of one command.
    command_bytes_max: usize,
    /// Most bytes of a publication, whose size is the application's: the server took no more.
    publication_bytes_max: usize,
    /// Commands share a frame up to this size.
    frame_bytes_max: usize,
    /// The limit that the server was said to have.
    said_bytes_max: usize,
    /// The largest frame of this connection.
    largest: Written,
}

/// A frame as the server may judge it.
#[derive(Debug, Default)]
struct Written {
    bytes: usize,
    /// Its commands, and whether each is a publication.
    commands: Vec<(u32, bool)>,
}

impl Framing {
    /// For a server that takes so many bytes in a frame.
    #[must_use]
    pub fn new(frame_bytes_max: usize) -> Self {
        Self {
            command_bytes_max: frame_bytes_max,
            publication_bytes_max: frame_bytes_max,
            frame_bytes_max,
            said_bytes_max: frame_bytes_max,
            largest: Written::default(),
        }
    }

    /// Takes the server's limit for what it was said to be again. A close can be mistaken, or the
    /// server may have been given another limit: whoever asks to try anew is not held to what was
    /// learnt before.
    pub fn forget_refusals(&mut self) {
        self.publication_bytes_max = self.said_bytes_max;
        self.frame_bytes_max = self.said_bytes_max;
    }

    /// A connection begins.
    pub fn begin(&mut self) {
        self.largest = Written::default();
    }

    /// Encodes commands and writes them as frames, in order. Returns those that were left out: too
    /// large, or without a form in the encoding.
    pub fn pack<P, F: Frame>(
        &mut self,
        commands: Vec<Command<P>>,
        encode: impl Fn(Command<P>) -> Result<F, Error>,
        mut write: impl FnMut(F),
    ) -> Vec<(u32, Error)> {
        let mut left_out = Vec::new();
        let (mut frame, mut written) = (F::default(), Written::default());
        for command in commands {
            let id = command.id;
            let publishes = matches!(command.request, Some(Request::Publish(_)));
            let encoded = match encode(command) {
                Ok(encoded) => encoded,
                Err(error) => {
                    left_out.push((id, error));
                    continue;
                }
            };
            if let Err(error) = self.admit(encoded.bytes(), publishes) {
                left_out.push((id, error));
                continue;
            }
            let full = written.bytes + 1 + encoded.bytes() > self.frame_bytes_max;
            if full && written.bytes > 0 {
                write(core::mem::take(&mut frame));
                self.note(core::mem::take(&mut written));
            }
            frame.append(&encoded);
            written.bytes = frame.bytes();
            written.commands.push((id, publishes));
        }
        if written.bytes > 0 {
            write(frame);
            self.note(written);
        }
        left_out
    }

    fn admit(&self, bytes: usize, publishes: bool) -> Result<(), Error> {
        let most = if publishes { self.publication_bytes_max } else { self.command_bytes_max };
        if bytes <= most { Ok(()) } else { Err(too_large(bytes, most)) }
    }

    fn note(&mut self, written: Written) {
        if written.bytes > self.largest.bytes {
            self.largest = written;
        }
    }

    /// The server has closed the connection because a frame was too large (close code 1009).
    /// Returns the commands that it did not take, as far as they are known, each with its error.
    ///
    /// At least one frame was beyond the limit, hence the largest was. When it held one command,
    /// that one is to blame; a publication of its size is not written again. When it held several,
    /// the next frames are half as large, and its publications may be sent anew.
    pub fn refused(&mut self) -> Vec<(u32, Error)> {
        let Written { bytes, commands } = core::mem::take(&mut self.largest);
        if let [(id, publishes)] = commands[..] {
            if publishes {
                self.publication_bytes_max = bytes - 1;
            }
            return vec![(id, too_large(bytes, bytes - 1))];
        }
        if !commands.is_empty() {
            self.frame_bytes_max = bytes / 2;
        }
        let publications = commands.into_iter().filter(|(_, publishes)| *publishes);
        publications.map(|(id, _)| (id, ErrorCode::TransportUnavailable.into())).collect()
    }
}

fn too_large(bytes: usize, most: usize) -> Error {
    Error::new(ErrorCode::PayloadTooLarge).with_detail(format!("{bytes} bytes, at most {most}"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::codec::{Encoding, Limits};
    use crate::message::{PublishRequest, SubscribeRequest};

    fn publish(id: u32, payload: &str) -> Command<Bytes> {
        let data = Bytes::copy_from_slice(payload.as_bytes());
        let channel = "c".to_owned();
        Command::new(id, Request::Publish(PublishRequest { channel, data, kind: 0, motet: None }))
    }

    fn subscribe(id: u32, token: usize) -> Command<Bytes> {
        let token = "t".repeat(token);
        let request = SubscribeRequest { channel: "c".into(), token, ..Default::default() };
        Command::new(id, Request::Subscribe(Box::new(request)))
    }

    fn text(command: &Command<Bytes>) -> Result<String, Error> {
        let mut frame = Vec::new();
        match Encoding::Json.append_command(&mut frame, command) {
            Ok(()) => Ok(String::from_utf8(frame).expect("JSON is text")),
            Err(_) => Err(ErrorCode::Uncloneable.into()),
        }
    }

    /// The frames of some commands, and what was left out.
    fn pack(
        framing: &mut Framing,
        commands: Vec<Command<Bytes>>,
    ) -> (Vec<String>, Vec<(u32, ErrorCode)>) {
        let mut frames = Vec::new();
        let left_out = framing.pack(commands, |command| text(&command), |frame| frames.push(frame));
        (frames, left_out.into_iter().map(|(id, error)| (id, error.code)).collect())
    }

    #[test]
    fn a_frame_ends_where_the_next_command_would_not_fit() {
        let commands: Vec<_> = (1..=20).map(|id| publish(id, "\"0123456789\"")).collect();
        let binary = |command| {
            let mut frame = Vec::new();
            Encoding::Protobuf.append_command(&mut frame, &command).expect("bytes are bytes");
            Ok(frame)
        };
        let (lines, left_out) = pack(&mut Framing::new(200), commands.clone());
        let mut frames = Vec::new();
        let write = |frame: Vec<u8>| frames.push(frame);
        assert_eq!(Framing::new(200).pack(commands.clone(), binary, write), []);
        assert_eq!(left_out, []);

        let lines: Vec<_> = lines.into_iter().map(String::into_bytes).collect();
        for (encoding, frames) in [(Encoding::Json, lines), (Encoding::Protobuf, frames)] {
            assert!(frames.len() > 1 && frames.iter().all(|frame| frame.len() <= 200));
            let decode =
                |frame: Vec<u8>| encoding.commands(frame.into(), Limits::COMMANDS).unwrap();
            let decoded: Result<Vec<_>, _> = frames.into_iter().flat_map(decode).collect();
            assert_eq!(decoded.unwrap(), commands);
        }
        assert_eq!(pack(&mut Framing::new(10_000), commands).0.len(), 1);
    }

    #[test]
    fn what_cannot_be_sent_is_left_out_by_name() {
        let long = "9".repeat(300);
        let commands = vec![publish(1, "1"), publish(2, &long), publish(3, "{"), publish(4, "4")];
        let (frames, left_out) = pack(&mut Framing::new(200), commands);
        assert_eq!(left_out, [(2, ErrorCode::PayloadTooLarge), (3, ErrorCode::Uncloneable)]);
        assert_eq!(frames.len(), 1, "the others share a frame");
    }

    #[test]
    fn a_command_of_exactly_the_limit_is_sent_and_one_byte_more_is_not() {
        let bytes = text(&publish(1, "12345678")).unwrap().len();
        let commands = vec![publish(1, "12345678"), publish(2, "123456789")];
        let (frames, left_out) = pack(&mut Framing::new(bytes), commands);
        assert_eq!(left_out, [(2, ErrorCode::PayloadTooLarge)]);
        assert_eq!(frames.iter().map(String::len).collect::<Vec<_>>(), [bytes]);
    }

    #[test]
    fn the_one_command_of_a_refused_frame_is_to_blame_and_its_size_is_not_written_again() {
        let mut framing = Framing::new(10_000);
        pack(&mut framing, vec![publish(1, "1")]);
        pack(&mut framing, vec![publish(2, &"9".repeat(600))]);
        pack(&mut framing, vec![publish(3, "3")]);
        let blamed = framing.refused();
        assert_eq!(blamed.len(), 1);
        assert_eq!((blamed[0].0, blamed[0].1.code), (2, ErrorCode::PayloadTooLarge));
        framing.begin();
        let again = vec![publish(1, &"9".repeat(600)), publish(2, &"9".repeat(599))];
        assert_eq!(pack(&mut framing, again).1, [(1, ErrorCode::PayloadTooLarge)]);
        assert_eq!(pack(&mut framing, vec![subscribe(3, 2_000)]).1, [], "it is no publication");
    }

    #[test]
    fn a_refused_frame_of_several_is_halved_until_the_one_to_blame_is_alone() {
        let mut framing = Framing::new(10_000);
        let commands = || {
            let mut commands: Vec<_> = (1..=40).map(|id| subscribe(id, 40)).collect();
            commands.push(publish(41, &"9".repeat(900)));
            commands
        };
        let mut rounds = 0;
        let blamed = loop {
            framing.begin();
            rounds += 1;
            let (frames, left_out) = pack(&mut framing, commands());
            assert_eq!(left_out, []);
            assert!(frames.iter().any(|frame| frame.len() > 500), "the server takes 500 bytes");
            let blamed = framing.refused();
            assert_eq!(blamed.len(), usize::from(blamed.iter().any(|(id, _)| *id == 41)));
            if blamed.iter().any(|(_, error)| error.code == ErrorCode::PayloadTooLarge) {
                break blamed;
            }
        };
        assert!(rounds <= 5, "{rounds} connections");
        assert_eq!(blamed[0].0, 41);
        framing.begin();
        let (frames, left_out) = pack(&mut framing, commands());
        assert_eq!(left_out, [(41, ErrorCode::PayloadTooLarge)]);
        assert!(frames.len() > 1, "the others go out as before");
    }

    #[test]
    fn what_was_learnt_from_a_refusal_can_be_forgotten() {
        let mut framing = Framing::new(100);
        for commands in [vec![publish(1, "1")], vec![publish(2, "2"), subscribe(3, 1)]] {
            framing.begin();
            pack(&mut framing, commands);
            framing.refused();
        }
        let both = || vec![publish(4, "4"), publish(5, "5")];
        framing.begin();
        let refused = [(4, ErrorCode::PayloadTooLarge), (5, ErrorCode::PayloadTooLarge)];
        assert_eq!(pack(&mut framing, both()).1, refused);
        framing.forget_refusals();
        let (frames, left_out) = pack(&mut framing, both());
        assert_eq!((frames.len(), left_out), (1, vec![]), "they share a frame as before");
        let large = vec![publish(6, &"9".repeat(200))];
        assert_eq!(pack(&mut framing, large).1, [(6, ErrorCode::PayloadTooLarge)]);
    }

    #[test]
    fn a_connection_that_wrote_nothing_blames_nothing() {
        let mut framing = Framing::new(100);
        assert_eq!(framing.refused(), []);
        pack(&mut framing, vec![publish(1, "1")]);
        framing.begin();
        assert_eq!(framing.refused(), [], "what an earlier connection wrote is history");
    }
}

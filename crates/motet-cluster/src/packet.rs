//! What one post on a channel or port carries: frames, and beside them the payloads they refer to.

use minicbor::{Encode, Encoder};
use motet_protocol::NodeId;

use crate::compact::{Compact, Reader};
use crate::frame::Slot;
use crate::name::PROTOCOL_MAJOR;

/// Most bytes of encoded frames in one packet; a larger one is refused.
pub const PACKET_BYTES_MAX: usize = 4 << 20;

/// Most payloads in one packet.
pub const PACKET_PAYLOADS_MAX: usize = 65_536;

/// Frames of one sender, in order, with their payloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<F, P> {
    /// The sending node; a page sends under its node's id.
    pub from: NodeId,
    /// The frames, in order.
    pub frames: Vec<F>,
    /// The payloads that the frames' slots name.
    pub payloads: Vec<P>,
}

/// Why a packet was dropped whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketError {
    /// Not a packet.
    Malformed,
    /// A packet of another protocol major, or foreign data.
    OtherMajor,
    /// Larger than [`PACKET_BYTES_MAX`] or [`PACKET_PAYLOADS_MAX`].
    TooLarge,
}

impl<F, P> Packet<F, P> {
    /// An empty packet of this sender.
    #[must_use]
    pub const fn new(from: NodeId) -> Self {
        Self { from, frames: Vec::new(), payloads: Vec::new() }
    }

    /// A packet with one frame and no payload.
    #[must_use]
    pub fn single(from: NodeId, frame: F) -> Self {
        Self { from, frames: vec![frame], payloads: Vec::new() }
    }

    /// Puts a payload in and returns its slot.
    pub fn attach(&mut self, payload: P) -> Slot {
        self.payloads.push(payload);
        self.payloads.len() as Slot - 1
    }

    /// The payload in a slot; `None` when a foreign frame names one that is not there.
    #[must_use]
    pub fn payload(&self, slot: Slot) -> Option<&P> {
        self.payloads.get(slot as usize)
    }
}

impl<F: Encode<()>, P> Packet<F, P> {
    /// Encodes the frames; payloads travel beside the bytes, as they are.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new(Vec::with_capacity(64));
        let result = (|| {
            encoder.array(3)?.u32(PROTOCOL_MAJOR)?.encode(self.from)?;
            encoder.array(self.frames.len() as u64)?;
            self.frames.iter().try_for_each(|frame| encoder.encode(frame).map(|_| ()))
        })();
        match result {
            Ok(()) => encoder.into_writer(),
            Err(_) => unreachable!("writing into a Vec does not fail"),
        }
    }
}

impl<F: Compact, P> Packet<F, P> {
    /// Decodes frames and puts the payloads beside them. The number says how many frames were
    /// skipped because they are malformed or of a newer build.
    ///
    /// # Errors
    ///
    /// See [`PacketError`]. Lengths inside are never trusted for allocation.
    pub fn decode(bytes: &[u8], payloads: Vec<P>) -> Result<(Self, u32), PacketError> {
        if bytes.len() > PACKET_BYTES_MAX || payloads.len() > PACKET_PAYLOADS_MAX {
            return Err(PacketError::TooLarge);
        }
        let mut input = Reader::new(bytes);
        let fields = input.array();
        let major = u32::read(&mut input);
        if input.failed() || fields < 3 {
            return Err(PacketError::Malformed);
        }
        if major != PROTOCOL_MAJOR {
            return Err(PacketError::OtherMajor);
        }
        let from = NodeId::read(&mut input);
        let count = input.array();
        let mut packet = Self { from, frames: Vec::new(), payloads };
        let mut skipped = 0;
        for _ in 0..count {
            let mut attempt = Reader::new(input.rest());
            let frame = F::read(&mut attempt);
            if attempt.failed() {
                input.skip();
                skipped += 1;
            } else {
                packet.frames.push(frame);
                input = attempt;
            }
            if input.failed() {
                break;
            }
        }
        if input.failed() { Err(PacketError::Malformed) } else { Ok((packet, skipped)) }
    }
}

#[cfg(test)]
mod tests {
    use motet_protocol::{Fence, Generation, Position, RouteFence, StreamEpoch};

    use super::*;
    use crate::frame::{Frame, PageFrame};

    type Post = Packet<Frame, u64>;

    fn head() -> Frame {
        Frame::Head {
            topic: "price.feed".into(),
            fence: RouteFence {
                fence: Fence { incarnation: 1, epoch: 2 },
                generation: Generation::FIRST,
            },
            position: Position::new(StreamEpoch::new("abcdefgh"), 3),
            history: true,
        }
    }

    #[test]
    fn a_packet_comes_back_as_it_was() {
        let mut packet = Post::new(NodeId::from_bits(5));
        assert_eq!(packet.attach(77), 0);
        packet.frames.extend([head(), Frame::Beat { fence: Fence::default() }]);
        let decoded = Post::decode(&packet.encode(), vec![77]);
        assert_eq!(decoded, Ok((packet, 0)));
    }

    #[test]
    fn what_a_page_announces_is_read_as_the_frame_of_that_number() {
        let leaving = PageFrame::Leaving { node: NodeId::from_bits(7), graceful: true };
        let posted = Packet::<_, u64>::single(NodeId::from_bits(5), leaving.clone()).encode();
        let (packet, skipped) = Post::decode(&posted, vec![]).expect("a packet");
        assert_eq!((packet.frames, skipped), (vec![Frame::from(leaving)], 0));
    }

    #[test]
    fn a_frame_of_a_newer_build_is_skipped_and_counted() {
        let mut encoder = Encoder::new(Vec::new());
        encoder.array(3).and_then(|e| e.u32(PROTOCOL_MAJOR)).and_then(|e| e.u64(5)).expect("vec");
        encoder.array(2).expect("vec");
        encoder
            .array(2)
            .and_then(|e| e.u32(999))
            .and_then(|e| e.array(1))
            .and_then(|e| e.str("new"))
            .expect("vec");
        encoder.encode(head()).expect("vec");
        let (packet, skipped) = Post::decode(&encoder.into_writer(), vec![]).expect("a packet");
        assert_eq!((packet.frames, skipped), (vec![head()], 1));
    }

    #[test]
    fn foreign_bytes_and_other_majors_are_refused() {
        assert_eq!(Post::decode(b"{\"topic\":1}", vec![]), Err(PacketError::Malformed));
        let mut bytes = Post::single(NodeId::from_bits(1), head()).encode();
        assert_eq!(bytes[1], 1, "the major is the first field");
        bytes[1] = 2;
        assert_eq!(Post::decode(&bytes, vec![]), Err(PacketError::OtherMajor));
        for cut in 0..bytes.len() {
            assert!(Post::decode(&bytes[..cut], vec![]).is_err());
        }
    }
}

//! What travels: packets as bytes, with their payloads beside them, sometimes as a newer build
//! would have written them.

use std::rc::Rc;

use minicbor::data::Type;
use minicbor::{Decoder, Encode, Encoder};
use motet_cluster::Packet;
use motet_cluster::compact::Compact;
use motet_cluster::name::PROTOCOL_MAJOR;

/// Fields beyond this number are unknown to every frame of this build.
const KNOWN_FIELDS_MAX: u64 = 16;

/// One post.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    bytes: Rc<[u8]>,
    payloads: Rc<[u64]>,
}

impl Post {
    /// The packet as this build writes it, or as a newer one would.
    pub(crate) fn of<F: Encode<()>>(packet: &Packet<F, u64>, newer: bool) -> Self {
        let bytes = if newer { encode_newer(packet) } else { packet.encode() };
        Self { bytes: bytes.into(), payloads: packet.payloads.as_slice().into() }
    }

    /// Reads a packet back; `None` when the receiver would drop it whole.
    pub(crate) fn packet<F: Compact>(&self) -> Option<Packet<F, u64>> {
        Packet::decode(&self.bytes, self.payloads.to_vec()).ok().map(|(packet, _)| packet)
    }
}

/// Appends an unknown field to every frame and puts unknown frames between them.
fn encode_newer<F: Encode<()>>(packet: &Packet<F, u64>) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::with_capacity(128));
    let result = (|| {
        encoder.array(3)?.u32(PROTOCOL_MAJOR)?.encode(packet.from)?;
        encoder.array(packet.frames.len() as u64 + 1)?;
        encoder.array(2)?.u32(999)?.array(1)?.str("of a newer build")?;
        for frame in &packet.frames {
            let bytes =
                minicbor::to_vec(frame).map_err(|_| minicbor::encode::Error::message(""))?;
            encoder.writer_mut().extend(with_unknown_field(&bytes));
        }
        Ok::<(), minicbor::encode::Error<core::convert::Infallible>>(())
    })();
    result.expect("writing into a Vec does not fail");
    encoder.into_writer()
}

/// A frame is `[variant, [fields...]]`: lengthens its fields by nulls up to the last known one,
/// then by one more.
fn with_unknown_field(frame: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(frame);
    let read = (|| {
        decoder.array()?;
        let variant = decoder.u32()?;
        let fields = match decoder.datatype()? {
            Type::Array => decoder.array()?.unwrap_or(0),
            _ => KNOWN_FIELDS_MAX,
        };
        Ok::<_, minicbor::decode::Error>((variant, fields, decoder.position()))
    })();
    let Ok((variant, fields, start)) = read else { return frame.to_vec() };
    if fields >= KNOWN_FIELDS_MAX {
        return frame.to_vec();
    }
    let mut encoder = Encoder::new(Vec::with_capacity(frame.len() + 32));
    let head = encoder
        .array(2)
        .and_then(|e| e.u32(variant))
        .and_then(|e| e.array(KNOWN_FIELDS_MAX + 1))
        .map(|_| ());
    head.expect("writing into a Vec does not fail");
    encoder.writer_mut().extend_from_slice(&frame[start..]);
    for _ in fields..KNOWN_FIELDS_MAX {
        encoder.null().map(|_| ()).expect("writing into a Vec does not fail");
    }
    encoder.str("unknown").map(|_| ()).expect("writing into a Vec does not fail");
    encoder.into_writer()
}

#[cfg(test)]
mod tests {
    use motet_cluster::frame::{Frame, ToPage};
    use motet_protocol::{CallId, Fence, NodeId};

    use super::*;

    #[test]
    fn a_post_of_a_newer_build_is_understood() {
        let fence = Fence { incarnation: 3, epoch: 4 };
        let mut packet = Packet::new(NodeId::from_bits(1));
        packet.frames = vec![
            Frame::Beat { fence },
            Frame::Published { call: CallId::from_bits(5), error: None },
            Frame::Leaving { node: NodeId::from_bits(2), graceful: true },
        ];
        assert_eq!(Post::of(&packet, true).packet(), Some(packet));
        let mut packet = Packet::new(NodeId::from_bits(1));
        packet.frames =
            vec![ToPage::Closed, ToPage::Pong { node: NodeId::from_bits(1), heard: Vec::new() }];
        assert_eq!(Post::of(&packet, true).packet(), Some(packet));
    }
}

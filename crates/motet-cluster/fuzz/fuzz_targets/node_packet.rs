//! Decodes a packet of what nodes say to each other; each frame is what the derived decoder makes of
//! it, and the packet survives a second trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motet_cluster::Packet;
use motet_cluster::frame::Frame;

fuzz_target!(|bytes: &[u8]| {
    let Ok((packet, _)) = Packet::<Frame, ()>::decode(bytes, Vec::new()) else { return };
    for frame in &packet.frames {
        let encoded = minicbor::to_vec(frame).expect("a vector has room");
        assert_eq!(minicbor::decode::<Frame>(&encoded).as_ref().ok(), Some(frame));
    }
    assert_eq!(Packet::decode(&packet.encode(), Vec::new()), Ok((packet, 0)));
});

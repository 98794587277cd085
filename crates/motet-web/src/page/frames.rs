//! The one frame that a page announces by itself.
//!
//! [`Frame`] has two dozen variants, and the code that encodes them all is larger than the rest of
//! the page's encoder. This enum has the same encoding for the variant a page needs.

use minicbor::Encode;
use motet_cluster::Packet;
use motet_cluster::frame::Frame;
use motet_cluster::node::NodePacket;
use motet_protocol::NodeId;
use wasm_bindgen::prelude::*;

/// What a page announces.
#[derive(Encode)]
pub(super) enum AnnounceFrame {
    /// [`Frame::Leaving`].
    #[n(5)]
    Leaving {
        #[n(0)]
        node: NodeId,
        #[n(1)]
        graceful: bool,
    },
}

/// The packet as it is posted.
///
/// # Panics
///
/// When the core announces anything but that the page's node leaves.
pub(super) fn to_announce(packet: NodePacket<JsValue>) -> Packet<AnnounceFrame, JsValue> {
    let frames = packet.frames.into_iter().map(|frame| match frame {
        Frame::Leaving { node, graceful } => AnnounceFrame::Leaving { node, graceful },
        _ => unreachable!("a page announces nothing but its node's leaving"),
    });
    Packet { from: packet.from, frames: frames.collect(), payloads: packet.payloads }
}

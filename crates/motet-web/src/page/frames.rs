//! The few frames of other nodes that a page reads and writes itself.
//!
//! [`Frame`] has two dozen variants, and the code that decodes them all is larger than the rest of
//! the page's codec together. These enums have the same encoding for the variants a page needs.

use minicbor::{Decode, Encode};
use motet_cluster::Packet;
use motet_cluster::frame::{Frame, MessageHead};
use motet_cluster::node::NodePacket;
use motet_protocol::{NodeId, Position, RouteFence, StreamEpoch};
use wasm_bindgen::prelude::*;

/// What data channels carry.
#[derive(Decode)]
pub(super) enum DataFrame {
    /// [`Frame::Data`].
    #[n(21)]
    Data {
        #[n(0)]
        topic: String,
        #[n(1)]
        fence: RouteFence,
        #[n(2)]
        epoch: StreamEpoch,
        #[n(3)]
        messages: Vec<MessageHead>,
    },
    /// [`Frame::Head`].
    #[n(22)]
    Head {
        #[n(0)]
        topic: String,
        #[n(1)]
        fence: RouteFence,
        #[n(2)]
        position: Position,
        #[n(3)]
        history: bool,
    },
}

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

/// The packet as the core knows it.
pub(super) fn from_data(packet: Packet<DataFrame, JsValue>) -> NodePacket<JsValue> {
    let frames = packet.frames.into_iter().map(|frame| match frame {
        DataFrame::Data { topic, fence, epoch, messages } => {
            Frame::Data { topic, fence, epoch, messages }
        }
        DataFrame::Head { topic, fence, position, history } => {
            Frame::Head { topic, fence, position, history }
        }
    });
    Packet { from: packet.from, frames: frames.collect(), payloads: packet.payloads }
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

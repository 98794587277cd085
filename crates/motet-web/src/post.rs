//! Packets as posted messages: an array of the frames' bytes and, beside them, the payloads.
//!
//! Payloads are JavaScript values that the browser copies or transfers; they are never encoded.

use js_sys::{Array, Uint8Array};
use minicbor::Encode;
use motet_cluster::compact::Compact;
use motet_cluster::{PACKET_BYTES_MAX, PACKET_PAYLOADS_MAX, Packet, PacketError};
use wasm_bindgen::prelude::*;

/// The message that carries this packet.
pub(crate) fn to_message<F: Encode<()>>(packet: &Packet<F, JsValue>) -> Array {
    let message = Array::of1(&Uint8Array::from(packet.encode().as_slice()));
    for payload in &packet.payloads {
        message.push(payload);
    }
    message
}

/// The packet in a message, and the number of frames in it that were skipped as malformed.
///
/// # Errors
///
/// [`PacketError`] for anything that is not a packet of this protocol major within the limits.
pub(crate) fn from_message<F: Compact>(
    message: &JsValue,
) -> Result<(Packet<F, JsValue>, u32), PacketError> {
    let message: &Array = message.dyn_ref().ok_or(PacketError::Malformed)?;
    let frames: Uint8Array = message.get(0).dyn_into().map_err(|_| PacketError::Malformed)?;
    let payloads = message.length() as usize - 1;
    // Checked before anything is copied.
    if frames.length() as usize > PACKET_BYTES_MAX || payloads > PACKET_PAYLOADS_MAX {
        return Err(PacketError::TooLarge);
    }
    let payloads = (1..message.length()).map(|index| message.get(index)).collect();
    Packet::decode(&frames.to_vec(), payloads)
}

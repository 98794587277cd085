//! Payloads taken out of a frame.

use bytes::Bytes;

/// A payload as an owned value. One that makes up most of its frame keeps sharing the frame's
/// memory; a small one is copied, so that a hundred bytes kept in a history do not pin the 64 KiB
/// frame they came in.
pub(super) fn detach(payload: Bytes, frame_bytes: usize) -> Bytes {
    if payload.len() >= frame_bytes / 2 { payload } else { Bytes::copy_from_slice(&payload) }
}

/// An optional payload; an empty one is an absent one.
pub(super) fn present(payload: Bytes) -> Option<Bytes> {
    (!payload.is_empty()).then_some(payload)
}

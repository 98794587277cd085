//! What the server half needs to know of a payload: its size and whether two are the same.

use bytes::Bytes;

/// A payload that passes through the server. Nothing here looks into it.
pub trait Payload: Clone {
    /// Bytes on the wire, for limits and logs.
    fn size(&self) -> usize;

    /// Tells payloads apart when an idempotency key is used again.
    fn fingerprint(&self) -> u64;
}

impl Payload for Bytes {
    fn size(&self) -> usize {
        self.len()
    }

    fn fingerprint(&self) -> u64 {
        // FNV-1a: stable across processes, so that servers that share a broker agree.
        self.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

impl Payload for u64 {
    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn fingerprint(&self) -> u64 {
        *self
    }
}

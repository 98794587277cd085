//! The fingerprint of payloads.

/// Fingerprint of a payload's bytes: tells one payload from another that was sent by mistake under
/// the same key. It does not protect against a forged one. FNV-1a, 64 bits.
///
/// ```
/// use motet_protocol::payload_hash;
///
/// assert_eq!(payload_hash(b"{}"), payload_hash(b"{}"));
/// assert_ne!(payload_hash(b"{}"), payload_hash(b"[]"));
/// ```
#[must_use]
pub fn payload_hash(payload: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    payload.iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(payload_hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(payload_hash(b"foobar"), 0x8594_4171_f739_67e8);
    }
}

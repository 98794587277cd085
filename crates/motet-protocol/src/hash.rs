//! A small hash for bounded tables. SipHash, and the random keys it wants from the platform, cost
//! more code than these tables: they hold at most thousands of entries, so a crafted collision
//! buys an attacker a short scan and nothing else.

use core::hash::{BuildHasherDefault, Hasher};

/// FNV-1a, 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fnv(u64);

pub(crate) type BuildFnv = BuildHasherDefault<Fnv>;

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Fingerprint of a payload's bytes: tells one payload from another that was sent by mistake under
/// the same key. It does not protect against a forged one.
///
/// ```
/// use motet_protocol::payload_hash;
///
/// assert_eq!(payload_hash(b"{}"), payload_hash(b"{}"));
/// assert_ne!(payload_hash(b"{}"), payload_hash(b"[]"));
/// ```
#[must_use]
pub fn payload_hash(payload: &[u8]) -> u64 {
    let mut hasher = Fnv::default();
    hasher.write(payload);
    hasher.finish()
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

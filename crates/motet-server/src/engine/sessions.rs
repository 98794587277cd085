//! Which queue belongs to which connection.

use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;
use std::sync::Arc;

use motet_realtime::hub::SessionId;

use crate::connection::Outgoing;

/// The queues of all connections. Session ids are numbers that this server draws itself, one after
/// the other, so they need no hashing against an attacker.
pub(super) type Sessions = HashMap<SessionId, Arc<Outgoing>, BuildHasherDefault<CountingHasher>>;

/// Spreads consecutive numbers over the table.
#[derive(Clone, Copy, Default)]
pub(super) struct CountingHasher(u64);

impl Hasher for CountingHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing: the golden ratio's multiple fills the high bits that the table uses.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

//! Identities: of nodes, clients, tabs, calls. All are random, drawn from the core's seeded generator.

use core::fmt;
use core::str::FromStr;

use crate::rng::Rng;

/// Text that is not sixteen lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidId;

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is sixteen lower-case hexadecimal digits")
    }
}

impl core::error::Error for InvalidId {}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Sixteen lower-case hexadecimal digits, written without the formatting machinery (page size).
pub(crate) fn to_hex(value: u64) -> String {
    (0..16).map(|i| char::from(HEX[((value >> (60 - 4 * i)) & 15) as usize])).collect()
}

fn from_hex(text: &str) -> Result<u64, InvalidId> {
    if text.len() != 16 {
        return Err(InvalidId);
    }
    text.bytes().try_fold(0, |value, digit| {
        let nibble = HEX.iter().position(|h| *h == digit).ok_or(InvalidId)?;
        Ok(value << 4 | nibble as u64)
    })
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Sixteen hexadecimal digits as text; 64 bits on the wire.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, minicbor::Encode, minicbor::Decode)]
        #[cbor(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Draws a new id.
            pub fn random(rng: &mut Rng) -> Self {
                Self(rng.u64())
            }

            /// Rebuilds an id from its bits.
            #[must_use]
            pub const fn from_bits(bits: u64) -> Self {
                Self(bits)
            }

            /// The id's bits.
            #[must_use]
            pub const fn bits(self) -> u64 {
                self.0
            }

            /// The id as text.
            #[must_use]
            pub fn to_hex(self) -> String {
                to_hex(self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&to_hex(self.0))
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                from_hex(text).map(Self)
            }
        }
    )*};
}

ids! {
    /// One cluster member: a node lives as long as the context that runs it.
    NodeId;
    /// One page's handle on a node. A page that restarts draws a new one.
    ClientId;
    /// One browser tab, stable across reloads of that tab.
    TabId;
    /// One call that somebody waits for; unique per attempt.
    CallId;
    /// One correlated flow of messages: retries of a call keep it.
    CorrelationId;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bits_are_the_same_id() {
        let id = NodeId::from_bits(0x00ab_cdef_0123_4567);
        assert_eq!(id.to_hex(), "00abcdef01234567");
        assert_eq!("00abcdef01234567".parse(), Ok(id));
    }

    #[test]
    fn anything_but_sixteen_lower_case_digits_is_refused() {
        for text in
            ["", "00ABCDEF01234567", "00abcdef0123456", "00abcdef012345678", "xxabcdef01234567"]
        {
            assert_eq!(text.parse::<TabId>(), Err(InvalidId), "{text}");
        }
    }
}

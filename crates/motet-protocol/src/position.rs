//! Where a message stands in its stream.

use std::sync::Arc;

use minicbor::{Decode, Decoder, Encode, Encoder};

/// Name of one life of a topic's stream. Offsets compare only within the same epoch.
///
/// Opaque text chosen by the server (Centrifuge protocol), or the owner's fence where the
/// transport keeps no history.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamEpoch(Arc<str>);

impl StreamEpoch {
    /// Wraps the server's text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<C> Encode<C> for StreamEpoch {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.str(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for StreamEpoch {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        d.str().map(Self::new)
    }
}

/// Number of a message in its stream epoch: the first is 1, each next is one more.
pub type Offset = u64;

/// A place in a stream: the last message that was seen, or offset 0 before the first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub struct Position {
    /// The stream's life.
    #[n(0)]
    pub epoch: StreamEpoch,
    /// The last offset seen in it.
    #[n(1)]
    pub offset: Offset,
}

impl Position {
    /// A position in `epoch` after `offset`.
    #[must_use]
    pub fn new(epoch: StreamEpoch, offset: Offset) -> Self {
        Self { epoch, offset }
    }
}

//! One message of a channel, and who sent it.

use std::collections::BTreeMap;

use crate::payload::Payload;

/// One message of a channel, as it travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication<P> {
    /// The payload.
    pub data: P,
    /// Who published it; absent when the server did.
    pub info: Option<ClientInfo<P>>,
    /// Number in its stream; 0 where the channel keeps none.
    pub offset: u64,
    /// Text attributes.
    pub tags: BTreeMap<String, String>,
    /// Time at which the server took it, milliseconds since 1970; 0 when it is not told.
    pub time: i64,
    /// The concrete channel, where the subscription was to a pattern.
    pub channel: String,
    /// The stream's life: in the first publication of a stream, and where the subscription was to
    /// a pattern.
    pub epoch: String,
}

impl<P> Publication<P> {
    /// A publication with nothing but its payload.
    #[must_use]
    pub const fn new(data: P) -> Self {
        Self {
            data,
            info: None,
            offset: 0,
            tags: BTreeMap::new(),
            time: 0,
            channel: String::new(),
            epoch: String::new(),
        }
    }
}

impl<P: Payload> Publication<P> {
    /// Bytes of the message that brings this to a subscriber, at most, in any encoding.
    #[must_use]
    pub fn encoded_size_max(&self, channel_bytes: usize) -> usize {
        let tags = self.tags.iter().map(|(name, value)| {
            TAG_FRAMING_BYTES + ESCAPED_BYTES_MAX * (name.len() + value.len())
        });
        // A subscriber of a pattern is told the channel besides the pattern.
        let names = ESCAPED_BYTES_MAX * 2 * channel_bytes;
        let info = self.info.as_ref().map_or(0, ClientInfo::encoded_size_max);
        FRAMING_BYTES + self.data.size() + tags.sum::<usize>() + names + info
    }
}

/// One connection, as others in a channel see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo<P> {
    /// User id; empty for an anonymous one.
    pub user: String,
    /// Id of the connection.
    pub client: String,
    /// Information that came with the connection's token.
    pub conn_info: Option<P>,
    /// Information that came with the subscription's token.
    pub chan_info: Option<P>,
}

impl<P> ClientInfo<P> {
    /// A connection without further information.
    #[must_use]
    pub const fn new(user: String, client: String) -> Self {
        Self { user, client, conn_info: None, chan_info: None }
    }
}

impl<P: Payload> ClientInfo<P> {
    fn encoded_size_max(&self) -> usize {
        let payloads = [&self.conn_info, &self.chan_info].into_iter().flatten();
        ESCAPED_BYTES_MAX * (self.user.len() + self.client.len())
            + payloads.map(Payload::size).sum::<usize>()
    }
}

/// Room for the names and numbers around the texts and payloads of a publication.
const FRAMING_BYTES: usize = 256;
/// The same around one tag.
const TAG_FRAMING_BYTES: usize = 16;
/// A byte of text takes up to so many in JSON (`\u0000`).
const ESCAPED_BYTES_MAX: usize = 6;

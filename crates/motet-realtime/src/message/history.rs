//! Reading a channel's history.

use super::Publication;

/// A place in a stream: after the publication with this offset.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamPosition {
    /// The offset; 0 before the first publication.
    pub offset: u64,
    /// The stream's life; an empty one matches any.
    pub epoch: String,
}

/// Reads a channel's history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryRequest {
    /// The channel.
    pub channel: String,
    /// At most so many publications; 0 asks for the position only, -1 for as many as allowed.
    pub limit: i32,
    /// Start after this position (before it when `reverse`); the position itself is left out.
    pub since: Option<StreamPosition>,
    /// Newest first.
    pub reverse: bool,
}

/// A page of history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryResult<P> {
    /// The publications, in the order asked for.
    pub publications: Vec<Publication<P>>,
    /// The stream's life.
    pub epoch: String,
    /// Top of the stream.
    pub offset: u64,
}

impl<P> Default for HistoryResult<P> {
    fn default() -> Self {
        Self { publications: Vec::new(), epoch: String::new(), offset: 0 }
    }
}

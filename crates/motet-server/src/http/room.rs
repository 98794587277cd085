//! Whether a publication fits the queue of a connection.
//!
//! One that fits none would be taken, and then close every subscriber as too slow to read it.

use motet_realtime::hub::{ApiError, ApiErrorCode, ApiPublish, ApiRequest};

/// Room for what stands around payload, tags and channel in either encoding.
const FRAMING_BYTES: usize = 256;
/// The same around one tag.
const TAG_FRAMING_BYTES: usize = 16;
/// A byte of text takes up to so many in JSON (`\u0000`).
const ESCAPED_BYTES_MAX: usize = 6;

/// Checks that an empty queue of `queue_bytes_max` can take what a call publishes.
///
/// # Errors
/// 106 with the limit.
pub(super) fn check<P: AsRef<[u8]>>(
    request: &ApiRequest<P>,
    queue_bytes_max: usize,
) -> Result<(), ApiError> {
    let bytes = match request {
        ApiRequest::Publish(publish, channel) => message_bytes_max(publish, channel.len()),
        ApiRequest::Broadcast(publish, channels) => {
            message_bytes_max(publish, channels.iter().map(String::len).max().unwrap_or_default())
        }
        _ => return Ok(()),
    };
    if bytes <= queue_bytes_max {
        return Ok(());
    }
    let code = ApiErrorCode::LimitExceeded;
    let message = format!(
        "{}: the publication takes up to {bytes} bytes, and no more than {queue_bytes_max} may wait \
         for a connection (client.queue_max_size): send less, or raise the limit",
        code.text()
    );
    Err(ApiError { code, message })
}

/// Bytes of the message to a subscriber, at most.
fn message_bytes_max<P: AsRef<[u8]>>(publish: &ApiPublish<P>, channel_bytes: usize) -> usize {
    let tag = |(name, value): (&String, &String)| {
        TAG_FRAMING_BYTES + ESCAPED_BYTES_MAX * (name.len() + value.len())
    };
    let tags: usize = publish.tags.iter().map(tag).sum();
    publish.data.as_ref().len() + tags + ESCAPED_BYTES_MAX * channel_bytes + FRAMING_BYTES
}

//! Whether a publication fits the queue of a connection.
//!
//! One that fits none would be taken, and then close every subscriber as too slow to read it.

use bytes::Bytes;
use motet_realtime::hub::{ApiError, ApiErrorCode, ApiPublish, ApiRequest};
use motet_realtime::message::Publication;

/// Checks that an empty queue of `queue_bytes_max` can take what a call publishes.
///
/// # Errors
/// 106 with the limit.
pub(super) fn check(request: &ApiRequest<Bytes>, queue_bytes_max: usize) -> Result<(), ApiError> {
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
fn message_bytes_max(publish: &ApiPublish<Bytes>, channel_bytes: usize) -> usize {
    let (data, tags) = (publish.data.clone(), publish.tags.clone());
    Publication { tags, ..Publication::new(data) }.encoded_size_max(channel_bytes)
}

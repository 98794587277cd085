//! How a server's codes become the errors that an application sees.

use motet_protocol::{Error, ErrorCode};

use crate::message::{Disconnect, ErrorReply, ServerErrorCode, Unsubscribe, Verdict};

/// A connection that the server, or the network, ended.
pub(super) fn disconnected(end: Disconnect) -> Error {
    let code = match end.code.verdict() {
        Verdict::Retry => ErrorCode::TransportUnavailable,
        Verdict::Terminal => ErrorCode::ConnectRejected,
    };
    said(code, end.code.0, end.reason)
}

/// A connect command that was refused.
pub(super) fn connect(refusal: ErrorReply) -> Error {
    let code = match refusal.verdict() {
        Verdict::Retry => ErrorCode::TransportUnavailable,
        Verdict::Terminal => ErrorCode::ConnectRejected,
    };
    said(code, refusal.code.0, refusal.message)
}

/// A subscribe command that was refused.
pub(super) fn subscribe(refusal: ErrorReply) -> Error {
    said(ErrorCode::SubscribeRejected, refusal.code.0, refusal.message)
}

/// A subscription that the server ended.
pub(super) fn unsubscribed(push: Unsubscribe) -> Error {
    said(ErrorCode::SubscribeRejected, push.code.0, push.reason)
}

/// A publication that was refused.
pub(super) fn publish(refusal: ErrorReply) -> Error {
    let code = match refusal.code {
        ServerErrorCode::TOO_MANY_REQUESTS => ErrorCode::RateLimited,
        ServerErrorCode::IDEMPOTENCY_KEY_REUSED => ErrorCode::IdempotencyKeyReused,
        _ => ErrorCode::PublishRejected,
    };
    said(code, refusal.code.0, refusal.message)
}

/// A history request that was refused.
pub(super) fn history(refusal: ErrorReply) -> Error {
    said(ErrorCode::HistoryUnavailable, refusal.code.0, refusal.message)
}

fn said(code: ErrorCode, server_code: u32, text: String) -> Error {
    let error = Error::new(code).with_server_code(server_code);
    if text.is_empty() { error } else { error.with_detail(text) }
}

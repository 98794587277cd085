//! What a client is told when its encoding has no form for what it asked for: payloads may be any
//! bytes, and JSON carries none but its own.

use bytes::Bytes;
use motet_realtime::codec::Encoding;
use motet_realtime::message::{ErrorReply, Reply, ReplyBody, ServerErrorCode, SubscribeResult};

/// The reply to send instead, if one can be.
///
/// A recovery that cannot be told is none: the subscription stands, at the top of its stream. A
/// page of history or a list of connections is refused.
pub(super) fn instead(mut reply: Reply<Bytes>, encoding: Encoding) -> Option<Reply<Bytes>> {
    match &mut reply.body {
        ReplyBody::Subscribe(result) => forgo_recovery(result),
        ReplyBody::Connect(result) => {
            for result in result.subs.values_mut() {
                let alone = Reply::new(reply.id, ReplyBody::Subscribe(Box::new(result.clone())));
                if encoding.append_reply(&mut Vec::new(), &alone).is_err() {
                    forgo_recovery(result);
                }
            }
        }
        ReplyBody::History(_) | ReplyBody::Presence(_) => {
            let error = ErrorReply {
                message: "not available: a payload is not JSON, connect with Protobuf".to_owned(),
                ..ErrorReply::from(ServerErrorCode::NOT_AVAILABLE)
            };
            reply = Reply::error(reply.id, error);
        }
        _ => return None,
    }
    Some(reply)
}

fn forgo_recovery(result: &mut SubscribeResult<Bytes>) {
    // Whatever is recovered leads up to the top.
    if let Some(last) = result.publications.last() {
        result.offset = last.offset;
    }
    result.recovered = false;
    result.publications = Vec::new();
}

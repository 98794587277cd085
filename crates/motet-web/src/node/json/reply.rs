//! What the server says, from parsed JSON.

use std::collections::BTreeMap;

use js_sys::{Array, JsString};
use motet_protocol::{JSON_DEPTH_MAX, nests_deeper};
use motet_realtime::message::{
    ConnectResult, Disconnect, DisconnectCode, ErrorReply, Features, HistoryResult, Publication,
    Push, PushEvent, RefreshPush, RefreshResult, Reply, ReplyBody, ServerErrorCode,
    SubRefreshResult, SubscribeResult, TAG_MESSAGE_ID, TAG_TIMESTAMP_MS, Unsubscribe,
    UnsubscribeCode,
};
use wasm_bindgen::prelude::*;

use super::wire::{Object, parse, stringify};

/// Hands on every message of a frame with its length, or `None` in place of the first that is no
/// message; what follows that one is not looked at.
pub(in crate::node) fn for_each_reply(
    frame: &JsString,
    mut each: impl FnMut(Option<(Reply<JsValue>, u32)>),
) {
    for line in frame.split("\n").iter() {
        let length = line.unchecked_ref::<JsString>().length();
        if length == 0 {
            continue;
        }
        match parse(&line) {
            Ok(message) if message.is_object() => {
                let mut reply = reply(&message);
                if may_be_too_deep(line.unchecked_ref()) {
                    leave_out_too_deep(&mut reply);
                }
                each(Some((reply, length)));
            }
            _ => return each(None),
        }
    }
}

/// Each level takes two characters, so that most messages need no look.
fn may_be_too_deep(line: &JsString) -> bool {
    line.length() as usize > 2 * JSON_DEPTH_MAX && nests_deeper(&String::from(line), JSON_DEPTH_MAX)
}

/// What cannot be handed over is handed over as nothing, which no payload is: the message keeps its
/// place, and those beside it arrive.
fn leave_out_too_deep(reply: &mut Reply<JsValue>) {
    let publications = match &mut reply.body {
        ReplyBody::Push(Push { event: PushEvent::Publication(one), .. }) => {
            core::slice::from_mut(&mut **one)
        }
        ReplyBody::Subscribe(result) => &mut result.publications,
        ReplyBody::History(result) => &mut result.publications,
        _ => return,
    };
    for publication in publications {
        // Writing it fails where it nests even deeper than that can go.
        let text = stringify(&publication.data).ok().flatten();
        if text.is_none_or(|text| nests_deeper(&text, JSON_DEPTH_MAX)) {
            publication.data = JsValue::UNDEFINED;
        }
    }
}

/// The first member that is set counts, in the order of the protocol's fields. Answers that the
/// node never asks for read as empty.
fn reply(wire: &Object) -> Reply<JsValue> {
    let id = wire.id().unwrap_or(0);
    let body = if let Some(error) = wire.error() {
        ReplyBody::Error(ErrorReply {
            code: ServerErrorCode(error.code().unwrap_or(0)),
            message: error.message().unwrap_or_default(),
            temporary: error.temporary().unwrap_or(false),
        })
    } else if let Some(wire) = wire.push() {
        ReplyBody::Push(push(&wire))
    } else if let Some(wire) = wire.connect() {
        ReplyBody::Connect(Box::new(connect(&wire)))
    } else if let Some(wire) = wire.subscribe() {
        ReplyBody::Subscribe(Box::new(subscribe(&wire)))
    } else if wire.unsubscribe().is_some() {
        ReplyBody::Unsubscribe
    } else if wire.publish().is_some() {
        ReplyBody::Publish
    } else if let Some(wire) = wire.history() {
        ReplyBody::History(HistoryResult {
            publications: publications(wire.publications()),
            epoch: wire.epoch().unwrap_or_default(),
            offset: wire.offset().unwrap_or(0.0) as u64,
        })
    } else if let Some(wire) = wire.refresh() {
        ReplyBody::Refresh(RefreshResult {
            client: wire.client().unwrap_or_default(),
            version: wire.version().unwrap_or_default(),
            expires: wire.expires().unwrap_or(false),
            ttl: wire.ttl().unwrap_or(0),
        })
    } else if let Some(wire) = wire.sub_refresh() {
        ReplyBody::SubRefresh(SubRefreshResult {
            expires: wire.expires().unwrap_or(false),
            ttl: wire.ttl().unwrap_or(0),
        })
    } else {
        ReplyBody::Empty
    };
    Reply { id, body }
}

fn push(wire: &Object) -> Push<JsValue> {
    let event = if let Some(wire) = wire.publication() {
        PushEvent::Publication(Box::new(publication(&wire)))
    } else if let Some(wire) = wire.unsubscribe() {
        PushEvent::Unsubscribe(Unsubscribe {
            code: UnsubscribeCode(wire.code().unwrap_or(0)),
            reason: wire.reason().unwrap_or_default(),
        })
    } else if let Some(wire) = wire.disconnect() {
        PushEvent::Disconnect(Disconnect {
            code: DisconnectCode(wire.code().unwrap_or(0)),
            reason: wire.reason().unwrap_or_default(),
        })
    } else if let Some(wire) = wire.refresh() {
        PushEvent::Refresh(RefreshPush {
            expires: wire.expires().unwrap_or(false),
            ttl: wire.ttl().unwrap_or(0),
        })
    } else {
        // Presence and server-side subscriptions: the bus asks for neither.
        PushEvent::Unknown
    };
    Push { channel: wire.channel().unwrap_or_default(), event }
}

fn publication(wire: &Object) -> Publication<JsValue> {
    let mut tags = BTreeMap::new();
    if let Some(wire) = wire.tags() {
        if let Some(id) = wire.message_id() {
            tags.insert(TAG_MESSAGE_ID.to_owned(), id);
        }
        if let Some(timestamp) = wire.timestamp_ms() {
            tags.insert(TAG_TIMESTAMP_MS.to_owned(), timestamp);
        }
    }
    Publication {
        data: wire.data(),
        // Not handed to applications, so not read.
        info: None,
        offset: wire.offset().unwrap_or(0.0) as u64,
        tags,
        time: wire.time().unwrap_or(0.0) as i64,
        channel: wire.channel().unwrap_or_default(),
        epoch: wire.epoch().unwrap_or_default(),
    }
}

fn publications(wire: Option<Array>) -> Vec<Publication<JsValue>> {
    let wire = wire.unwrap_or_default();
    wire.iter().map(|row| publication(row.unchecked_ref())).collect()
}

fn connect(wire: &Object) -> ConnectResult<JsValue> {
    ConnectResult {
        client: wire.client().unwrap_or_default(),
        version: wire.version().unwrap_or_default(),
        expires: wire.expires().unwrap_or(false),
        ttl: wire.ttl().unwrap_or(0),
        ping: wire.ping().unwrap_or(0.0) as u32,
        pong: wire.pong().unwrap_or(false),
        time: wire.time().unwrap_or(0.0) as i64,
        motet: wire.motet().map(|wire| Features {
            idempotency: wire.idempotency().unwrap_or(false),
            ordered_publish: wire.ordered_publish().unwrap_or(false),
            wildcards: wire.wildcards().unwrap_or(false),
        }),
        ..ConnectResult::default()
    }
}

fn subscribe(wire: &Object) -> SubscribeResult<JsValue> {
    SubscribeResult {
        expires: wire.expires().unwrap_or(false),
        ttl: wire.ttl().unwrap_or(0),
        recoverable: wire.recoverable().unwrap_or(false),
        epoch: wire.epoch().unwrap_or_default(),
        publications: publications(wire.publications()),
        recovered: wire.recovered().unwrap_or(false),
        offset: wire.offset().unwrap_or(0.0) as u64,
        positioned: wire.positioned().unwrap_or(false),
        data: None,
        was_recovering: wire.was_recovering().unwrap_or(false),
    }
}

//! The protocol as Protobuf: payloads are bytes, copied once on their way through the codec.

use bytes::Bytes;
use js_sys::{ArrayBuffer, Uint8Array};
use motet_protocol::{Error, ErrorCode};
use motet_realtime::codec::{Limits, protobuf};
use motet_realtime::message::{
    Command, ConnectRequest, ConnectResult, HistoryResult, Publication, PublishRequest, Push,
    PushEvent, Reply, ReplyBody, Request, SubscribeRequest, SubscribeResult,
};
use wasm_bindgen::prelude::*;

/// A command with its length before it.
///
/// # Errors
///
/// A payload that is not binary.
pub(super) fn encode_command(command: Command<JsValue>) -> Result<Vec<u8>, Error> {
    let request =
        command.request.and_then(|request| with_bytes(request).transpose()).transpose()?;
    let mut frame = Vec::new();
    protobuf::append_command(&mut frame, &Command { id: command.id, request });
    Ok(frame)
}

/// Hands on every message of a frame with its share of the frame's length, or `None` in place of
/// the first that is no message.
pub(super) fn for_each_reply(
    frame: &ArrayBuffer,
    mut each: impl FnMut(Option<(Reply<JsValue>, u32)>),
) {
    let bytes = Bytes::from(Uint8Array::new(frame).to_vec());
    let length = bytes.len() as u32;
    let Ok(replies) = protobuf::Replies::new(bytes, Limits::REPLIES) else { return each(None) };
    let replies: Vec<_> = replies.collect();
    let share = length / (replies.len() as u32).max(1);
    for reply in replies {
        match reply {
            Ok(reply) => each(Some((with_arrays(reply), share))),
            Err(_) => return each(None),
        }
    }
}

fn to_array(bytes: &Bytes) -> JsValue {
    Uint8Array::from(bytes.as_ref()).into()
}

fn to_bytes(value: &JsValue) -> Result<Bytes, Error> {
    if let Some(array) = value.dyn_ref::<Uint8Array>() {
        return Ok(array.to_vec().into());
    }
    if value.is_instance_of::<ArrayBuffer>() {
        return Ok(Uint8Array::new(value).to_vec().into());
    }
    Err(Error::new(ErrorCode::ConfigInvalid)
        .with_detail("with protocol \"protobuf\" a payload is a Uint8Array or an ArrayBuffer"))
}

/// A request of those that the node makes; `None` for others.
fn with_bytes(request: Request<JsValue>) -> Result<Option<Request<Bytes>>, Error> {
    let optional = |data: Option<JsValue>| data.as_ref().map(to_bytes).transpose();
    Ok(Some(match request {
        Request::Connect(request) => Request::Connect(Box::new(ConnectRequest {
            data: optional(request.data)?,
            token: request.token,
            name: request.name,
            version: request.version,
            motet: request.motet,
            ..ConnectRequest::default()
        })),
        Request::Subscribe(request) => Request::Subscribe(Box::new(SubscribeRequest {
            data: optional(request.data)?,
            channel: request.channel,
            token: request.token,
            recover: request.recover,
            epoch: request.epoch,
            offset: request.offset,
            positioned: request.positioned,
            recoverable: request.recoverable,
            flag: request.flag,
            ..SubscribeRequest::default()
        })),
        Request::Publish(request) => Request::Publish(PublishRequest {
            data: to_bytes(&request.data)?,
            channel: request.channel,
            kind: request.kind,
            motet: request.motet,
        }),
        Request::Unsubscribe(request) => Request::Unsubscribe(request),
        Request::History(request) => Request::History(request),
        Request::Refresh(request) => Request::Refresh(request),
        Request::SubRefresh(request) => Request::SubRefresh(request),
        _ => return Ok(None),
    }))
}

/// A reply of those that the node waits for; others read as empty.
fn with_arrays(reply: Reply<Bytes>) -> Reply<JsValue> {
    let body = match reply.body {
        ReplyBody::Error(error) => ReplyBody::Error(error),
        ReplyBody::Push(push) => ReplyBody::Push(push_with_array(push)),
        ReplyBody::Connect(result) => ReplyBody::Connect(Box::new(ConnectResult {
            client: result.client,
            version: result.version,
            expires: result.expires,
            ttl: result.ttl,
            ping: result.ping,
            pong: result.pong,
            time: result.time,
            motet: result.motet,
            ..ConnectResult::default()
        })),
        ReplyBody::Subscribe(result) => ReplyBody::Subscribe(Box::new(SubscribeResult {
            publications: result.publications.into_iter().map(publication).collect(),
            expires: result.expires,
            ttl: result.ttl,
            recoverable: result.recoverable,
            epoch: result.epoch,
            recovered: result.recovered,
            offset: result.offset,
            positioned: result.positioned,
            data: None,
            was_recovering: result.was_recovering,
        })),
        ReplyBody::Unsubscribe => ReplyBody::Unsubscribe,
        ReplyBody::Publish => ReplyBody::Publish,
        ReplyBody::History(result) => ReplyBody::History(HistoryResult {
            publications: result.publications.into_iter().map(publication).collect(),
            epoch: result.epoch,
            offset: result.offset,
        }),
        ReplyBody::Refresh(result) => ReplyBody::Refresh(result),
        ReplyBody::SubRefresh(result) => ReplyBody::SubRefresh(result),
        _ => ReplyBody::Empty,
    };
    Reply { id: reply.id, body }
}

fn push_with_array(push: Push<Bytes>) -> Push<JsValue> {
    let event = match push.event {
        PushEvent::Publication(wire) => PushEvent::Publication(Box::new(publication(*wire))),
        PushEvent::Unsubscribe(push) => PushEvent::Unsubscribe(push),
        PushEvent::Disconnect(push) => PushEvent::Disconnect(push),
        PushEvent::Refresh(push) => PushEvent::Refresh(push),
        _ => PushEvent::Unknown,
    };
    Push { channel: push.channel, event }
}

fn publication(wire: Publication<Bytes>) -> Publication<JsValue> {
    Publication {
        data: to_array(&wire.data),
        info: None,
        offset: wire.offset,
        tags: wire.tags,
        time: wire.time,
        channel: wire.channel,
        epoch: wire.epoch,
    }
}

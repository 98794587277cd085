//! What the node says, as JSON text: the envelope is written here, payloads by the browser.

use js_sys::{ArrayBuffer, Uint8Array};
use motet_protocol::{Error, ErrorCode};
use motet_realtime::message::{
    Command, ConnectRequest, Features, HistoryRequest, PublishRequest, Request, SubscribeRequest,
};
use wasm_bindgen::prelude::*;

use super::wire::stringify;

/// A command as one line.
///
/// # Errors
///
/// A payload that has no JSON form.
pub(in crate::node) fn encode_command(command: &Command<JsValue>) -> Result<String, Error> {
    let mut text = Writer::default();
    text.number("id", command.id.into());
    match &command.request {
        Some(Request::Connect(request)) => connect(&mut text, request)?,
        Some(Request::Subscribe(request)) => subscribe(&mut text, request)?,
        Some(Request::Unsubscribe(request)) => {
            text.object("unsubscribe", |text| text.text("channel", &request.channel));
        }
        Some(Request::Publish(request)) => publish(&mut text, request)?,
        Some(Request::History(request)) => history(&mut text, request),
        Some(Request::Refresh(request)) => {
            text.object("refresh", |text| text.text("token", &request.token));
        }
        Some(Request::SubRefresh(request)) => text.object("sub_refresh", |text| {
            text.text("channel", &request.channel);
            text.text("token", &request.token);
        }),
        // The pong is an empty object, and the node asks nothing else.
        _ => {}
    }
    Ok(text.end())
}

fn connect(text: &mut Writer, request: &ConnectRequest<JsValue>) -> Result<(), Error> {
    let data = request.data.as_ref().map(payload).transpose()?;
    text.object("connect", |text| {
        text.text("token", &request.token);
        text.raw("data", data.as_deref());
        text.text("name", &request.name);
        text.text("version", &request.version);
        if let Some(features) = request.motet {
            text.object("motet", |text| write_features(text, features));
        }
    });
    Ok(())
}

fn write_features(text: &mut Writer, features: Features) {
    text.flag("idempotency", features.idempotency);
    text.flag("ordered_publish", features.ordered_publish);
    text.flag("wildcards", features.wildcards);
}

fn subscribe(text: &mut Writer, request: &SubscribeRequest<JsValue>) -> Result<(), Error> {
    let data = request.data.as_ref().map(payload).transpose()?;
    text.object("subscribe", |text| {
        text.text("channel", &request.channel);
        text.text("token", &request.token);
        text.flag("recover", request.recover);
        text.text("epoch", &request.epoch);
        text.number("offset", request.offset as i64);
        text.raw("data", data.as_deref());
        text.flag("positioned", request.positioned);
        text.flag("recoverable", request.recoverable);
        text.number("flag", request.flag);
    });
    Ok(())
}

fn publish(text: &mut Writer, request: &PublishRequest<JsValue>) -> Result<(), Error> {
    let data = payload(&request.data)?;
    text.object("publish", |text| {
        text.text("channel", &request.channel);
        text.raw("data", Some(&data));
        if let Some(extension) = &request.motet {
            text.object("motet", |text| {
                text.text("key", extension.key.as_deref().unwrap_or_default());
                text.text("message_id", extension.message_id.as_deref().unwrap_or_default());
                text.number("timestamp_ms", extension.timestamp_ms.unwrap_or(0));
            });
        }
    });
    Ok(())
}

fn history(text: &mut Writer, request: &HistoryRequest) {
    text.object("history", |text| {
        text.text("channel", &request.channel);
        text.number("limit", request.limit.into());
        if let Some(since) = &request.since {
            text.object("since", |text| {
                text.number("offset", since.offset as i64);
                text.text("epoch", &since.epoch);
            });
        }
        text.flag("reverse", request.reverse);
    });
}

/// A payload as JSON text.
fn payload(value: &JsValue) -> Result<String, Error> {
    if value.is_instance_of::<Uint8Array>() || value.is_instance_of::<ArrayBuffer>() {
        return Err(Error::new(ErrorCode::ConfigInvalid)
            .with_detail("binary payloads need the transport option protocol: \"protobuf\""));
    }
    match stringify(value) {
        Ok(text) => Ok(text.unwrap_or_else(|| "null".to_owned())),
        // A cycle or a big integer: the browser can copy it, JSON cannot say it.
        Err(_) => Err(Error::new(ErrorCode::Uncloneable).with_detail("payload has no JSON form")),
    }
}

/// Writes an object; members that have their zero value are left out.
struct Writer {
    text: String,
}

impl Default for Writer {
    fn default() -> Self {
        Self { text: "{".to_owned() }
    }
}

impl Writer {
    fn end(mut self) -> String {
        self.text.push('}');
        self.text
    }

    fn name(&mut self, name: &str) {
        if !self.text.ends_with('{') {
            self.text.push(',');
        }
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    fn object(&mut self, name: &str, members: impl FnOnce(&mut Self)) {
        self.name(name);
        self.text.push('{');
        members(self);
        self.text.push('}');
    }

    fn raw(&mut self, name: &str, json: Option<&str>) {
        if let Some(json) = json {
            self.name(name);
            self.text.push_str(json);
        }
    }

    fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.raw(name, Some("true"));
        }
    }

    fn number(&mut self, name: &str, value: i64) {
        if value != 0 {
            self.raw(name, Some(&value.to_string()));
        }
    }

    fn text(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        self.name(name);
        self.text.push('"');
        for character in value.chars() {
            match character {
                '"' | '\\' => {
                    self.text.push('\\');
                    self.text.push(character);
                }
                // Control characters have no other form in JSON.
                '\0'..='\u{1f}' => {
                    const HEX: &[u8; 16] = b"0123456789abcdef";
                    let code = character as usize;
                    self.text.push_str("\\u00");
                    self.text.push(char::from(HEX[code >> 4]));
                    self.text.push(char::from(HEX[code & 15]));
                }
                _ => self.text.push(character),
            }
        }
        self.text.push('"');
    }
}

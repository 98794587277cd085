//! Several API calls in one request, answered in their order.

use core::fmt;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Server, api, api_form};

/// Calls in one request.
const COMMANDS_MAX: usize = 10_000;

/// The calls run one after the other: the hub answers each at once, so `parallel`, which callers
/// may send, would gain nothing.
#[derive(serde::Deserialize)]
struct Batch<'a> {
    #[serde(borrow)]
    commands: Vec<Command<'a>>,
}

/// An object whose one key is the method.
struct Command<'a> {
    method: String,
    body: &'a RawValue,
}

impl<'de: 'a, 'a> Deserialize<'de> for Command<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OneMethod)
    }
}

struct OneMethod;

impl<'de> Visitor<'de> for OneMethod {
    type Value = Command<'de>;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a command, which is an object with exactly one method")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some((method, body)) = map.next_entry()? else {
            return Err(A::Error::invalid_length(0, &self));
        };
        if map.next_entry::<String, &RawValue>()?.is_some() {
            return Err(A::Error::custom("a command has exactly one method: make it two commands"));
        }
        Ok(Command { method, body })
    }
}

pub(super) async fn call(State(server): State<Arc<Server>>, body: Bytes) -> Response {
    let batch: Batch<'_> = match serde_json::from_slice(&body) {
        Ok(batch) => batch,
        Err(cause) => return api::bad_request(StatusCode::BAD_REQUEST, &cause.to_string()),
    };
    if batch.commands.len() > COMMANDS_MAX {
        let text = format!("a batch has at most {COMMANDS_MAX} commands");
        return api::bad_request(StatusCode::PAYLOAD_TOO_LARGE, &text);
    }
    let mut replies = Vec::with_capacity(batch.commands.len());
    for command in batch.commands {
        replies.push(reply(&server, command).await);
    }
    Json(json!({ "replies": replies })).into_response()
}

async fn reply(server: &Server, command: Command<'_>) -> Value {
    let Command { method, body } = command;
    match api::carry_out(server, &method, body.get().as_bytes()).await {
        Ok(result) => Value::Object(Map::from_iter([(method, result)])),
        Err(error) => json!({ "error": api_form::error(&error) }),
    }
}

//! Several API calls in one request, answered in their order.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use motet_realtime::hub::{ApiError, ApiErrorCode};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Server, api, api_form};

/// Calls in one request.
const COMMANDS_MAX: usize = 10_000;
/// Bytes of answers beyond which no further call of a batch is carried out. A few words can ask for
/// a long history many times over.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The calls of one request. They run one after the other: the hub answers each at once, so
/// `parallel`, which callers may send, would gain nothing.
#[derive(serde::Deserialize)]
pub struct Batch<'a> {
    /// In the order of their answers.
    #[serde(borrow)]
    pub commands: Vec<Command<'a>>,
}

/// An object whose one key is the method.
pub struct Command<'a> {
    /// The name of the call.
    pub method: String,
    /// What would be the body of the call by itself.
    pub body: &'a RawValue,
}

impl<'a> Batch<'a> {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// What is wrong in the text, and where.
    pub fn parse(body: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }
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
    let batch = match Batch::parse(&body) {
        Ok(batch) => batch,
        Err(cause) => return api::bad_request(StatusCode::BAD_REQUEST, &cause.to_string()),
    };
    if batch.commands.len() > COMMANDS_MAX {
        let text = format!("a batch has at most {COMMANDS_MAX} commands");
        return api::bad_request(StatusCode::PAYLOAD_TOO_LARGE, &text);
    }
    let mut body = br#"{"replies":["#.to_vec();
    for (at, command) in batch.commands.into_iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        if body.len() > ANSWER_BYTES_MAX {
            write(&mut body, &failure(&too_much()));
        } else {
            answer(&server, command, &mut body).await;
        }
    }
    body.extend_from_slice(b"]}");
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn answer(server: &Server, command: Command<'_>, body: &mut Vec<u8>) {
    let Command { method, body: request } = command;
    match api::carry_out(server, &method, request.get().as_bytes()).await {
        Ok(result) => write(body, &BTreeMap::from([(method, result)])),
        Err(error) => write(body, &failure(&error)),
    }
}

fn write(body: &mut Vec<u8>, reply: &impl Serialize) {
    serde_json::to_writer(body, reply).expect("replies have string keys");
}

fn failure(error: &ApiError) -> Value {
    json!({ "error": api_form::error(error) })
}

fn too_much() -> ApiError {
    let code = ApiErrorCode::LimitExceeded;
    let message = format!(
        "{}: the answers before this one have more than {ANSWER_BYTES_MAX} bytes, so this call was \
         not carried out: make it in another batch",
        code.text()
    );
    ApiError { code, message }
}

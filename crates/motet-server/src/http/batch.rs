//! Several API calls in one request, answered in their order.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use motet_realtime::hub::ApiErrorCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Server, api, api_form};

/// Calls in one request.
const COMMANDS_MAX: usize = 10_000;

/// The calls run one after the other: the hub answers each at once, so `parallel`, which callers
/// may send, would gain nothing.
#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow, default)]
    commands: Vec<std::collections::BTreeMap<String, &'a RawValue>>,
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

async fn reply(server: &Server, command: std::collections::BTreeMap<String, &RawValue>) -> Value {
    let Some((method, body)) = command.into_iter().next() else {
        return json!({ "error": api_form::error(&ApiErrorCode::BadRequest.into()) });
    };
    match api::carry_out(server, &method, body.get().as_bytes()).await {
        Ok(result) => Value::Object(Map::from_iter([(method, result)])),
        Err(error) => json!({ "error": api_form::error(&error) }),
    }
}

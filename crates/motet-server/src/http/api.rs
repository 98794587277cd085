//! The API for backends: `POST /api/<method>`.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use motet_protocol::ErrorCode;
use motet_realtime::hub::{ApiError, ApiErrorCode};
use motet_realtime::message::ServerErrorCode;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use super::{Call, Server, api_form, room};
use crate::config::Span;

/// Bytes in the body of a call.
const BODY_BYTES_MAX: usize = 16 << 20;
const KEY_HEADER: &str = "x-api-key";
const KEY_PARAMETER: &str = "api_key=";
/// With the value `transport` errors are told by the HTTP status too.
const ERROR_MODE_HEADER: &str = "x-centrifugo-error-mode";

/// Lets a call through once its key is checked and its body is there, in this order: what a
/// stranger sends is neither waited for nor kept.
pub(super) async fn admit(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(refusal) = refusal(&server, request.headers(), request.uri().query()) {
        let unread = !request.body().is_end_stream();
        return if unread { closing(refusal) } else { refusal };
    }
    let (head, body) = request.into_parts();
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return closing(too_large());
    }
    let limit = server.config.http_server.request_timeout.0;
    let body = match timeout(limit, to_bytes(body, BODY_BYTES_MAX)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return closing(too_large()),
        Err(_) => {
            let text = format!("the body did not arrive within {}", Span(limit));
            return closing(bad_request(StatusCode::REQUEST_TIMEOUT, &text));
        }
    };
    next.run(Request::from_parts(head, Body::from(body))).await
}

/// One call.
pub(super) async fn call(
    State(server): State<Arc<Server>>,
    Path(method): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match carry_out(&server, &method, &body).await {
        Ok(result) => Json(Success { result }).into_response(),
        Err(error) => {
            let by_status = headers.get(ERROR_MODE_HEADER).is_some_and(|mode| mode == "transport");
            let form = Json(json!({ "error": api_form::error(&error) }));
            // A call that could not be understood is told by the status in any mode.
            let status = match error.code {
                ApiErrorCode::MethodNotFound => StatusCode::NOT_FOUND,
                _ if by_status => status(error.code),
                _ => StatusCode::OK,
            };
            (status, form).into_response()
        }
    }
}

#[derive(Serialize)]
struct Success {
    result: Box<RawValue>,
}

/// Carries out one call and counts it.
pub(super) async fn carry_out(
    server: &Server,
    method: &str,
    body: &[u8],
) -> Result<Box<RawValue>, ApiError> {
    let call = Call::parse(method, body)?;
    room::check(&call.request, server.config.client.queue_max_size)?;
    let answer = server.hub.api(call.request).await;
    let result = answer.unwrap_or_else(|gone| {
        Err(ApiError { code: ApiErrorCode::Internal, message: gone.to_string() })
    });
    server.metrics.api_called(call.method, result.is_ok());
    let uptime = server.started.elapsed().as_secs();
    result.map(|result| api_form::result(result, call.pattern.as_deref(), uptime))
}

/// Lets a request through that was made to a name of this machine, where the server is for this
/// machine only. What is read without a key must not be read by a page whose name was made to
/// point here.
pub(super) async fn admit_by_host(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let (headers, query) = (request.headers(), request.uri().query());
    if !is_host_admitted(&server, headers) && !is_key_given(&server, headers, query) {
        return forbidden(
            "it is read at localhost: where another name is needed, send the API key",
        );
    }
    next.run(request).await
}

/// The answer to a caller who may not call; `None` for one who sent the key. Where none is needed
/// every program of this machine may call, and no web page but those that may connect: any page
/// that a developer visits can send requests to this machine.
fn refusal(server: &Server, headers: &HeaderMap, query: Option<&str>) -> Option<Response> {
    if is_key_given(server, headers, query) {
        return None;
    }
    if !server.config.http_api.insecure {
        return Some(unauthorized());
    }
    let origin = headers.get(header::ORIGIN);
    if !origin.is_none_or(|value| value.to_str().is_ok_and(|name| server.origins.admit(name))) {
        return Some(forbidden(
            "this origin may not call the API: list it in client.allowed_origins",
        ));
    }
    if !is_host_admitted(server, headers) {
        return Some(forbidden("an API without a key is called at localhost: set http_api.key"));
    }
    None
}

fn is_host_admitted(server: &Server, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    // Who stands between may go by another of several (RFC 9112, 3.2).
    another.is_none()
        && host.is_none_or(|value| value.to_str().is_ok_and(|name| server.origins.admit_host(name)))
}

/// Whether the caller sent the key. Digests are compared, so that the time it takes tells nothing
/// about the key.
fn is_key_given(server: &Server, headers: &HeaderMap, query: Option<&str>) -> bool {
    let keys = &server.config.http_api;
    let by_header = headers.get(KEY_HEADER).and_then(|key| key.to_str().ok());
    let by_query = || query?.split('&').find_map(|pair| pair.strip_prefix(KEY_PARAMETER));
    let Some(given) = by_header.or_else(by_query) else { return false };
    !keys.key.is_empty() && Sha256::digest(given) == Sha256::digest(&keys.key)
}

/// The connection ends with this answer because the rest of the body is not read; a caller that is
/// not told so would lose its next request.
fn closing(mut answer: Response) -> Response {
    answer.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    answer
}

fn unauthorized() -> Response {
    let info = ErrorCode::ApiUnauthorized.info();
    let form = json!({
        "error": { "code": 101, "name": info.name, "message": info.message, "next": info.next_step }
    });
    (StatusCode::UNAUTHORIZED, Json(form)).into_response()
}

fn forbidden(why: &str) -> Response {
    let code = ServerErrorCode::PERMISSION_DENIED;
    let message = format!("{}: {why}", code.text());
    let form = json!({ "error": { "code": code.0, "message": message } });
    (StatusCode::FORBIDDEN, Json(form)).into_response()
}

/// Also a body that was broken off, whose sender reads no answer any more.
fn too_large() -> Response {
    let text = format!("the body is larger than {BODY_BYTES_MAX} bytes");
    bad_request(StatusCode::PAYLOAD_TOO_LARGE, &text)
}

/// A request that could not be understood, and why.
pub(super) fn bad_request(status: StatusCode, why: &str) -> Response {
    let code = ApiErrorCode::BadRequest;
    let message = format!("{}: {why}", code.text());
    (status, Json(json!({ "error": { "code": code.number(), "message": message } })))
        .into_response()
}

const fn status(code: ApiErrorCode) -> StatusCode {
    match code {
        ApiErrorCode::UnknownChannel | ApiErrorCode::MethodNotFound => StatusCode::NOT_FOUND,
        ApiErrorCode::BadRequest => StatusCode::BAD_REQUEST,
        ApiErrorCode::LimitExceeded => StatusCode::PAYLOAD_TOO_LARGE,
        ApiErrorCode::NotAvailable => StatusCode::NOT_IMPLEMENTED,
        ApiErrorCode::UnrecoverablePosition => StatusCode::RANGE_NOT_SATISFIABLE,
        ApiErrorCode::Conflict => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

//! Which web pages a browser lets read the answers: those that are listed, and no others.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

use super::StoreApi;
use crate::http::Origins;

/// The origin of the page that asks, if it is listed.
pub(super) fn admitted(api: &StoreApi, headers: &HeaderMap) -> Option<HeaderValue> {
    let Origins::Listed(_) = &api.origins else { return None };
    let origin = headers.get(header::ORIGIN)?;
    origin.to_str().is_ok_and(|text| api.origins.admit(text)).then(|| origin.clone())
}

/// The answer to a browser that asks what a listed page may send.
pub(super) fn preflight(request: &Request, origin: Option<&HeaderValue>) -> Option<Response> {
    let asks = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !asks || origin.is_none() {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}

/// Lets a listed page read the answer.
pub(super) fn allow(response: &mut Response, origin: Option<HeaderValue>) {
    let Some(origin) = origin else { return };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let exposed = HeaderValue::from_static("ETag, Retry-After, X-Request-Id");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

const METHODS: &str = "GET, PUT, PATCH, POST, DELETE";
const REQUEST_HEADERS: &str =
    "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key, X-Request-Id";

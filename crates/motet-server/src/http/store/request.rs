//! What every request to the store gets: an id, a deadline, a line in the log, its counts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::HttpBody as _;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use motet_protocol::ErrorCode;
use tokio::sync::OwnedSemaphorePermit;
use tracing::{Instrument as _, debug, info_span, warn};

use super::{StoreApi, cors};

/// Beside the request, for those who answer it.
#[derive(Clone)]
pub(super) struct Attended {
    /// When it has to be answered.
    pub(super) deadline: tokio::time::Instant,
    /// Whether its body was read to the end.
    pub(super) body_taken: Arc<AtomicBool>,
    /// Room that its body takes, until it is answered or work on it is done.
    body_room: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Attended {
    pub(super) fn until(deadline: tokio::time::Instant) -> Self {
        Self { deadline, body_taken: Arc::default(), body_room: Arc::default() }
    }

    /// Keeps room for a piece of the body.
    pub(super) fn keep_room(&self, room: OwnedSemaphorePermit) {
        let mut kept = self.body_room.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_mut() {
            Some(kept) => kept.merge(room),
            None => *kept = Some(room),
        }
    }

    /// Hands over the room that the body takes to who goes on with what was in it.
    pub(super) fn take_room(&self) -> Option<OwnedSemaphorePermit> {
        self.body_room.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Answers a request, whatever becomes of it, with its id.
pub(super) async fn attend(
    State(api): State<Arc<StoreApi>>,
    mut request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let id = request_id(request.headers());
    let method = request.method().clone();
    let route = match request.extensions().get::<MatchedPath>() {
        Some(path) => path.as_str().to_owned(),
        None => "none".to_owned(),
    };
    let has_body = !request.body().is_end_stream();
    let attended = Attended::until(tokio::time::Instant::now() + api.keys.request_timeout.0);
    let body_taken = Arc::clone(&attended.body_taken);
    request.extensions_mut().insert(attended.clone());
    let origin = cors::admitted(&api, request.headers());
    let span = info_span!("request", id = id.to_str().unwrap_or_default());
    let mut response = match cors::preflight(&request, origin.as_ref()) {
        Some(response) => response,
        None => next.run(request).instrument(span.clone()).await,
    };
    drop(attended);
    if has_body && !body_taken.load(Ordering::Relaxed) {
        // The rest of the body is not read: a caller that is not told so would lose its next
        // request.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    cors::allow(&mut response, origin);
    response.headers_mut().insert(REQUEST_ID, id);
    let status = response.status().as_u16();
    let code = response.extensions().get::<ErrorCode>().copied();
    api.metrics.store.answered(method.as_str(), &route, status);
    let code = code.map(ErrorCode::name);
    if let Some(code) = code {
        api.metrics.store.failed(code);
    }
    let _entered = span.enter();
    let ms = begun.elapsed().as_millis();
    if status >= 500 {
        warn!(%method, route, status, ms, code, "a request to the store failed");
    } else {
        debug!(%method, route, status, ms, code, "a request to the store was answered");
    }
    response
}

/// The caller's own id of the request if it is a usable one, or a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let usable = |id: &&HeaderValue| {
        (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())
            && id.as_bytes().iter().all(u8::is_ascii_graphic)
    };
    if let Some(given) = headers.get(&REQUEST_ID).filter(usable) {
        return given.clone();
    }
    let id = getrandom::u64().map_or_else(|_| "0".to_owned(), |number| format!("{number:016x}"));
    HeaderValue::from_str(&id).expect("hex digits are a header's value")
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that is taken over from a caller.
const REQUEST_ID_BYTES_MAX: usize = 128;

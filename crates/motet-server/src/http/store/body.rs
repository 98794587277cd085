//! The bodies of requests: JSON, of a bounded size, that arrives in time.

use core::fmt;
use core::future::poll_fn;
use core::marker::PhantomData;
use core::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use motet_protocol::ErrorCode;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokio::time::timeout;

use super::StoreApi;
use super::failure::Failure;
use super::request::Attended;
use crate::config::Span;

/// A body that was read and is what the route wants.
pub(super) struct JsonBody<T>(pub(super) T);

/// A JSON object with the fields of `T`: a list of their values in order, which serde takes for one
/// too, is none.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

impl<T: Serialize> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

impl<T: DeserializeOwned> FromRequest<Arc<StoreApi>> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, api: &Arc<StoreApi>) -> Result<Self, Failure> {
        let bytes = read_json(request, api).await?;
        parse(&bytes).map(Self)
    }
}

/// The bytes of a body that is declared to be JSON.
pub(super) async fn read_json(request: Request, api: &StoreApi) -> Result<Bytes, Failure> {
    if !is_json(request.headers()) {
        return Err(Failure::new(ErrorCode::MediaTypeUnsupported));
    }
    read(request, api).await
}

/// A page can have a browser send anything else than JSON without asking first.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

async fn read(request: Request, api: &StoreApi) -> Result<Bytes, Failure> {
    let attended = request.extensions().get::<Attended>().cloned();
    let attended = attended.expect("every route of the store is attended");
    let body = request.into_body();
    if body.size_hint().lower() > u64::try_from(api.keys.body_bytes_max).unwrap_or(u64::MAX) {
        return Err(too_large(api));
    }
    let limit = api.body_timeout;
    match timeout(limit, take(body, api, &attended)).await {
        Ok(taken) => taken.inspect(|_| attended.body_taken.store(true, Ordering::Relaxed)),
        Err(_) => {
            let message = format!("the body did not arrive within {}", Span(limit));
            Err(Failure::because(ErrorCode::RequestTimeout, message)
                .with_status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}

/// Takes a body as it comes. Each piece needs room among what all requests that are under way have
/// sent, so that nobody who begins many fills the memory; the room is free when the request is
/// answered and no work on it goes on, for until then the body is there in some form.
async fn take(mut body: Body, api: &StoreApi, attended: &Attended) -> Result<Bytes, Failure> {
    let max = api.keys.body_bytes_max;
    let mut taken = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        // Also a body that was broken off, whose sender reads no answer any more.
        let Ok(frame) = frame else { return Err(too_large(api)) };
        let Ok(piece) = frame.into_data() else { continue };
        if piece.len() > max - taken.len() {
            return Err(too_large(api));
        }
        let permits = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&api.body_room).try_acquire_many_owned(permits) else {
            let message = "the bodies of other requests take all room; this one was not read";
            return Err(Failure::because(ErrorCode::ResourceBusy, message));
        };
        attended.keep_room(room);
        taken.extend_from_slice(&piece);
    }
    Ok(taken.into())
}

fn too_large(api: &StoreApi) -> Failure {
    let message = format!("the body has more than {} bytes", api.keys.body_bytes_max);
    Failure::because(ErrorCode::PayloadTooLarge, message)
}

/// Reads JSON; what does not fit is named by its place.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let at = error.path().to_string();
        let at = if at == "." { "body".to_owned() } else { at };
        Failure::invalid(at, error.inner().to_string())
    })?;
    json.end().map_err(|error| Failure::invalid("body", error.to_string()))?;
    Ok(value)
}

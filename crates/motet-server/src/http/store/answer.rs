//! What the routes answer when all went well.

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use motet_protocol::ErrorCode;
use motet_store::{Clock, RawDocument};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::failure::Failure;

/// An answer with the version that it is about in `ETag`.
pub(super) struct Tagged<T> {
    pub(super) version: Clock,
    pub(super) answer: T,
}

/// The names of the environment's types.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Types {
    pub(super) types: Vec<String>,
}

/// The version that a document has after a write.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Version {
    pub(super) version: u64,
}

/// The versions that the documents have after their writes, in the order of these.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Versions {
    pub(super) versions: Vec<u64>,
}

/// A document.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Document)]
pub(super) struct Versioned {
    key: String,
    version: u64,
    /// Its value, as it was written.
    #[schema(value_type = Value)]
    value: Box<RawValue>,
    /// From when on it counts as absent, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_ms: Option<u64>,
}

/// A document that a query found.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Item {
    key: String,
    version: u64,
    #[schema(value_type = Value)]
    value: Box<RawValue>,
    /// From when on it counts as absent, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_ms: Option<u64>,
}

impl Versioned {
    pub(super) fn new(key: String, document: RawDocument) -> Result<Self, Failure> {
        Ok(Self {
            key,
            version: document.version.number(),
            value: raw(document.json)?,
            expires_ms: document.expires_ms,
        })
    }
}

impl Item {
    pub(super) fn new(key: String, document: RawDocument) -> Result<Self, Failure> {
        Ok(Self {
            key,
            version: document.version.number(),
            value: raw(document.json)?,
            expires_ms: document.expires_ms,
        })
    }
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.answer).into_response();
        let tag = HeaderValue::from_str(&format!("\"{}\"", self.version));
        let tag = tag.expect("a number in quotes is a header's value");
        response.headers_mut().insert(header::ETAG, tag);
        response
    }
}

/// JSON text of the store, to be handed on as it is.
pub(super) fn raw(json: Vec<u8>) -> Result<Box<RawValue>, Failure> {
    let text = String::from_utf8(json).map_err(|error| error.to_string());
    let value =
        text.and_then(|text| RawValue::from_string(text).map_err(|error| error.to_string()));
    value.map_err(|why| Failure::because(ErrorCode::StoreCorrupt, format!("a value: {why}")))
}

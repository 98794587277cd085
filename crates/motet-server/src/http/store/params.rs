//! What a request's path and query say.

use core::fmt;

use axum::extract::{FromRequestParts, Query, RawPathParams};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::failure::Failure;

/// The type that a path names.
pub(super) struct TypeName(pub(super) String);

/// The document that a path names.
pub(super) struct DocumentName {
    pub(super) type_name: String,
    pub(super) key: String,
}

/// The index that a path names.
pub(super) struct IndexName {
    pub(super) type_name: String,
    pub(super) name: String,
}

/// The pin that a path names.
pub(super) struct PinName(pub(super) String);

/// The parameters of a request's query. Unknown ones are refused.
pub(super) struct Parameters<T>(pub(super) T);

impl<S: Send + Sync> FromRequestParts<S> for TypeName {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Ok(Self(param(parts, state, "type").await?.unwrap_or_default()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for DocumentName {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let TypeName(type_name) = TypeName::from_request_parts(parts, state).await?;
        let key = match param(parts, state, "key").await? {
            Some(key) => key,
            // The key is the name of a route, which stands in the path as it is.
            None => parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned(),
        };
        Ok(Self { type_name, key })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IndexName {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let TypeName(type_name) = TypeName::from_request_parts(parts, state).await?;
        Ok(Self { type_name, name: param(parts, state, "name").await?.unwrap_or_default() })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PinName {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Ok(Self(param(parts, state, "pin").await?.unwrap_or_default()))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let parsed = Query::try_from_uri(&parts.uri);
        let Query(parameters) = parsed.map_err(|rejected| refuse("query", rejected.body_text()))?;
        Ok(Self(parameters))
    }
}

async fn param<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<Option<String>, Failure> {
    let params = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|rejected| refuse("path", rejected.body_text()))?;
    Ok(params.iter().find(|(given, _)| *given == name).map(|(_, value)| value.to_owned()))
}

fn refuse(at: &str, why: impl fmt::Display) -> Failure {
    Failure::invalid(at, why.to_string())
}

//! Writes that may be sent again: `Idempotency-Key`.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use motet_store::IdempotencyKey;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::StoreApi;
use super::body;
use super::failure::Failure;
use super::precondition::one;

/// Whether a write is done once however often it is sent, and what is sent.
pub(super) struct Once(Option<Keyed>);

/// A request that has a key.
struct Keyed {
    key: String,
    /// Of all that tells it from another request.
    content: Sha256,
}

/// A body that was read and is what the route wants, of a write that may be done once.
pub(super) struct OnceBody<T> {
    pub(super) once: Once,
    pub(super) value: T,
}

impl Once {
    fn of(parts: &Parts) -> Result<Self, Failure> {
        let Some(key) = one(&parts.headers, &IDEMPOTENCY_KEY)? else { return Ok(Self(None)) };
        let usable = (1..=KEY_BYTES_MAX).contains(&key.len())
            && key.bytes().all(|byte| byte.is_ascii_graphic());
        if !usable {
            let why = format!("expected 1 to {KEY_BYTES_MAX} visible ASCII characters, no spaces");
            return Err(Failure::invalid("Idempotency-Key", why));
        }
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let mut keyed = Keyed { key: key.to_owned(), content: Sha256::new() };
        for part in [
            parts.method.as_str().as_bytes(),
            target.as_bytes(),
            header_bytes(&parts.headers, &header::IF_MATCH),
            header_bytes(&parts.headers, &header::IF_NONE_MATCH),
        ] {
            keyed.add(part);
        }
        Ok(Self(Some(keyed)))
    }

    /// The key of this caller, if the request has one.
    pub(super) fn key(self, caller: &str) -> Option<IdempotencyKey> {
        let Keyed { key, content } = self.0?;
        Some(IdempotencyKey::new(caller, &key, content.finalize()))
    }
}

impl Keyed {
    fn add(&mut self, part: &[u8]) {
        self.content.update(Sha256::digest(part));
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Once {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Self::of(parts)
    }
}

impl<T: DeserializeOwned> FromRequest<Arc<StoreApi>> for OnceBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, api: &Arc<StoreApi>) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let mut once = Once::of(&parts)?;
        let bytes = body::read_json(Request::from_parts(parts, body), api).await?;
        if let Once(Some(keyed)) = &mut once {
            keyed.add(&bytes);
        }
        Ok(Self { once, value: body::parse(&bytes)? })
    }
}

fn header_bytes<'h>(headers: &'h HeaderMap, name: &HeaderName) -> &'h [u8] {
    headers.get(name).map_or(b"", |value| value.as_bytes())
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest key.
const KEY_BYTES_MAX: usize = 255;

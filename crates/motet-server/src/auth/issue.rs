//! Making tokens for development.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{EncodingKey, Header, encode};
use serde::Serialize;

/// What a token is to say.
#[derive(Clone, Debug, Default)]
pub struct TokenRequest {
    /// The user; empty for an anonymous one.
    pub user: String,
    /// Makes a subscription token for this channel.
    pub channel: Option<String>,
    /// How long it is good for; `None` for ever.
    pub ttl: Option<Duration>,
}

#[derive(Serialize)]
struct Claims<'a> {
    sub: &'a str,
    iat: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
}

/// Signs a token with HS256.
///
/// # Errors
/// When the secret is no good for the algorithm.
pub fn issue(secret: &str, request: &TokenRequest) -> Result<String, jsonwebtoken::errors::Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let claims = Claims {
        sub: &request.user,
        iat: now.as_secs(),
        exp: request.ttl.map(|ttl| now.saturating_add(ttl).as_secs()),
        channel: request.channel.as_deref(),
    };
    encode(&Header::default(), &claims, &EncodingKey::from_secret(secret.as_bytes())?)
}

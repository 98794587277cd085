//! From a token to verified claims.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use motet_realtime::server::{TokenClaims, TokenError, TokenKind};
use tracing::debug;

use super::claims::Claims;
use super::jwks::{JwksCache, NoKey};
use super::keys::{Family, KeyError, KeyRing, family};
use crate::config::{ClientKeys, TokenKeys};

/// Verifies connection and subscription tokens.
pub struct Verifier {
    connection: KeyRing,
    /// `None`: the same keys as for connections.
    subscription: Option<KeyRing>,
    jwks: JwksCache,
}

impl Verifier {
    /// A verifier with the configured keys.
    ///
    /// # Errors
    /// [`KeyError`] when a configured key cannot be used.
    pub fn new(keys: &ClientKeys) -> Result<Self, KeyError> {
        let subscription = keys
            .subscription_token
            .enabled
            .then(|| {
                KeyRing::new(
                    &TokenKeys::from(&keys.subscription_token),
                    "client.subscription_token",
                )
            })
            .transpose()?;
        Ok(Self {
            connection: KeyRing::new(&keys.token, "client.token")?,
            subscription,
            jwks: JwksCache::new(),
        })
    }

    /// Verifies a token.
    ///
    /// # Errors
    /// [`TokenError`] says whether another token would help.
    pub async fn verify(
        &self,
        kind: TokenKind,
        token: &str,
    ) -> Result<TokenClaims<Bytes>, TokenError> {
        let ring = match (kind, &self.subscription) {
            (TokenKind::Subscription, Some(ring)) => ring,
            _ => &self.connection,
        };
        let claims = self.check_signature(ring, token).await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        match kind {
            TokenKind::Connection => {
                claims.connection(now).map(|claims| TokenClaims::Connection(Box::new(claims)))
            }
            TokenKind::Subscription => {
                claims.subscription(now).map(|claims| TokenClaims::Subscription(Box::new(claims)))
            }
        }
    }

    async fn check_signature(&self, ring: &KeyRing, token: &str) -> Result<Claims, TokenError> {
        let header = decode_header(token).map_err(refused)?;
        let algorithm = header.alg;
        // The key decides which algorithms it is good for, never the token alone: a public key
        // is no HMAC secret.
        if let (Some(endpoint), Some(kid)) = (&ring.jwks_endpoint, &header.kid)
            && family(algorithm) != Family::Hmac
        {
            let jwk = self.jwks.find(endpoint, kid).await.map_err(|missing| match missing {
                NoKey::Unknown => TokenError::Invalid,
                NoKey::Unavailable => TokenError::KeysUnavailable,
            })?;
            let key = DecodingKey::from_jwk(&jwk).map_err(refused)?;
            return decode_with(ring, token, algorithm, &key);
        }
        let key = ring.find(algorithm).ok_or_else(|| {
            debug!(?algorithm, "a token was refused: no key is configured for its algorithm");
            TokenError::Invalid
        })?;
        let verdict = decode_with(ring, token, algorithm, key);
        match (&verdict, &ring.hmac_previous) {
            (Err(TokenError::Invalid), Some(previous)) if family(algorithm) == Family::Hmac => {
                let claims = decode_with(ring, token, algorithm, previous)?;
                let until = ring.hmac_previous_valid_until;
                let in_time = until == 0 || claims.issued_at().is_some_and(|at| at <= until);
                if in_time { Ok(claims) } else { Err(TokenError::Invalid) }
            }
            _ => verdict,
        }
    }
}

fn decode_with(
    ring: &KeyRing,
    token: &str,
    algorithm: Algorithm,
    key: &DecodingKey,
) -> Result<Claims, TokenError> {
    let mut validation = Validation::new(algorithm);
    // Expiry is judged with the claims, where `expire_at` can be weighed too.
    validation.validate_exp = false;
    validation.validate_nbf = true;
    validation.leeway = 0;
    let mut required: Vec<&str> = Vec::new();
    match &ring.audience {
        Some(audience) => {
            validation.set_audience(&[audience]);
            required.push("aud");
        }
        None => validation.validate_aud = false,
    }
    if let Some(issuer) = &ring.issuer {
        validation.set_issuer(&[issuer]);
        required.push("iss");
    }
    validation.set_required_spec_claims(&required);
    decode::<Claims>(token, key, &validation).map(|data| data.claims).map_err(refused)
}

/// The client learns no more than that its token is no good; whoever runs the server may want to
/// know why.
#[expect(clippy::needless_pass_by_value, reason = "it is the end of an error")]
fn refused(cause: jsonwebtoken::errors::Error) -> TokenError {
    debug!(%cause, "a token was refused");
    TokenError::Invalid
}

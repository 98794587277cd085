//! The keys that a server accepts tokens of, by algorithm.

use jsonwebtoken::{Algorithm, DecodingKey};
use thiserror::Error;

use crate::config::{SubscriptionTokenKeys, TokenKeys};

/// Why a configured key cannot be used.
#[derive(Debug, Error)]
#[error("{key}: {cause}")]
pub struct KeyError {
    /// The configuration key.
    pub key: &'static str,
    /// What is wrong.
    pub cause: jsonwebtoken::errors::Error,
}

/// Keys of one kind of token.
pub(super) struct KeyRing {
    pub(super) hmac: Option<DecodingKey>,
    pub(super) hmac_previous: Option<DecodingKey>,
    /// Issue times after this are not accepted with the previous secret; 0 accepts any.
    pub(super) hmac_previous_valid_until: u64,
    pub(super) rsa: Option<DecodingKey>,
    pub(super) ecdsa: Option<DecodingKey>,
    pub(super) jwks_endpoint: Option<String>,
    pub(super) audience: Option<String>,
    pub(super) issuer: Option<String>,
}

impl KeyRing {
    pub(super) fn new(keys: &TokenKeys) -> Result<Self, KeyError> {
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let secret = |secret: &String, key: &'static str| match secret.as_str() {
            "" => Ok(None),
            secret => DecodingKey::from_secret(secret.as_bytes())
                .map(Some)
                .map_err(|cause| KeyError { key, cause }),
        };
        let pem = |pem: &String, key, parse: fn(&[u8]) -> Result<DecodingKey, _>| match pem.as_str()
        {
            "" => Ok(None),
            pem => parse(pem.as_bytes()).map(Some).map_err(|cause| KeyError { key, cause }),
        };
        Ok(Self {
            hmac: secret(&keys.hmac_secret_key, "hmac_secret_key")?,
            hmac_previous: secret(&keys.hmac_previous_secret_key, "hmac_previous_secret_key")?,
            hmac_previous_valid_until: keys.hmac_previous_secret_key_valid_until,
            rsa: pem(&keys.rsa_public_key, "rsa_public_key", DecodingKey::from_rsa_pem)?,
            ecdsa: pem(&keys.ecdsa_public_key, "ecdsa_public_key", DecodingKey::from_ec_pem)?,
            jwks_endpoint: text(&keys.jwks_public_endpoint),
            audience: text(&keys.audience),
            issuer: text(&keys.issuer),
        })
    }

    /// The configured key for an algorithm.
    pub(super) fn find(&self, algorithm: Algorithm) -> Option<&DecodingKey> {
        match family(algorithm) {
            Family::Hmac => self.hmac.as_ref(),
            Family::Rsa => self.rsa.as_ref(),
            Family::Ecdsa => self.ecdsa.as_ref(),
            // These come by key set only.
            Family::Eddsa | Family::Other => None,
        }
    }
}

/// Algorithms that share a kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Hmac,
    Rsa,
    Ecdsa,
    Eddsa,
    Other,
}

pub(super) const fn family(algorithm: Algorithm) -> Family {
    match algorithm {
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => Family::Hmac,
        Algorithm::RS256 | Algorithm::RS384 | Algorithm::RS512 => Family::Rsa,
        Algorithm::ES256 | Algorithm::ES384 => Family::Ecdsa,
        Algorithm::EdDSA => Family::Eddsa,
        _ => Family::Other,
    }
}

impl From<&SubscriptionTokenKeys> for TokenKeys {
    fn from(keys: &SubscriptionTokenKeys) -> Self {
        Self {
            hmac_secret_key: keys.hmac_secret_key.clone(),
            hmac_previous_secret_key: keys.hmac_previous_secret_key.clone(),
            hmac_previous_secret_key_valid_until: keys.hmac_previous_secret_key_valid_until,
            rsa_public_key: keys.rsa_public_key.clone(),
            ecdsa_public_key: keys.ecdsa_public_key.clone(),
            jwks_public_endpoint: keys.jwks_public_endpoint.clone(),
            audience: keys.audience.clone(),
            issuer: keys.issuer.clone(),
        }
    }
}

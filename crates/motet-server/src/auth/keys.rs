//! The keys that a server accepts tokens of, by algorithm.

use jsonwebtoken::{Algorithm, DecodingKey};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;
use thiserror::Error;

use crate::config::{SubscriptionTokenKeys, TokenKeys};

/// Why a configured key cannot be used.
#[derive(Debug, Error)]
#[error("{key}: {cause}")]
pub struct KeyError {
    /// The path of the configuration key.
    pub key: String,
    /// What is wrong.
    pub cause: KeyFault,
}

/// What is wrong with a configured key.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyFault {
    /// It is no key of the kind that is wanted there.
    #[error("{0}: expected {1}")]
    Format(jsonwebtoken::errors::Error, &'static str),
    /// An elliptic curve whose signatures cannot be verified here.
    #[error(
        "this curve is not supported: expected a key of P-256 (ES256) or P-384 (ES384); \
         ES512 and ES256K tokens cannot be verified"
    )]
    Curve,
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
    /// `section` is where the keys are configured, for errors.
    pub(super) fn new(keys: &TokenKeys, section: &str) -> Result<Self, KeyError> {
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let parse = |text: &String, key: &str, parse: Parse| match text.as_str() {
            "" => Ok(None),
            text => parse(text.as_bytes())
                .map(Some)
                .map_err(|cause| KeyError { key: format!("{section}.{key}"), cause }),
        };
        Ok(Self {
            hmac: parse(&keys.hmac_secret_key, "hmac_secret_key", secret)?,
            hmac_previous: parse(
                &keys.hmac_previous_secret_key,
                "hmac_previous_secret_key",
                secret,
            )?,
            hmac_previous_valid_until: keys.hmac_previous_secret_key_valid_until,
            rsa: parse(&keys.rsa_public_key, "rsa_public_key", rsa)?,
            ecdsa: parse(&keys.ecdsa_public_key, "ecdsa_public_key", ecdsa)?,
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

type Parse = fn(&[u8]) -> Result<DecodingKey, KeyFault>;

fn secret(text: &[u8]) -> Result<DecodingKey, KeyFault> {
    DecodingKey::from_secret(text).map_err(|cause| KeyFault::Format(cause, "a secret"))
}

fn rsa(pem: &[u8]) -> Result<DecodingKey, KeyFault> {
    let expected = "the PEM of an RSA public key";
    DecodingKey::from_rsa_pem(pem).map_err(|cause| KeyFault::Format(cause, expected))
}

/// Keys of every curve parse, so the curve is looked at by itself: a key whose tokens could never
/// be verified would otherwise be found out by its users.
fn ecdsa(pem: &[u8]) -> Result<DecodingKey, KeyFault> {
    let expected = "the PEM of an elliptic public key (BEGIN PUBLIC KEY)";
    let key = DecodingKey::from_ec_pem(pem).map_err(|cause| KeyFault::Format(cause, expected))?;
    let info = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| KeyFault::Curve)?;
    let is_on = |curve: &[u8]| info.windows(curve.len()).any(|part| part == curve);
    if CURVES.into_iter().any(is_on) { Ok(key) } else { Err(KeyFault::Curve) }
}

/// Object identifiers of P-256 and P-384 (RFC 5480, 2.1.1.1) in DER.
const CURVES: [&[u8]; 2] = [
    &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
    &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22],
];

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

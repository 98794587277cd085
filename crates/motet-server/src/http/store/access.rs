//! Who may do what: API tokens, and without them only who is on this machine.

use core::num::NonZeroU32;

use axum::http::{HeaderMap, HeaderName, header};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use motet_protocol::ErrorCode;
use sha2::{Digest as _, Sha256};

use super::StoreApi;
use super::failure::Failure;
use crate::config::{StoreTokenKeys, TokenEnvironments};
use crate::http::origin;

/// What a call needs to be allowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    /// Reading documents and the log.
    Read,
    /// Changing documents.
    Write,
    /// Indexes, definitions, retention, pins and backups.
    Admin,
}

/// The tokens that are good.
pub(super) struct Tokens {
    tokens: Vec<Token>,
    /// That of all callers where there are no tokens.
    rate: Rate,
}

struct Token {
    name: String,
    rate: Rate,
    digest: [u8; 32],
    environments: TokenEnvironments,
    permissions: Vec<Permission>,
}

impl Permission {
    fn named(name: &str) -> Option<Self> {
        match name {
            "read" => Some(Self::Read),
            "write" => Some(Self::Write),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl Tokens {
    /// The tokens of a configuration, which has been checked, and how many requests each may make in
    /// a second.
    pub(super) fn new(keys: &[StoreTokenKeys], requests_per_second: u32) -> Self {
        let rate = || Rate::new(requests_per_second);
        let tokens = keys.iter().filter_map(|token| {
            Some(Token {
                name: token.name.clone(),
                rate: rate(),
                digest: parse_digest(&token.token_sha256)?,
                environments: token.environments.clone(),
                permissions: token
                    .permissions
                    .iter()
                    .filter_map(|name| Permission::named(name))
                    .collect(),
            })
        });
        Self { tokens: tokens.collect(), rate: rate() }
    }

    fn find(&self, given: &str) -> Option<&Token> {
        let digest: [u8; 32] = Sha256::digest(given).into();
        // All are looked at, and all of each, so that the time it takes tells nothing.
        self.tokens.iter().fold(None, |found, token| {
            if equal(&token.digest, &digest) { Some(token) } else { found }
        })
    }
}

impl StoreApi {
    /// Checks that a caller may do this in an environment, and gives the name it goes by.
    ///
    /// # Errors
    /// `ORIGIN_FORBIDDEN` without tokens; `TOKEN_INVALID` and `PERMISSION_DENIED` with them;
    /// `RATE_LIMITED`.
    pub(super) fn admit(
        &self,
        headers: &HeaderMap,
        environment: Option<&str>,
        permission: Permission,
    ) -> Result<&str, Failure> {
        if self.tokens.tokens.is_empty() {
            self.admit_local(headers)?;
            return self.tokens.rate.spend().map(|()| "local");
        }
        let token = bearer(headers).and_then(|given| self.tokens.find(given));
        let token = token.ok_or_else(|| Failure::new(ErrorCode::TokenInvalid))?;
        token.rate.spend()?;
        let Some(environment) = environment else { return Ok(&token.name) };
        let allowed =
            token.permissions.contains(&permission) && token.environments.contain(environment);
        if allowed {
            return Ok(&token.name);
        }
        let (name, permission) = (&token.name, permission.name());
        let message = format!("the token {name:?} has no permission to {permission} there");
        Err(Failure::because(ErrorCode::PermissionDenied, message))
    }

    /// Without tokens the server listens on loopback, which any page that runs in a browser here
    /// can reach: its origin tells it from a program, and the host name tells a page whose name was
    /// made to lead here (DNS rebinding).
    fn admit_local(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let twice = |name: HeaderName| headers.get_all(name).iter().nth(1).is_some();
        if twice(header::HOST) || twice(header::ORIGIN) {
            // Who stands between may go by another of them (RFC 9112, 3.2).
            let message = "there is more than one Host or Origin header";
            return Err(Failure::because(ErrorCode::OriginForbidden, message));
        }
        if !text(header::HOST).is_some_and(|host| origin::is_loopback(&format!("http://{host}"))) {
            let message = "the Host header does not name this machine";
            return Err(Failure::because(ErrorCode::OriginForbidden, message));
        }
        match text(header::ORIGIN) {
            Some(origin) if !self.origins.admit(origin) => {
                let message = "a page of this origin may not use the store";
                Err(Failure::because(ErrorCode::OriginForbidden, message))
            }
            _ => Ok(()),
        }
    }
}

/// How many requests a caller may make in a second.
struct Rate(Option<DefaultDirectRateLimiter>);

impl Rate {
    /// None at all is no bound.
    fn new(per_second: u32) -> Self {
        Self(NonZeroU32::new(per_second).map(|rate| RateLimiter::direct(Quota::per_second(rate))))
    }

    fn spend(&self) -> Result<(), Failure> {
        match self.0.as_ref().map(RateLimiter::check) {
            Some(Err(_)) => Err(Failure::new(ErrorCode::RateLimited)),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn parse_digest(hex: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(digest)
}

fn equal(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |different, (one, other)| different | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_digest_only() {
        let key = |text: &str| StoreTokenKeys {
            name: text.to_owned(),
            token_sha256: Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect(),
            ..StoreTokenKeys::default()
        };
        let tokens = Tokens::new(&[key("a"), key("b")], 0);
        assert_eq!(tokens.find("b").map(|token| token.name.as_str()), Some("b"));
        assert!(tokens.find("c").is_none() && tokens.find("").is_none());
    }
}

//! What of the store's keys no single one can tell.

use tokio::sync::Semaphore;

use super::keys::{StoreKeys, StoreTokenKeys};
use super::{ConfigError, hub_options};

/// Checks the section `store`.
pub(super) fn validate(store: &StoreKeys, file: &str) -> Result<(), ConfigError> {
    for (limit, key) in [
        (store.value_bytes_max, "store.value_bytes_max"),
        (store.body_bytes_max, "store.body_bytes_max"),
        (store.bodies_bytes_max, "store.bodies_bytes_max"),
        (store.answer_bytes_max, "store.answer_bytes_max"),
        (store.batch_writes_max, "store.batch_writes_max"),
        (store.calls_max, "store.calls_max"),
        (
            usize::try_from(store.environment_bytes_max).unwrap_or(usize::MAX),
            "store.environment_bytes_max",
        ),
    ] {
        if limit == 0 {
            return Err(ConfigError::invalid(file, key, "a number above 0"));
        }
    }
    if !(store.body_bytes_max..=Semaphore::MAX_PERMITS).contains(&store.bodies_bytes_max) {
        let expected = format!("{} or more, as store.body_bytes_max has it", store.body_bytes_max);
        return Err(ConfigError::invalid(file, "store.bodies_bytes_max", expected));
    }
    if store.calls_max > CALLS_MAX {
        let expected = format!("a number up to {CALLS_MAX}: each call takes a thread");
        return Err(ConfigError::invalid(file, "store.calls_max", expected));
    }
    if store.request_timeout.0.is_zero() {
        let expected = "a time above 0s: with none, nothing could be answered";
        return Err(ConfigError::invalid(file, "store.request_timeout", expected));
    }
    let origins = &store.allowed_origins;
    if let Some(at) = origins.iter().position(|pattern| !hub_options::is_origin(pattern)) {
        let expected = "an origin such as \"https://example.com\", which has no path";
        return Err(ConfigError::invalid(file, format!("store.allowed_origins[{at}]"), expected));
    }
    for (at, token) in store.tokens.iter().enumerate() {
        validate_token(token, file, &format!("store.tokens[{at}]"))?;
    }
    Ok(())
}

fn validate_token(token: &StoreTokenKeys, file: &str, path: &str) -> Result<(), ConfigError> {
    let invalid = |key: &str, expected: &str| {
        Err(ConfigError::invalid(file, format!("{path}.{key}"), expected))
    };
    if token.name.is_empty() {
        return invalid("name", "a name, which stands in the log");
    }
    let digest = &token.token_sha256;
    if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return invalid("token_sha256", "the SHA-256 of the token, 64 hex digits");
    }
    let known = |name: &String| PERMISSIONS.contains(&name.as_str());
    if token.permissions.is_empty() || !token.permissions.iter().all(known) {
        return invalid("permissions", "some of \"read\", \"write\" and \"admin\"");
    }
    Ok(())
}

/// The names of permissions.
pub(super) const PERMISSIONS: [&str; 3] = ["read", "write", "admin"];

/// The most threads that wait on the store.
const CALLS_MAX: usize = 400;

//! Keys fetched from a JSON Web Key Set.
//!
//! A cached key belongs to the endpoint it came from as well as to its id: a key id alone says
//! nothing about who issued it, and a key of one issuer must never vouch for another.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use jsonwebtoken::jwk::{Jwk, JwkSet};
use tracing::warn;

/// How long a fetched key is trusted before the set is read again.
const KEY_TTL: Duration = Duration::from_secs(3600);
/// How long an endpoint is left alone after a fetch that did not bring the wanted key, so that
/// made-up key ids do not turn into requests.
const REFETCH_DELAY: Duration = Duration::from_secs(10);
/// How long one fetch may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes in a key set.
const SET_BYTES_MAX: usize = 1 << 20;

/// Why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The key set has no such key.
    Unknown,
    /// The key set cannot be had.
    Unavailable,
}

pub(super) struct JwksCache {
    client: reqwest::Client,
    endpoints: Mutex<HashMap<String, Arc<Endpoint>>>,
}

#[derive(Default)]
struct Endpoint {
    /// Never locked while a fetch is under way: logins by a known key do not wait for those that
    /// name an unknown one.
    set: Mutex<KeySet>,
    /// Held by the one who fetches.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct KeySet {
    keys: HashMap<String, Jwk>,
    fetched_at: Option<Instant>,
    /// When the last fetch ended, whatever it brought.
    tried_at: Option<Instant>,
}

impl JwksCache {
    pub(super) fn new() -> Self {
        // A client that cannot be built (no TLS roots) fails each fetch instead of the start.
        let client = reqwest::Client::builder()
            .timeout(FETCH_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap_or_default();
        Self { client, endpoints: Mutex::default() }
    }

    /// The key with this id at this endpoint. Concurrent askers share one fetch.
    pub(super) async fn find(&self, endpoint: &str, kid: &str) -> Result<Jwk, NoKey> {
        let entry = lock(&self.endpoints).entry(endpoint.to_owned()).or_default().clone();
        if let Some(known) = lock(&entry.set).find_without_fetch(kid) {
            return known;
        }
        let _turn = entry.fetching.lock().await;
        // Somebody else's fetch may have ended meanwhile.
        if let Some(known) = lock(&entry.set).find_without_fetch(kid) {
            return known;
        }
        let fetched = self.fetch(endpoint).await;
        let mut set = lock(&entry.set);
        set.tried_at = Some(Instant::now());
        match fetched {
            Ok(keys) => {
                set.keys = keys;
                set.fetched_at = Some(Instant::now());
            }
            Err(cause) => warn!(endpoint, %cause, "JWKS_UNAVAILABLE: {}",
                motet_protocol::ErrorCode::JwksUnavailable.info().next_step),
        }
        set.find(kid)
    }

    async fn fetch(&self, endpoint: &str) -> Result<HashMap<String, Jwk>, FetchError> {
        let mut response = self.client.get(endpoint).send().await?.error_for_status()?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > SET_BYTES_MAX {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        let set: JwkSet = serde_json::from_slice(&body)?;
        let named = |key: Jwk| key.common.key_id.clone().map(|kid| (kid, key));
        Ok(set.keys.into_iter().filter_map(named).collect())
    }
}

impl KeySet {
    /// What can be said of a key without a fetch; `None` when a fetch is due.
    fn find_without_fetch(&self, kid: &str) -> Option<Result<Jwk, NoKey>> {
        let fresh = self.fetched_at.is_some_and(|at| at.elapsed() < KEY_TTL);
        let tried_lately = self.tried_at.is_some_and(|at| at.elapsed() < REFETCH_DELAY);
        (tried_lately || fresh && self.keys.contains_key(kid)).then(|| self.find(kid))
    }

    /// A known key outlives its time while the endpoint is away.
    fn find(&self, kid: &str) -> Result<Jwk, NoKey> {
        let missing = if self.fetched_at.is_some() { NoKey::Unknown } else { NoKey::Unavailable };
        self.keys.get(kid).cloned().ok_or(missing)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it holds the lock")
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("the request failed: {0}")]
    Request(#[from] reqwest::Error),
    #[error("the answer is no key set: {0}")]
    Format(#[from] serde_json::Error),
    #[error("the answer is larger than {SET_BYTES_MAX} bytes")]
    TooLarge,
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_known_key_is_found_while_an_unknown_one_is_fetched_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}/keys", listener.local_addr().expect("an address"));
        let jwk = r#"{"kty":"oct","kid":"known","k":"c2VjcmV0"}"#;
        let known: Jwk = serde_json::from_str(jwk).expect("a key");
        let set = KeySet {
            keys: HashMap::from([("known".to_owned(), known)]),
            fetched_at: Some(Instant::now()),
            tried_at: None,
        };
        let entry = Endpoint { set: Mutex::new(set), ..Endpoint::default() };
        let cache = JwksCache::new();
        lock(&cache.endpoints).insert(endpoint.clone(), Arc::new(entry));

        let mut unknown = core::pin::pin!(cache.find(&endpoint, "unknown"));
        // The endpoint takes the request and never answers.
        let request = tokio::select! {
            request = listener.accept() => request.expect("a request"),
            _ = &mut unknown => panic!("nothing was answered"),
        };
        let found = cache.find(&endpoint, "known").now_or_never().expect("it does not wait");
        assert!(found.is_ok());
        let mut another = core::pin::pin!(cache.find(&endpoint, "another"));
        assert!((&mut another).now_or_never().is_none(), "it waits for the fetch under way");
        drop((listener, request));
        assert_eq!(unknown.await, Err(NoKey::Unknown));
        assert_eq!(another.await, Err(NoKey::Unknown), "the fetch under way was for both");
    }
}

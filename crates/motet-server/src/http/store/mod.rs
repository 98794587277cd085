//! The document store over HTTP, under `/api/<environment>`.
//!
//! A handler gets at an environment only through a [`Call`](call::Call), which the caller's origin,
//! token and permission have been checked for; the store is asked on threads that may wait, and
//! never longer than the request may take.

mod access;
mod answer;
mod backup;
mod body;
mod call;
mod cors;
mod definition;
mod document;
mod failure;
mod idempotency;
mod index;
mod log;
mod openapi;
mod params;
mod pin;
mod precondition;
mod query;
mod request;
mod transaction;

use core::time::Duration;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, any, delete, get, post};
use motet_protocol::ErrorCode;
use motet_store::engine::lmdb;
use motet_store::{Limits, Store, StoreOptions};
use tokio::sync::Semaphore;

use self::access::Tokens;
use self::failure::Failure;
use super::Origins;
use crate::config::{Config, StoreKeys};
use crate::error::ServerError;
use crate::metrics::Metrics;

/// What the handlers of the store's routes share.
pub struct StoreApi {
    store: Store,
    keys: StoreKeys,
    tokens: Tokens,
    origins: Origins,
    /// How long a body may take to arrive.
    body_timeout: Duration,
    /// How many more calls may work on the store now.
    slots: Arc<Semaphore>,
    /// How many more bytes the bodies of requests under way may have.
    body_room: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl StoreApi {
    /// Opens the store that is configured, if one is, for a server that listens on this address.
    ///
    /// # Errors
    /// [`ServerError::TokensRequired`] for an address that others can reach and no tokens; what is
    /// in the way of opening the store.
    pub fn open(
        config: &Config,
        address: IpAddr,
        metrics: &Arc<Metrics>,
    ) -> Result<Option<Arc<Self>>, ServerError> {
        let keys = &config.store;
        if keys.path.is_empty() {
            return Ok(None);
        }
        if keys.tokens.is_empty() && !address.is_loopback() {
            return Err(ServerError::TokensRequired { address });
        }
        let options = StoreOptions {
            limits: Limits {
                value_bytes_max: keys.value_bytes_max,
                batch_writes_max: keys.batch_writes_max,
                ..Limits::default()
            },
            engine: lmdb::Options {
                max_bytes: keys.environment_bytes_max,
                ..lmdb::Options::default()
            },
        };
        let store = Store::open_with(PathBuf::from(&keys.path), options)?;
        store.env(DEFAULT_ENVIRONMENT)?;
        Ok(Some(Arc::new(Self {
            store,
            tokens: Tokens::new(&keys.tokens, keys.requests_per_second),
            origins: Origins::new(&keys.allowed_origins, address),
            body_timeout: config.http_server.request_timeout.0,
            slots: Arc::new(Semaphore::new(keys.calls_max)),
            body_room: Arc::new(Semaphore::new(keys.bodies_bytes_max)),
            keys: keys.clone(),
            metrics: Arc::clone(metrics),
        })))
    }
}

/// All routes of the store.
pub(super) fn router(api: &Arc<StoreApi>) -> Router {
    let mut router = Router::new();
    for (path, methods) in routes() {
        router = router.route(path, methods.fallback(method_not_allowed));
    }
    router
        .route("/api/{env}/{*rest}", any(route_not_found))
        // Its size is limited where it is read.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Arc::clone(api), request::attend))
        .with_state(Arc::clone(api))
}

fn routes() -> [(&'static str, MethodRouter<Arc<StoreApi>>); 17] {
    [
        ("/api/{env}/types", get(document::types)),
        ("/api/{env}/types/{type}/query", document_routes().post(query::query)),
        ("/api/{env}/types/{type}/count", document_routes().post(query::count)),
        ("/api/{env}/types/{type}/explain", document_routes().post(query::explain)),
        ("/api/{env}/types/{type}/indexes", get(index::list)),
        ("/api/{env}/types/{type}/indexes/{name}", delete(index::drop_index).put(index::create)),
        ("/api/{env}/types/{type}/{key}", document_routes()),
        ("/api/{env}/definitions/{type}", get(definition::read).put(definition::define)),
        ("/api/{env}/definitions/{type}/violations", get(definition::violations)),
        ("/api/{env}/transactions", post(transaction::commit)),
        ("/api/{env}/log", get(log::read)),
        ("/api/{env}/log/retention", get(log::retention).put(log::set_retention)),
        ("/api/{env}/log/pins", get(pin::list)),
        ("/api/{env}/log/pins/{pin}", delete(pin::unpin).put(pin::pin)),
        ("/api/{env}/backup", post(backup::backup)),
        ("/api/{env}/status", get(log::status)),
        ("/api/openapi.json", get(openapi::openapi)),
    ]
}

/// A document may have a key such as `query`: only POST means something else there.
fn document_routes() -> MethodRouter<Arc<StoreApi>> {
    get(document::read).put(document::put).patch(document::patch).delete(document::remove)
}

async fn method_not_allowed() -> Failure {
    Failure::new(ErrorCode::MethodNotAllowed)
}

async fn route_not_found() -> Failure {
    Failure::new(ErrorCode::RouteNotFound)
}

/// The answer for what is under `/api` and has no route.
pub(super) fn nothing_here() -> Response {
    Failure::new(ErrorCode::RouteNotFound).into_response()
}

/// The environment that is always there.
const DEFAULT_ENVIRONMENT: &str = "default";

//! The HTTP side: the WebSocket endpoint, the API, health and metrics.

mod api;
mod api_form;
mod batch;
mod gate;
mod glob;
mod method;
mod origin;
mod room;
mod store;
mod websocket;

pub use batch::{Batch, Command};
pub use gate::Gate;
pub use method::Call;
pub use origin::Origins;
pub use store::StoreApi;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};

use crate::config::Config;
use crate::engine::HubHandle;
use crate::metrics::Metrics;

/// What every request handler needs.
pub struct Server {
    /// The configuration.
    pub config: Arc<Config>,
    /// The hub.
    pub hub: HubHandle,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Which web pages may connect.
    pub origins: Origins,
    /// How many may connect.
    pub gate: Arc<Gate>,
    /// The document store, if one is served.
    pub store: Option<Arc<StoreApi>>,
    /// When the server started.
    pub started: Instant,
    /// The server no longer takes connections.
    pub stopping: AtomicBool,
}

/// All routes.
pub fn router(server: Arc<Server>) -> Router {
    let config = &server.config;
    let mut router = Router::new().route(&config.websocket.handler_prefix, any(websocket::connect));
    if config.health.enabled {
        router = router.route("/health", get(health));
    }
    if config.prometheus.enabled {
        let admit = middleware::from_fn_with_state(server.clone(), api::admit_by_host);
        router = router.route("/metrics", get(metrics).route_layer(admit));
    }
    if is_api_on(config) {
        let admit = middleware::from_fn_with_state(server.clone(), api::admit);
        let calls = Router::new()
            .route("/api/batch", post(batch::call))
            .route("/api/{method}", post(api::call))
            // Its size is limited where it is read.
            .layer(DefaultBodyLimit::disable())
            .route_layer(admit);
        router = router.merge(calls);
    }
    let store = server.store.as_ref().map(store::router);
    let router = router
        .fallback(nothing_here)
        .method_not_allowed_fallback(another_method)
        .with_state(server);
    match store {
        Some(store) => router.merge(store),
        None => router,
    }
}

/// `{}` while the server takes connections, 503 while it stops or when its hub does not answer.
async fn health(State(server): State<Arc<Server>>) -> Response {
    let stopping = server.stopping.load(Ordering::Relaxed);
    if stopping || server.hub.stats().await.is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    ([(header::CONTENT_TYPE, "application/json")], "{}").into_response()
}

/// Names what there is, because a wrong path is the usual reason to come here.
async fn nothing_here(State(server): State<Arc<Server>>, uri: Uri) -> Response {
    let config = &server.config;
    if server.store.is_some() && uri.path().starts_with("/api/") {
        return store::nothing_here();
    }
    let endpoint = &config.websocket.handler_prefix;
    let api = if is_api_on(config) {
        "calls of the API go to /api/<method>"
    } else {
        "the API is off: set http_api.key"
    };
    let text = if uri.path().starts_with("/api") && !is_api_on(config) {
        format!("{api}\n")
    } else {
        format!("nothing is served here: the WebSocket endpoint is {endpoint}, {api}\n")
    };
    (StatusCode::NOT_FOUND, text).into_response()
}

/// Names the method, because a browser's address bar is a usual way to come here.
async fn another_method(method: Method, uri: Uri) -> Response {
    let (path, status) = (uri.path(), StatusCode::METHOD_NOT_ALLOWED);
    if path.starts_with("/api/") {
        return api::bad_request(status, &format!("calls of the API are POST, not {method}"));
    }
    (status, format!("{path} does not take {method}, but what the Allow header names\n"))
        .into_response()
}

fn is_api_on(config: &Config) -> bool {
    config.http_api.insecure || !config.http_api.key.is_empty()
}

async fn metrics(State(server): State<Arc<Server>>) -> Response {
    let Ok(stats) = server.hub.stats().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], server.metrics.render(&stats)).into_response()
}

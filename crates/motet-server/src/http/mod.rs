//! The HTTP side: the WebSocket endpoint, the API, health and metrics.

mod api;
mod api_form;
mod batch;
mod gate;
mod glob;
mod method;
mod origin;
mod websocket;

pub use gate::Gate;
pub use origin::Origins;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};

use crate::config::Config;
use crate::engine::HubHandle;
use crate::metrics::Metrics;

/// Bytes in the body of an API call.
const API_BODY_BYTES_MAX: usize = 16 << 20;

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
        router = router.route("/metrics", get(metrics));
    }
    if config.http_api.insecure || !config.http_api.key.is_empty() {
        router =
            router.route("/api/batch", post(batch::call)).route("/api/{method}", post(api::call));
    }
    router.layer(DefaultBodyLimit::max(API_BODY_BYTES_MAX)).with_state(server)
}

/// `{}` while the server takes connections, 503 while it stops or when its hub does not answer.
async fn health(State(server): State<Arc<Server>>) -> Response {
    let stopping = server.stopping.load(Ordering::Relaxed);
    if stopping || server.hub.stats().await.is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    ([(header::CONTENT_TYPE, "application/json")], "{}").into_response()
}

async fn metrics(State(server): State<Arc<Server>>) -> Response {
    let Ok(stats) = server.hub.stats().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], server.metrics.render(&stats)).into_response()
}

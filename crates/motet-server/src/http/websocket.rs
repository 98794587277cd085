//! The WebSocket endpoint.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tracing::debug;

use super::Server;
use crate::connection::{ConnectionLimits, Outgoing, Upgrade, run};

/// Upgrades a request to a WebSocket and serves it.
pub(super) async fn connect(State(server): State<Arc<Server>>, mut request: Request) -> Response {
    let origin = request.headers().get(header::ORIGIN);
    let admitted = origin
        .is_none_or(|origin| origin.to_str().is_ok_and(|origin| server.origins.admit(origin)));
    if !admitted {
        debug!(?origin, "a page of another origin was turned away");
        let text = "this origin may not connect: list it in client.allowed_origins\n";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    let upgrade = match Upgrade::read(&mut request) {
        Ok(upgrade) => upgrade,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let admission =
        if server.stopping.load(Ordering::Relaxed) { None } else { server.gate.admit() };
    let Some(admission) = admission else {
        server.metrics.connections_refused.inc();
        let text = "the server takes no more connections now: try again later\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    let response = upgrade.response::<Body>();
    let bytes_max = server.config.websocket.message_size_limit;
    let outgoing = Arc::new(Outgoing::new(upgrade.encoding(), server.config.client.queue_max_size));
    let (hub, frame_pings) = (server.hub.clone(), upgrade.frame_pings());
    tokio::spawn(async move {
        // The handshake's own state is gone before the connection's begins: it would be kept for
        // as long as the connection lasts.
        if let Some(socket) = Box::pin(upgrade.socket(bytes_max)).await {
            let limits = ConnectionLimits { message_bytes_max: bytes_max };
            let session = hub.draw_session();
            hub.open(session, outgoing.clone(), frame_pings);
            run(socket, session, outgoing, hub, limits).await;
        }
        drop(admission);
    });
    response
}

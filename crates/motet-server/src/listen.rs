//! Accepting connections: TCP, TLS, HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use crate::connection::ServerStream;
use crate::error::ServerError;

/// How long the head of a request, and a TLS handshake, may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Handshakes and requests under way at a time. Upgraded connections do not count.
const REQUESTS_MAX: usize = 10_000;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Pause after a failure to accept that waiting may cure (no file descriptor left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listens on an address.
///
/// # Errors
/// [`ServerError::Bind`] when it cannot be had.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address).await.map_err(|cause| ServerError::Bind { address, cause })
}

/// Accepts connections until `stop` says so.
pub async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let requests = Arc::new(Semaphore::new(REQUESTS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(cause) => {
                warn!(%cause, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = requests.clone().try_acquire_owned() else {
            // Closing at once is the kindest answer to somebody who would otherwise wait.
            continue;
        };
        let (tls, router, stop) = (tls.clone(), router.clone(), stop.clone());
        tokio::spawn(async move {
            if let Some(stream) = secure(stream, tls).await {
                serve(stream, router, stop).await;
            }
            drop(permit);
        });
    }
}

async fn secure(stream: TcpStream, tls: Option<TlsAcceptor>) -> Option<ServerStream> {
    // Messages are joined before they are written, so there is nothing for the kernel to wait for.
    stream.set_nodelay(true).ok()?;
    let Some(tls) = tls else { return Some(ServerStream::Plain(stream)) };
    match timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(ServerStream::Tls(Box::new(stream))),
        Ok(Err(cause)) => {
            debug!(%cause, "a TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

async fn serve(stream: ServerStream, router: Router, mut stop: watch::Receiver<bool>) {
    let service = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        hyper::service::Service::call(&service, request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let mut stopping = false;
    loop {
        tokio::select! {
            // A peer that breaks off or speaks something else is no event of ours.
            _ = connection.as_mut() => return,
            _ = stop.changed(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

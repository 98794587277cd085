//! Accepting connections: TCP, TLS, HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{self, Handle};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, error, warn};

use crate::connection::{Patient, ServerStream};
use crate::error::ServerError;

/// Connections that may wait to be accepted. The kernel lowers it to `net.core.somaxconn`; what
/// comes beyond is dropped and tried again only seconds later, so a storm of them takes long.
const BACKLOG: u32 = 65_535;
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
    listen(address).map_err(|cause| ServerError::Bind { address, cause })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart need not wait for the connections of the process before it.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// What every accepted connection needs.
#[derive(Clone)]
pub struct Door {
    /// Speaks TLS, where it is on.
    pub tls: Option<TlsAcceptor>,
    /// Answers requests.
    pub router: Router,
    /// How long a TLS handshake and the head of a request may take, and how long an answer may wait
    /// for a peer that does not read.
    pub request_timeout: Duration,
    /// Turns true when nobody is to be accepted any more.
    pub stop: watch::Receiver<bool>,
}

/// Accepts connections until the door's `stop` says so.
///
/// This has a thread of its own: among the tasks of all connections it would have to wait for its
/// turn in a storm of handshakes, and the kernel would meanwhile drop who comes.
///
/// # Errors
/// When the listener cannot be moved to that thread.
pub fn accept(listener: TcpListener, door: Door) -> io::Result<JoinHandle<()>> {
    let listener = listener.into_std()?;
    let connections = Handle::current();
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(spawn_blocking(move || {
        if let Err(cause) = runtime.block_on(accept_all(listener, door, &connections)) {
            error!(%cause, "no connection can be accepted any more: restart the server");
        }
    }))
}

async fn accept_all(
    listener: std::net::TcpListener,
    mut door: Door,
    connections: &Handle,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let requests = Arc::new(Semaphore::new(REQUESTS_MAX));
    let mut fails = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = door.stop.changed() => return Ok(()),
        };
        // From here on it belongs to the threads that serve.
        let stream = match accepted.and_then(|(stream, _)| stream.into_std()) {
            Ok(stream) => stream,
            // The peer has gone in the meantime.
            Err(cause) if cause.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(cause) => {
                if !core::mem::replace(&mut fails, true) {
                    warn!(%cause, "connections cannot be accepted: raise the limit of open files");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        fails = false;
        let Ok(permit) = requests.clone().try_acquire_owned() else {
            // Closing at once is the kindest answer to somebody who would otherwise wait.
            continue;
        };
        let door = door.clone();
        connections.spawn(async move {
            if let Some(stream) = secure(stream, &door).await {
                serve(stream, door).await;
            }
            drop(permit);
        });
    }
}

async fn secure(stream: std::net::TcpStream, door: &Door) -> Option<ServerStream> {
    let stream = TcpStream::from_std(stream).ok()?;
    // Messages are joined before they are written, so there is nothing for the kernel to wait for.
    stream.set_nodelay(true).ok()?;
    let Some(tls) = &door.tls else { return Some(ServerStream::Plain(stream)) };
    match timeout(door.request_timeout, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(ServerStream::Tls(Box::new(stream))),
        Ok(Err(cause)) => {
            debug!(%cause, "a TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

async fn serve(stream: ServerStream, door: Door) {
    let Door { router, request_timeout, mut stop, .. } = door;
    let service = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        hyper::service::Service::call(&service, request)
    });
    let stream = Patient::new(stream, request_timeout, stop.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(request_timeout)
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

//! The server from start to stop.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::auth::Verifier;
use crate::config::Config;
use crate::engine::{self, Engine};
use crate::error::ServerError;
use crate::http::{Gate, Origins, Server, StoreApi, router};
use crate::metrics::Metrics;
use crate::publication_log::PublicationLog;
use crate::{listen, tls};

/// A server that runs.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    server: Arc<Server>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    engine: JoinHandle<()>,
}

/// Starts a server.
///
/// # Errors
/// [`ServerError`] says what is in the way and what to do about it.
pub async fn start(config: Config) -> Result<Running, ServerError> {
    let http = &config.http_server;
    let ip: IpAddr = http.address.parse().map_err(|cause| ServerError::Address {
        address: http.address.clone(),
        cause: format!("{cause}"),
    })?;
    let tls = tls::acceptor(&http.tls)?;
    let verifier = Verifier::new(&config.client)?;
    let publication_log = open_publication_log(&config.log.publication_log).await?;
    let metrics = Arc::new(Metrics::new());
    let store = open_store(&config, ip, &metrics).await?;
    let listener = listen::bind(SocketAddr::new(ip, http.port)).await?;
    let address = listener
        .local_addr()
        .map_err(|cause| ServerError::Bind { address: SocketAddr::new(ip, http.port), cause })?;

    let config = Arc::new(config);
    let (hub, engine) = engine::spawn(Engine {
        config: config.clone(),
        verifier,
        metrics: metrics.clone(),
        publication_log,
    });
    let client = &config.client;
    let server = Arc::new(Server {
        origins: Origins::new(&client.allowed_origins, ip),
        gate: Arc::new(Gate::new(client.connection_limit, client.connection_rate_limit)),
        config,
        hub,
        metrics,
        store,
        started: Instant::now(),
        stopping: AtomicBool::new(false),
    });
    let (stop, stopped) = watch::channel(false);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let door = listen::Door {
        tls,
        router: router(server.clone()),
        request_timeout: server.config.http_server.request_timeout.0,
        stop: stopped,
    };
    let accepting =
        listen::accept(listener, door).map_err(|cause| ServerError::Bind { address, cause })?;
    info!("listening on {scheme}://{address}");
    warn_of_risks(&server.config, ip);
    Ok(Running { address, server, stop, accepting, engine })
}

impl Running {
    /// Stops: takes no new connection, asks the present ones to come back elsewhere, and waits for
    /// them as long as the configuration allows.
    pub async fn stop(self) {
        let Self { server, stop, accepting, engine, .. } = self;
        server.stopping.store(true, Ordering::Relaxed);
        let limit = server.config.shutdown.timeout.0;
        let orderly = async {
            server.hub.shut_down().await;
            stop.send(true).ok();
            accepting.await.ok();
            // Every connection's task and request holds the hub; it ends when they have.
            drop(server);
            engine.await.ok();
        };
        if timeout(limit, orderly).await.is_err() {
            warn!("some connections did not close in time; stopping all the same");
        }
        info!("stopped");
    }
}

/// Opening waits for other processes and for the disk.
async fn open_store(
    config: &Config,
    ip: IpAddr,
    metrics: &Arc<Metrics>,
) -> Result<Option<Arc<StoreApi>>, ServerError> {
    let (config, metrics) = (config.clone(), Arc::clone(metrics));
    let opened = tokio::task::spawn_blocking(move || StoreApi::open(&config, ip, &metrics));
    opened.await.expect("opening a store does not panic")
}

async fn open_publication_log(path: &str) -> Result<Option<PublicationLog>, ServerError> {
    if path.is_empty() {
        return Ok(None);
    }
    let opened = PublicationLog::open(Path::new(path)).await;
    let failed = |cause| ServerError::PublicationLog { path: path.to_owned(), cause };
    opened.map(Some).map_err(failed)
}

/// Whether the configuration lets anybody connect.
fn admits_nobody(config: &Config) -> bool {
    let client = &config.client;
    let token = &client.token;
    let keys = [
        &token.hmac_secret_key,
        &token.rsa_public_key,
        &token.ecdsa_public_key,
        &token.jwks_public_endpoint,
    ];
    let no_tokens = keys.iter().all(|key| key.is_empty());
    no_tokens && !client.insecure && !client.allow_anonymous_connect_without_token
}

fn warn_of_risks(config: &Config, ip: IpAddr) {
    if admits_nobody(config) {
        warn!(
            "no real-time client can connect: set client.token.hmac_secret_key or another key of \
             tokens in a configuration (motet config prints one), or start with --dev for development"
        );
    }
    let open = !ip.is_loopback();
    if config.client.insecure && open {
        warn!("client.insecure is on: everybody who reaches {ip} may do everything");
    }
    if config.http_api.insecure && open {
        warn!("http_api.insecure is on: everybody who reaches {ip} may call the API");
    }
    if !config.store.path.is_empty() && config.store.tokens.is_empty() {
        info!("the store is open to every program of this machine: store.tokens would change that");
    }
    if open && !config.http_server.tls.enabled {
        info!("TLS is off: put a TLS proxy in front, or set http_server.tls");
    }
}

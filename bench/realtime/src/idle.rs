//! Memory of a connection that does nothing but answer pings.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;

use crate::Scale;
use crate::client::Client;
use crate::server::Server;
use crate::usage;
use motet_bench_figures::Figure;

const PINGS: u64 = 2;
/// Connections being opened at a time.
const OPENING: usize = 128;
/// How long opening everything and two pings may take, beside the pings' own intervals.
const LIMIT: Duration = Duration::from_secs(60);
/// Published by its makers: default configuration, 200,000 idle WebSockets, August 2026.
const CENTRIFUGO_KB: f64 = 27.0;

/// Growth of the server's memory for each idle connection.
pub(crate) fn measure(binary: &Path, scale: &Scale) -> Result<Vec<Figure>> {
    println!("Idle connections: {}", scale.clients);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let config = format!(
        "[client]\ninsecure = true\nping_interval = \"{}s\"\npong_timeout = \"{}s\"\n",
        scale.ping_interval_s,
        scale.ping_interval_s / 2
    );
    let server = Server::motet(binary, &config)?;
    // What the first connection of all makes the server allocate is nobody's share.
    runtime.block_on(async {
        let mut first = Client::open(server.address, CONNECT).await?;
        connected(&mut first).await
    })?;
    let before = usage::resident_bytes(server.pid())?;
    let sockets_before = usage::socket_queue_bytes()?;
    let (release, hold) = watch::channel(());
    runtime.block_on(open_and_wait(server.address, scale, &hold))?;
    let after = usage::resident_bytes(server.pid())?;
    let sockets = usage::socket_queue_bytes()?.saturating_sub(sockets_before);
    drop(release);

    let each = |bytes: u64| bytes as f64 / scale.clients as f64 / 1e3;
    let name =
        format!("memory per idle connection, {} WebSockets after {PINGS} pings", scale.clients);
    Ok(vec![
        Figure::new(name, each(after.saturating_sub(before)), "KB")
            .beside("Centrifugo, published", CENTRIFUGO_KB)
            .at_most(12.0),
        Figure::new("kernel socket queues, both ends, per connection", each(sockets), "KB"),
    ])
}

const CONNECT: &str = "{\"id\":1,\"connect\":{}}";

async fn connected(client: &mut Client) -> Result<()> {
    let answer = client.next().await?;
    if answer.contains("\"connect\"") { Ok(()) } else { bail!("connect was answered {answer}") }
}

/// Returns when every connection has answered its pings; they stay open as long as `hold`.
async fn open_and_wait(
    address: SocketAddr,
    scale: &Scale,
    hold: &watch::Receiver<()>,
) -> Result<()> {
    let opening = Arc::new(Semaphore::new(OPENING));
    let (tell, mut told) = mpsc::unbounded_channel();
    for _ in 0..scale.clients {
        let (opening, tell, mut hold) = (opening.clone(), tell.clone(), hold.clone());
        tokio::spawn(async move {
            let outcome = tokio::select! {
                outcome = answer_pings(address, &opening, &tell) => outcome,
                _ = hold.changed() => Ok(()),
            };
            if let Err(error) = outcome {
                tell.send(Err(error)).ok();
            }
        });
    }
    let everybody = async {
        for _ in 0..scale.clients {
            told.recv().await.ok_or_else(|| anyhow!("the clients ended"))??;
        }
        anyhow::Ok(())
    };
    let limit = LIMIT + Duration::from_secs(scale.ping_interval_s * (PINGS + 1));
    timeout(limit, everybody).await.context("two pings on every connection took too long")?
}

/// Tells once when the connection has answered enough pings, and goes on answering.
async fn answer_pings(
    address: SocketAddr,
    opening: &Semaphore,
    tell: &mpsc::UnboundedSender<Result<()>>,
) -> Result<()> {
    let permit = opening.acquire().await?;
    let mut client = Client::open(address, CONNECT).await?;
    connected(&mut client).await?;
    drop(permit);
    loop {
        client.next().await?;
        if client.pings() == PINGS {
            tell.send(Ok(())).ok();
        }
    }
}

//! Everybody comes back at once: after a restart of the server, and after all connections broke.

mod publisher;
mod subscriber;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::sync::watch;
use tokio::task::block_in_place;
use tokio::time::sleep;

use crate::Scale;
use crate::server::Server;
use motet_bench_figures::Figure;
use publisher::{Acknowledged, Publisher};
use subscriber::{Crowd, Member};

const CONFIG: &str = "\
[client]
insecure = true

[[channel.namespaces]]
name = \"storm\"
history_size = 1000
history_ttl = \"300s\"
force_recovery = true
";
/// Clients of one channel.
const CLIENTS_PER_CHANNEL: usize = 100;
/// How long everybody may take to be back before the measurement gives up.
const BACK_LIMIT: Duration = Duration::from_secs(120);
/// How long the last messages may take to reach everybody.
const DRAIN_LIMIT: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Messages flow for so long before each incident.
const CALM: Duration = Duration::from_secs(2);

/// Times and losses of both storms.
pub(crate) fn measure(binary: &Path, scale: &Scale) -> Result<Vec<Figure>> {
    println!("Reconnect storm: {} clients", scale.clients);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(storms(binary, scale.clients))
}

async fn storms(binary: &Path, clients: usize) -> Result<Vec<Figure>> {
    let mut server = block_in_place(|| Server::motet(binary, CONFIG))?;
    let channels = clients.div_ceil(CLIENTS_PER_CHANNEL);
    let (cut, heard) = watch::channel(0_u32);
    let crowd = Crowd::start(server.address, clients, channels, &heard);
    let begun = Instant::now();
    everybody_back(&crowd, 1, begun).await?;
    println!("  all subscribed for the first time after {:.1} s", begun.elapsed().as_secs_f64());
    let publisher = Publisher::start(server.address, channels);
    sleep(CALM).await;

    let cut_at = Instant::now();
    cut.send_modify(|count| *count += 1);
    let cut_s = everybody_back(&crowd, 2, cut_at).await?;
    let recovered = crowd.members.iter().filter(|member| member.recovered()).count();
    sleep(CALM).await;

    let killed_at = Instant::now();
    block_in_place(|| server.kill())?;
    block_in_place(|| server.restart())?;
    let listening_s = killed_at.elapsed().as_secs_f64();
    let restart_s = everybody_back(&crowd, 3, killed_at).await?;
    println!("  the server listened again {listening_s:.2} s after it was killed");
    sleep(CALM).await;

    let acknowledged = publisher.stop().await?;
    let losses = drained(&crowd, &acknowledged).await?;
    let all = clients as f64;
    Ok(vec![
        Figure::new(
            format!("{clients} clients back and caught up after a restart"),
            restart_s,
            "s",
        )
        .at_most(10.0),
        Figure::new(
            "lost in that, of the running server's history",
            losses.present as f64,
            "deliveries",
        )
        .exactly(0.0),
        Figure::new(
            "lost in that, with the killed process's memory",
            losses.former as f64,
            "deliveries",
        ),
        Figure::new(format!("{clients} connections cut at once: all back"), cut_s, "s")
            .at_most(10.0),
        Figure::new("of these recovered without a gap", recovered as f64 * 100.0 / all, "%")
            .exactly(100.0),
    ])
}

/// Seconds from `since` until the last client had subscribed and caught up for the nth time.
async fn everybody_back(crowd: &Crowd, times: u32, since: Instant) -> Result<f64> {
    loop {
        let missing = crowd.members.iter().filter(|member| member.times_back() < times).count();
        if missing == 0 {
            break;
        }
        if since.elapsed() > BACK_LIMIT {
            bail!(
                "{missing} of {} clients are not back: {}",
                crowd.members.len(),
                crowd.complaint()
            );
        }
        sleep(LOOK_AGAIN).await;
    }
    let last = crowd.members.iter().map(|member| member.back_at()).max();
    Ok(last.map_or(0.0, |at| (at - since).as_secs_f64()))
}

/// Deliveries that were due and never came.
#[derive(Default)]
struct Losses {
    /// Of messages that the running server accepted.
    present: usize,
    /// Of messages that the killed process accepted.
    former: usize,
}

/// Waits until nothing is missing any more, or for as long as messages may take; then counts.
async fn drained(crowd: &Crowd, acknowledged: &[Acknowledged]) -> Result<Losses> {
    let latest = acknowledged.iter().map(|message| message.server).max().unwrap_or(0);
    let begun = Instant::now();
    loop {
        let mut losses = Losses::default();
        for member in &crowd.members {
            count_losses(member, acknowledged, latest, &mut losses);
        }
        if losses.present == 0 || begun.elapsed() > DRAIN_LIMIT {
            return Ok(losses);
        }
        sleep(LOOK_AGAIN * 10).await;
    }
}

fn count_losses(
    member: &Arc<Member>,
    acknowledged: &[Acknowledged],
    latest: u32,
    losses: &mut Losses,
) {
    let received = member.received();
    for message in acknowledged.iter().filter(|message| message.channel == member.channel) {
        if received.contains(&message.number) {
            continue;
        }
        if message.server == latest {
            losses.present += 1;
        } else {
            losses.former += 1;
        }
    }
}

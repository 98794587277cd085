//! Fan-out: how many deliveries, at what cost, how late.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::Scale;
use crate::fanout::Fanout;
use crate::peers;
use crate::pubsub::Protocol;
use crate::server::Server;
use crate::statistics::{median, percentile};
use crate::usage;
use motet_bench_figures::Figure;

/// Everybody may do everything; channels keep no history, as the peers' do not.
const CONFIG: &str = "[client]\ninsecure = true\n";
const DEEP_SUBSCRIBERS: usize = 1_000;
const DEEP_IN_FLIGHT: u64 = 2_000;
const SHALLOW_SUBSCRIBERS: usize = 100;
const PACED_PER_SECOND: u32 = 200;
const OURS: &str = "motet serve";

/// One of the systems that take turns.
struct Contestant {
    name: String,
    protocol: Protocol,
    address: SocketAddr,
    pid: u32,
}

/// What every round gave, by figure and by system.
type Rounds = BTreeMap<&'static str, BTreeMap<String, Vec<f64>>>;

/// Measures all systems in turn, round after round.
pub(crate) fn fanout(binary: &Path, scale: &Scale) -> Result<Vec<Figure>> {
    let ours = Server::motet(binary, CONFIG)?;
    let peers = peers::start()?;
    let mut contestants = vec![Contestant {
        name: OURS.to_owned(),
        protocol: Protocol::Motet,
        address: ours.address,
        pid: ours.pid(),
    }];
    contestants.extend(peers.iter().map(|peer| Contestant {
        name: peer.name.clone(),
        protocol: peer.protocol,
        address: peer.server.address,
        pid: peer.server.pid(),
    }));

    let mut rounds = Rounds::new();
    for round in 1..=scale.rounds {
        println!("Fan-out, round {round} of {}", scale.rounds);
        for contestant in &contestants {
            match round_of(contestant, scale) {
                Ok(values) => {
                    for (figure, value) in values {
                        let systems = rounds.entry(figure).or_default();
                        systems.entry(contestant.name.clone()).or_default().push(value);
                    }
                }
                // A peer that fails is no reason not to measure ours.
                Err(error) if contestant.name != OURS => {
                    println!("{}: this round does not count: {error:#}", contestant.name);
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(figures(&rounds, &peers.iter().map(|peer| peer.name.clone()).collect::<Vec<_>>()))
}

/// One system's share of a round.
fn round_of(contestant: &Contestant, scale: &Scale) -> Result<[(&'static str, f64); 6]> {
    let (deep_per_second, deep_cpu_us) = deep(contestant, scale)?;
    let (shallow_per_second, shallow_cpu_us) = shallow(contestant, scale)?;
    let (p50_ms, p99_ms) = paced(contestant, scale)?;
    Ok([
        (DEEP, deep_per_second),
        (DEEP_CPU, deep_cpu_us),
        (SHALLOW, shallow_per_second),
        (SHALLOW_CPU, shallow_cpu_us),
        (P50, p50_ms),
        (P99, p99_ms),
    ])
}

const DEEP: &str = "deliveries/s, 1 to 1,000 subscribers, 128 bytes, 2,000 in flight";
const DEEP_CPU: &str = "server CPU per delivery in that";
const SHALLOW: &str = "deliveries/s, 1 to 100 subscribers, one in flight";
const SHALLOW_CPU: &str = "server CPU per delivery in that, shallow";
const P50: &str = "publish to deliver p50, 1 to 100 subscribers, 200/s";
const P99: &str = "publish to deliver p99, 1 to 100 subscribers, 200/s";

fn figures(rounds: &Rounds, peers: &[String]) -> Vec<Figure> {
    type Judge = fn(Figure) -> Figure;
    let rows: [(&str, &str, Judge); 6] = [
        (DEEP, "1/s", |figure| figure.at_least(1_500_000.0)),
        (DEEP_CPU, "us", |figure| figure),
        (SHALLOW, "1/s", |figure| figure),
        (SHALLOW_CPU, "us", |figure| figure.at_most(8.0)),
        (P50, "ms", |figure| figure.at_most(0.5)),
        (P99, "ms", |figure| figure.at_most(2.0)),
    ];
    let mut figures = Vec::new();
    for (name, unit, judge) in rows {
        let Some(systems) = rounds.get(name) else { continue };
        let Some(ours) = systems.get(OURS) else { continue };
        let figure = judge(Figure::new(name, median(ours), unit).of_runs(ours));
        let beside: Vec<_> = peers
            .iter()
            .filter_map(|peer| Some(figure.clone().beside(peer, median(systems.get(peer)?))))
            .collect();
        if beside.is_empty() {
            figures.push(figure);
        } else {
            figures.extend(beside);
        }
    }
    figures
}

/// Deliveries a second and CPU microseconds for each, with the window of publications kept full.
fn deep(contestant: &Contestant, scale: &Scale) -> Result<(f64, f64)> {
    let mut fanout = Fanout::open(contestant.protocol, contestant.address, DEEP_SUBSCRIBERS)?;
    let mut keep_full = |fanout: &mut Fanout| -> Result<()> {
        let room = DEEP_IN_FLIGHT - (fanout.published() - fanout.delivered_to_all());
        if room > 0 {
            fanout.publish(room)?;
        }
        fanout.turn(Duration::from_millis(20), |_| ())
    };
    measured(contestant, scale, &mut fanout, &mut keep_full)
}

/// The same with one publication at a time: the next one follows when everybody has the last.
fn shallow(contestant: &Contestant, scale: &Scale) -> Result<(f64, f64)> {
    let mut fanout = Fanout::open(contestant.protocol, contestant.address, SHALLOW_SUBSCRIBERS)?;
    let mut one_by_one = |fanout: &mut Fanout| -> Result<()> {
        if fanout.delivered_to_all() == fanout.published() {
            fanout.publish(1)?;
        }
        fanout.turn(Duration::from_millis(20), |_| ())
    };
    measured(contestant, scale, &mut fanout, &mut one_by_one)
}

fn measured(
    contestant: &Contestant,
    scale: &Scale,
    fanout: &mut Fanout,
    step: &mut dyn FnMut(&mut Fanout) -> Result<()>,
) -> Result<(f64, f64)> {
    let warm_up = Instant::now();
    while warm_up.elapsed() < scale.warm_up {
        step(fanout)?;
    }
    let (begun, deliveries, cpu) =
        (Instant::now(), fanout.deliveries(), usage::cpu_time(contestant.pid)?);
    while begun.elapsed() < scale.span {
        step(fanout)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let deliveries = (fanout.deliveries() - deliveries) as f64;
    let cpu = usage::cpu_time(contestant.pid)?.saturating_sub(cpu);
    fanout.drain()?;
    Ok((deliveries / seconds, cpu.as_secs_f64() * 1e6 / deliveries.max(1.0)))
}

/// Milliseconds from the call that publishes to the read that delivers, p50 and p99 over all
/// deliveries. The nth delivery of a subscriber is the nth publication: nothing overtakes.
fn paced(contestant: &Contestant, scale: &Scale) -> Result<(f64, f64)> {
    let mut fanout = Fanout::open(contestant.protocol, contestant.address, SHALLOW_SUBSCRIBERS)?;
    let spacing = Duration::from_secs(1) / PACED_PER_SECOND;
    let mut sent: Vec<Instant> = Vec::new();
    let mut latencies_ms: Vec<f64> = Vec::new();
    let begun = Instant::now();
    let end = scale.warm_up + scale.span;
    while begun.elapsed() < end {
        let due = spacing * u32::try_from(sent.len()).unwrap_or(u32::MAX);
        if begun.elapsed() >= due {
            sent.push(Instant::now());
            fanout.publish(1)?;
        }
        let warm = begun.elapsed() >= scale.warm_up;
        fanout.turn(due.saturating_sub(begun.elapsed()), |delivered| {
            if !warm {
                return;
            }
            let now = Instant::now();
            let of = delivered.before as usize..delivered.after as usize;
            latencies_ms.extend(sent[of].iter().map(|at| (now - *at).as_secs_f64() * 1e3));
        })?;
    }
    fanout.drain()?;
    Ok((percentile(&mut latencies_ms, 0.5), percentile(&mut latencies_ms, 0.99)))
}

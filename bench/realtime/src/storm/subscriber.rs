//! Clients that come back by themselves, recover, and write down what they received.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::client::Client;

/// Full jitter below this, doubled for each failed attempt.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(20);
/// The first connections are spread, so that the storms are the only ones.
const START_SPREAD: Duration = Duration::from_secs(3);

/// All clients.
pub(super) struct Crowd {
    pub(super) members: Vec<Arc<Member>>,
}

/// One client, as the measurement sees it.
pub(super) struct Member {
    pub(super) channel: usize,
    state: Mutex<State>,
}

struct State {
    times_back: u32,
    back_at: Instant,
    recovered: bool,
    position: Option<Position>,
    received: HashSet<u32>,
    complaint: Option<String>,
}

#[derive(Clone)]
struct Position {
    epoch: String,
    offset: u64,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: u32,
    error: Option<serde_json::Value>,
    push: Option<Push>,
    subscribe: Option<Stream>,
    history: Option<Stream>,
}

#[derive(Deserialize)]
struct Push {
    #[serde(rename = "pub")]
    publication: Option<Publication>,
}

/// A subscribe or history result.
#[derive(Deserialize)]
struct Stream {
    #[serde(default)]
    epoch: String,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    recovered: bool,
    #[serde(default)]
    was_recovering: bool,
    #[serde(default)]
    publications: Vec<Publication>,
}

#[derive(Deserialize)]
struct Publication {
    data: Data,
    #[serde(default)]
    offset: u64,
}

#[derive(Deserialize)]
struct Data {
    n: u32,
}

impl Crowd {
    pub(super) fn start(
        address: SocketAddr,
        count: usize,
        channels: usize,
        cut: &watch::Receiver<u32>,
    ) -> Self {
        let members: Vec<_> =
            (0..count).map(|index| Arc::new(Member::new(index % channels))).collect();
        for (index, member) in members.iter().enumerate() {
            let (member, cut) = (member.clone(), cut.clone());
            tokio::spawn(async move { member.live(address, cut, index as u64).await });
        }
        Self { members }
    }

    /// Why some client is not back, in its own words.
    pub(super) fn complaint(&self) -> String {
        let complaint = self.members.iter().find_map(|member| member.lock().complaint.clone());
        complaint.unwrap_or_else(|| "no client complains".to_owned())
    }
}

impl Member {
    fn new(channel: usize) -> Self {
        let state = State {
            times_back: 0,
            back_at: Instant::now(),
            recovered: false,
            position: None,
            received: HashSet::new(),
            complaint: None,
        };
        Self { channel, state: Mutex::new(state) }
    }

    /// How often it has subscribed and caught up.
    pub(super) fn times_back(&self) -> u32 {
        self.lock().times_back
    }

    /// When it did so last.
    pub(super) fn back_at(&self) -> Instant {
        self.lock().back_at
    }

    /// Whether the server recovered its position the last time.
    pub(super) fn recovered(&self) -> bool {
        self.lock().recovered
    }

    /// Numbers of the messages it received.
    pub(super) fn received(&self) -> HashSet<u32> {
        self.lock().received.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding a client's state")
    }

    async fn live(&self, address: SocketAddr, mut cut: watch::Receiver<u32>, seed: u64) {
        sleep(START_SPREAD.mul_f64(fraction(seed, 0))).await;
        let mut attempts = 0_u32;
        loop {
            let before = self.times_back();
            let outcome = tokio::select! {
                outcome = self.connection(address) => outcome,
                changed = cut.changed() => match changed {
                    Ok(()) => Ok(()),
                    Err(_) => return,
                },
            };
            if let Err(error) = outcome {
                self.lock().complaint = Some(format!("{error:#}"));
            }
            attempts = if self.times_back() > before { 0 } else { attempts + 1 };
            let most = BACKOFF_MIN.saturating_mul(1 << attempts.min(10)).min(BACKOFF_MAX);
            sleep(most.mul_f64(fraction(seed, u64::from(attempts) + 1))).await;
        }
    }

    /// One connection from beginning to end.
    async fn connection(&self, address: SocketAddr) -> Result<()> {
        let position = self.lock().position.clone();
        let mut client = Client::open(address, &self.greeting(position.as_ref())).await?;
        loop {
            let line = client.next().await?;
            let message: Message = serde_json::from_str(&line)?;
            if let Some(error) = message.error {
                bail!("command {} was answered {error}", message.id);
            }
            if let Some(publication) = message.push.and_then(|push| push.publication) {
                self.note(&[publication]);
            }
            if let Some(stream) = message.subscribe {
                self.subscribed(&mut client, &stream).await?;
            }
            if let Some(history) = message.history {
                self.note(&history.publications);
                self.back(false);
            }
        }
    }

    fn greeting(&self, position: Option<&Position>) -> String {
        let channel = self.channel;
        let from = position.map_or_else(String::new, |Position { epoch, offset }| {
            format!(",\"recover\":true,\"epoch\":\"{epoch}\",\"offset\":{offset}")
        });
        format!(
            "{{\"id\":1,\"connect\":{{}}}}\n\
             {{\"id\":2,\"subscribe\":{{\"channel\":\"storm:{channel}\"{from}}}}}"
        )
    }

    /// A stream that began anew is read from its beginning.
    async fn subscribed(&self, client: &mut Client, stream: &Stream) -> Result<()> {
        self.lock().position =
            Some(Position { epoch: stream.epoch.clone(), offset: stream.offset });
        self.note(&stream.publications);
        if stream.recovered || !stream.was_recovering {
            self.back(stream.recovered);
            return Ok(());
        }
        let (channel, epoch) = (self.channel, &stream.epoch);
        client
            .send(&format!(
                "{{\"id\":3,\"history\":{{\"channel\":\"storm:{channel}\",\"limit\":-1,\
                 \"since\":{{\"offset\":0,\"epoch\":\"{epoch}\"}}}}}}"
            ))
            .await
    }

    fn back(&self, recovered: bool) {
        let mut state = self.lock();
        state.times_back += 1;
        state.back_at = Instant::now();
        state.recovered = recovered;
    }

    fn note(&self, publications: &[Publication]) {
        let mut state = self.lock();
        for Publication { data, offset } in publications {
            state.received.insert(data.n);
            if let Some(position) = &mut state.position {
                position.offset = position.offset.max(*offset);
            }
        }
    }
}

/// A number from 0 to 1 that looks random and depends on nothing else (SplitMix64).
fn fraction(seed: u64, round: u64) -> f64 {
    let mut mixed = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(round.wrapping_mul(0xd1b5_4a32_d192_ed03));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

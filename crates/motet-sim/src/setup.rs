//! What a seed decides about a run before its first step.

use motet_cluster::ClusterName;
use motet_protocol::Rng;

/// Where a tab's node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostMode {
    /// A dedicated worker.
    Dedicated,
    /// The cluster's one shared worker.
    Shared,
    /// The page itself.
    Page,
}

/// A topic of the run.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) name: String,
    /// The server keeps history for it.
    pub(crate) history: bool,
}

/// What a page in the back/forward cache suffers when a message reaches a channel it left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheRule {
    /// It is evicted (Chromium).
    Evict,
    /// The message is dropped without a word (WebKit).
    Drop,
}

/// The constants of one run.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) cluster: ClusterName,
    /// Hosts of the tabs, in the order in which they open.
    pub(crate) tabs: Vec<HostMode>,
    pub(crate) topics: Vec<Topic>,
    /// Publications the server keeps for each topic.
    pub(crate) retained: usize,
    /// The server deduplicates publications and says so.
    pub(crate) extended: bool,
    /// The server asks for tokens.
    pub(crate) tokens: bool,
    /// Connections expire after so many seconds (0: never).
    pub(crate) token_seconds: u32,
    /// One way to the server, microseconds.
    pub(crate) network_delay: u64,
    /// Posts in a thousand that are written as a newer build would.
    pub(crate) newer_per_mille: u64,
    pub(crate) cache_rule: CacheRule,
    /// The longest that a message between contexts may take, microseconds.
    pub(crate) slowest: u64,
    pub(crate) max_active_nodes: u32,
    /// It is a quiet run: many tabs, few steps.
    pub(crate) crowd: bool,
}

/// The longest that a message between contexts takes in most runs, microseconds.
pub(crate) const USUAL_SLOWEST: u64 = 30_000;
/// Tabs of a crowd.
const CROWD: usize = 20;

impl Setup {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let crowd = rng.below(64) == 0;
        let count = if crowd { CROWD } else { 4 + rng.below(3) as usize };
        let style = rng.below(10);
        let tabs = (0..count).map(|index| draw_host(style, index, rng)).collect();
        let tokens = rng.below(2) == 0;
        let topics = (0..2 + rng.below(4)).map(|index| draw_topic(index, rng)).collect();
        Self {
            cluster: ClusterName::new("simulated"),
            tabs,
            topics,
            retained: if rng.below(6) == 0 { 8 } else { 1_000 },
            extended: rng.below(4) != 0,
            tokens,
            token_seconds: if tokens && rng.below(2) == 0 { 5 + rng.below(20) as u32 } else { 0 },
            network_delay: if rng.below(4) == 0 { 20_000 } else { 400 },
            newer_per_mille: if rng.below(3) == 0 { 200 } else { 0 },
            cache_rule: if rng.below(3) == 0 { CacheRule::Drop } else { CacheRule::Evict },
            slowest: if rng.below(4) == 0 { 4 * USUAL_SLOWEST } else { USUAL_SLOWEST },
            max_active_nodes: if rng.below(5) == 0 { 1 + rng.below(2) as u32 } else { 3 },
            crowd,
        }
    }
}

/// Most runs have dedicated workers only; some one kind of host, some all kinds.
fn draw_host(style: u64, index: usize, rng: &mut Rng) -> HostMode {
    match style {
        0..=4 => HostMode::Dedicated,
        5 => HostMode::Shared,
        6 => HostMode::Page,
        // At least four nodes, and a shared one besides.
        7 if index >= 3 => HostMode::Shared,
        7 => HostMode::Dedicated,
        _ => match rng.below(4) {
            0 => HostMode::Page,
            1 => HostMode::Shared,
            _ => HostMode::Dedicated,
        },
    }
}

fn draw_topic(index: u64, rng: &mut Rng) -> Topic {
    // The first topic always has history and is always allowed.
    let history = index == 0 || rng.below(4) != 0;
    let forbidden = index > 0 && rng.below(6) == 0;
    let namespace = match (forbidden, history) {
        (true, _) => "shut",
        (false, true) => "kept",
        (false, false) => "live",
    };
    Topic { name: format!("{namespace}:topic-{index}"), history: history && !forbidden }
}

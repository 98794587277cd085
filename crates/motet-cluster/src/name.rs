//! Names: of topics, channels and locks. One place, so that every driver uses the same.

use motet_protocol::{ClientId, Error, ErrorCode, Fence, NodeId, TabId};

/// Version of the frames and locks. Builds with different majors never meet: it is part of every
/// channel and lock name.
pub const PROTOCOL_MAJOR: u32 = 1;

/// Data channels of a cluster; a topic's messages travel on the one its name hashes to.
pub const SHARDS: u8 = 16;

/// Longest topic name, in bytes (Centrifuge protocol limit on channels).
pub const TOPIC_BYTES_MAX: usize = 255;

/// A page may want at most so many topics.
pub const TOPICS_PER_PAGE_MAX: usize = 10_000;

/// Checks a topic name that an application or a peer gave.
///
/// # Errors
///
/// [`ErrorCode::TopicInvalid`] for an empty name, one over 255 bytes, one with characters outside
/// printable ASCII, or a pattern.
pub fn check_topic(topic: &str) -> Result<(), Error> {
    let printable = topic.bytes().all(|byte| byte.is_ascii_graphic());
    if topic.is_empty() || topic.len() > TOPIC_BYTES_MAX || !printable || topic.contains('*') {
        return Err(Error::new(ErrorCode::TopicInvalid)
            .with_detail(topic.chars().take(64).collect::<String>()));
    }
    Ok(())
}

/// FNV-1a: stable across builds and cheap; no secret hangs on it.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The data channel of a topic, below [`SHARDS`].
#[must_use]
pub fn shard_of(topic: &str) -> u8 {
    (hash(topic) % u64::from(SHARDS)) as u8
}

/// Opaque key of a topic for display where names should not appear: sixteen hexadecimal digits.
#[must_use]
pub fn topic_key(topic: &str) -> String {
    NodeId::from_bits(hash(topic)).to_hex()
}

/// Everything that decides whether two pages belong to the same cluster, hashed into its names.
///
/// Clusters that differ in key, URL, user or options share no channel and no lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterName(String);

impl ClusterName {
    /// The name of the cluster with this fingerprint (any text).
    #[must_use]
    pub fn new(fingerprint: &str) -> Self {
        // Two passes with different prefixes give 128 bits.
        let mut other = String::from("motet\u{0}");
        other.push_str(fingerprint);
        let mut name = String::from("motet/1/");
        debug_assert_eq!(PROTOCOL_MAJOR, 1);
        name.push_str(&NodeId::from_bits(hash(fingerprint)).to_hex());
        name.push_str(&NodeId::from_bits(hash(&other)).to_hex());
        Self(name)
    }

    /// The prefix of all channel and lock names.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn join(&self, parts: &[&str]) -> String {
        let mut name = self.0.clone();
        for part in parts {
            name.push('/');
            name.push_str(part);
        }
        name
    }

    /// The channel that every node listens on.
    #[must_use]
    pub fn announce_channel(&self) -> String {
        self.join(&["announce"])
    }

    /// The channel on which one node alone listens.
    #[must_use]
    pub fn inbox_channel(&self, node: NodeId) -> String {
        self.join(&["inbox", &node.to_hex()])
    }

    /// A data channel, on which pages listen.
    #[must_use]
    pub fn data_channel(&self, shard: u8) -> String {
        let digit = char::from(b'a' + shard % SHARDS);
        self.join(&["data", digit.encode_utf8(&mut [0; 4])])
    }

    /// The full name of a lock.
    #[must_use]
    pub fn lock(&self, lock: LockName) -> String {
        match lock {
            LockName::Coordinator => self.join(&["coordinator"]),
            LockName::Node(node) => self.join(&["node", &node.to_hex()]),
            LockName::Term(fence) => self.join(&["term", &fence_text(fence)]),
            LockName::Known(fence) => self.join(&["known", &fence_text(fence)]),
            LockName::Tab(tab) => self.join(&["tab", &tab.to_hex()]),
            LockName::Page(client) => self.join(&["page", &client.to_hex()]),
        }
    }

    /// Reads a lock name of this cluster back; `None` for foreign names.
    #[must_use]
    pub fn parse_lock(&self, name: &str) -> Option<LockName> {
        let rest = name.strip_prefix(self.0.as_str())?.strip_prefix('/')?;
        let (kind, value) = rest.split_once('/').unwrap_or((rest, ""));
        match kind {
            "coordinator" if value.is_empty() => Some(LockName::Coordinator),
            "node" => value.parse().ok().map(LockName::Node),
            "term" => parse_fence(value).map(LockName::Term),
            "known" => parse_fence(value).map(LockName::Known),
            "tab" => value.parse().ok().map(LockName::Tab),
            "page" => value.parse().ok().map(LockName::Page),
            _ => None,
        }
    }
}

fn fence_text(fence: Fence) -> String {
    let mut text = NodeId::from_bits(fence.incarnation).to_hex();
    text.push('-');
    text.push_str(&NodeId::from_bits(fence.epoch).to_hex());
    text
}

fn parse_fence(text: &str) -> Option<Fence> {
    let (incarnation, epoch) = text.split_once('-')?;
    let bits = |part: &str| part.parse().ok().map(NodeId::bits);
    Some(Fence { incarnation: bits(incarnation)?, epoch: bits(epoch)? })
}

/// A lock of the cluster. Where Web Locks exist, these are their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockName {
    /// Exclusive: its holder is the coordinator.
    Coordinator,
    /// Exclusive, held by a node for its whole life: whoever is granted it knows the node is gone.
    Node(NodeId),
    /// Exclusive, held by the coordinator of that fence for its term: every node waits on it,
    /// shared, so that all know at once when the coordinator is gone; a coordinator that cannot
    /// get it takes the next epoch.
    Term(Fence),
    /// Shared, held by every node that has adopted the fence, so that the next coordinator finds
    /// the highest one in the list of held locks.
    Known(Fence),
    /// Exclusive, held by the page that uses the tab's identity.
    Tab(TabId),
    /// Exclusive, held by a page attached to a shared node: the node waits on it.
    Page(ClientId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_names_are_read_back() {
        let cluster = ClusterName::new("prices");
        let fence = Fence { incarnation: 7, epoch: u64::MAX };
        for lock in [
            LockName::Coordinator,
            LockName::Node(NodeId::from_bits(1)),
            LockName::Term(fence),
            LockName::Known(fence),
            LockName::Tab(TabId::from_bits(9)),
            LockName::Page(ClientId::from_bits(255)),
        ] {
            assert_eq!(cluster.parse_lock(&cluster.lock(lock)), Some(lock));
        }
        assert_eq!(
            ClusterName::new("other").parse_lock(&cluster.lock(LockName::Coordinator)),
            None
        );
    }

    #[test]
    fn topics_that_are_empty_long_patterns_or_not_printable_are_refused() {
        assert!(check_topic("price.feed").is_ok());
        for topic in ["", "a b", "chat.*", "*", "caf\u{e9}", &"x".repeat(256)] {
            assert_eq!(check_topic(topic).map_err(|e| e.code), Err(ErrorCode::TopicInvalid));
        }
    }
}

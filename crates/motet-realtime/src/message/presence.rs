//! Who is in a channel.

use std::collections::BTreeMap;

use super::ClientInfo;

/// Asks who is in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresenceRequest {
    /// The channel.
    pub channel: String,
}

/// Who is in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresenceResult<P> {
    /// The connections, by client id.
    pub presence: BTreeMap<String, ClientInfo<P>>,
}

impl<P> Default for PresenceResult<P> {
    fn default() -> Self {
        Self { presence: BTreeMap::new() }
    }
}

/// Asks how many are in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresenceStatsRequest {
    /// The channel.
    pub channel: String,
}

/// How many are in a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceStatsResult {
    /// Connections.
    pub num_clients: u32,
    /// Different users among them.
    pub num_users: u32,
}

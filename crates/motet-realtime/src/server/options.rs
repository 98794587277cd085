//! Settings of a hub.

use core::time::Duration;

use super::Namespaces;
use crate::message::Features;

/// Settings of a hub. The defaults are those that clients of the ecosystem expect.
#[derive(Clone, Debug)]
pub struct HubOptions {
    /// The version told to clients.
    pub version: String,
    /// Which channels exist and who may do what in them.
    pub namespaces: Namespaces,
    /// Development only: everybody may do everything, tokens do not expire, none is needed.
    pub insecure: bool,
    /// A connection without a token becomes an anonymous user.
    pub allow_anonymous_connect_without_token: bool,
    /// Tokens of anonymous users (empty `sub`) are refused.
    pub disallow_anonymous_connection_tokens: bool,
    /// Time between pings; zero sends none.
    pub ping_interval: Duration,
    /// How long a pong may take; zero asks for none. Below `ping_interval`.
    pub pong_timeout: Duration,
    /// How long a connection may take to say who it is.
    pub stale_close_delay: Duration,
    /// How long an expired connection may take to refresh.
    pub expired_close_delay: Duration,
    /// How long an expired subscription may take to refresh.
    pub expired_sub_close_delay: Duration,
    /// Time between checks that a subscriber's place in a stream is the newest.
    pub channel_position_check_delay: Duration,
    /// How long the broker or the token check may take before a command fails.
    pub operation_timeout: Duration,
    /// Subscriptions per connection.
    pub channel_limit: usize,
    /// Bytes in a channel's name.
    pub channel_max_length: usize,
    /// Connections per user; 0 sets no limit.
    pub user_connection_limit: usize,
    /// Commands of one connection that may wait for an earlier one to finish.
    pub pending_commands_max: usize,
    /// Commands of one connection per second, averaged over a second; 0 sets no limit.
    pub commands_per_second_max: u32,
    /// Publications in one history reply.
    pub history_max_publication_limit: usize,
    /// Publications in one recovery.
    pub recovery_max_publication_limit: usize,
    /// Bytes of publications in one history reply; a page ends before it would exceed them.
    pub history_bytes_max: usize,
    /// Bytes of publications in one reply to a recovering client; a larger gap is not recovered.
    pub recovery_bytes_max: usize,
    /// Bytes of the message that a publication becomes; a larger one is refused.
    pub publication_bytes_max: usize,
    /// How long a stream's position outlives its publications, unless its namespace says.
    pub history_meta_ttl: Duration,
    /// Signed-in users are subscribed to their own channel, `#user`, in this namespace.
    pub personal_channel_namespace: Option<String>,
    /// What of the Motet extension is offered.
    pub features: Features,
    /// Report every accepted publication as [`Output::Accepted`](crate::hub::Output::Accepted).
    pub report_accepted: bool,
}

impl Default for HubOptions {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            namespaces: Namespaces::default(),
            insecure: false,
            allow_anonymous_connect_without_token: false,
            disallow_anonymous_connection_tokens: false,
            ping_interval: Duration::from_secs(25),
            pong_timeout: Duration::from_secs(8),
            stale_close_delay: Duration::from_secs(10),
            expired_close_delay: Duration::from_secs(25),
            expired_sub_close_delay: Duration::from_secs(25),
            channel_position_check_delay: Duration::from_secs(40),
            operation_timeout: Duration::from_secs(5),
            channel_limit: 1024,
            channel_max_length: 255,
            user_connection_limit: 0,
            pending_commands_max: 4096,
            commands_per_second_max: 0,
            history_max_publication_limit: 300,
            recovery_max_publication_limit: 300,
            history_bytes_max: 4 << 20,
            recovery_bytes_max: 4 << 20,
            publication_bytes_max: usize::MAX,
            history_meta_ttl: Duration::from_secs(30 * 24 * 3600),
            personal_channel_namespace: None,
            features: Features::ALL,
            report_accepted: false,
        }
    }
}

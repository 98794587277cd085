//! What a client is told once.

use core::time::Duration;

use motet_protocol::BackoffPolicy;

use crate::message::Features;

/// Which topics are subscribed with a token of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopicTokens {
    /// None, unless the application supplies one unasked.
    Never,
    /// Those that begin with `$`, the protocol's mark of private channels.
    #[default]
    Private,
    /// All.
    Always,
}

/// Options of a [`Client`](super::Client).
#[derive(Clone, Debug)]
pub struct ClientConfig<P> {
    /// Name of the application, for the server's logs.
    pub name: String,
    /// Version of the application.
    pub version: String,
    /// Data for the server, sent with every connect.
    pub data: Option<P>,
    /// Whether a token must be had before a connection is tried.
    pub token_needed: bool,
    /// Which topics need a token.
    pub topic_tokens: TopicTokens,
    /// Delays between attempts to connect, and to subscribe.
    pub backoff: BackoffPolicy,
    /// How long a socket may take to open.
    pub open_timeout: Duration,
    /// How long a socket may take to close before it counts as closed.
    pub close_timeout: Duration,
    /// How long the server may take to answer a command.
    pub command_timeout: Duration,
    /// How late a ping of the server may be.
    pub ping_grace: Duration,
    /// How long the application may take to supply a token.
    pub token_timeout: Duration,
    /// Features of the Motet extension that are offered to the server; `None` hides the extension.
    pub features: Option<Features>,
    /// Calls that may wait for a connection or an answer at the same time.
    pub calls_max: usize,
    /// Topics that may be subscribed at the same time.
    pub topics_max: usize,
}

impl<P> ClientConfig<P> {
    /// The defaults, for a client of this name and version.
    #[must_use]
    pub const fn new(name: String, version: String) -> Self {
        Self {
            name,
            version,
            data: None,
            token_needed: false,
            topic_tokens: TopicTokens::Private,
            backoff: BackoffPolicy::CONNECTION,
            open_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(15),
            command_timeout: Duration::from_secs(5),
            ping_grace: Duration::from_secs(10),
            token_timeout: Duration::from_secs(30),
            features: Some(Features::ALL),
            calls_max: 4_096,
            topics_max: 4_096,
        }
    }
}

//! Namespaces: which channels exist and what they offer to whom.

use core::time::Duration;
use std::collections::HashMap;

use super::ChannelName;
use crate::broker::Retention;

/// What a channel's subscribers are given back after they were away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryMode {
    /// Everything they missed, or a clear no.
    #[default]
    Stream,
    /// The newest publication.
    Cache,
}

/// Who has a right. The rights add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// Users that are signed in.
    pub client: bool,
    /// Anonymous users too; counts only together with `client` or `subscriber`.
    pub anonymous: bool,
    /// Who is subscribed to the channel.
    pub subscriber: bool,
}

/// Settings of the channels of one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its name; empty for channels without one.
    pub name: String,
    /// Who is in a channel can be asked.
    pub presence: bool,
    /// Joins and leaves are announced.
    pub join_leave: bool,
    /// Subscribers get the announcements without asking for them.
    pub force_push_join_leave: bool,
    /// Publications kept per channel; 0 keeps none.
    pub history_size: usize,
    /// How long publications are kept.
    pub history_ttl: Duration,
    /// How long a stream's position outlives its publications; `None` takes the server's default.
    pub history_meta_ttl: Option<Duration>,
    /// The server watches every subscriber's place in the stream.
    pub force_positioning: bool,
    /// Subscribers may ask for that.
    pub allow_positioning: bool,
    /// Every subscription can be recovered.
    pub force_recovery: bool,
    /// Subscribers may ask for that.
    pub allow_recovery: bool,
    /// What a recovery gives.
    pub recovery_mode: RecoveryMode,
    /// Who may subscribe.
    pub subscribe: Allow,
    /// Who may publish.
    pub publish: Allow,
    /// Who may ask for presence.
    pub presence_right: Allow,
    /// Who may read history.
    pub history_right: Allow,
    /// Names may end in `#user,user`, which opens the channel to these users.
    pub allow_user_limited_channels: bool,
}

impl Default for Namespace {
    fn default() -> Self {
        Self {
            name: String::new(),
            presence: false,
            join_leave: false,
            force_push_join_leave: false,
            history_size: 0,
            history_ttl: Duration::ZERO,
            history_meta_ttl: None,
            force_positioning: false,
            allow_positioning: false,
            force_recovery: false,
            allow_recovery: false,
            recovery_mode: RecoveryMode::Stream,
            subscribe: Allow::default(),
            publish: Allow::default(),
            presence_right: Allow::default(),
            history_right: Allow::default(),
            allow_user_limited_channels: false,
        }
    }
}

impl Namespace {
    /// Whether channels keep a stream.
    #[must_use]
    pub const fn history_enabled(&self) -> bool {
        self.history_size > 0 && !self.history_ttl.is_zero()
    }

    /// How long streams keep what.
    #[must_use]
    pub fn retention(&self, default_meta_ttl: Duration) -> Retention {
        if !self.history_enabled() {
            return Retention::NONE;
        }
        Retention {
            size: self.history_size,
            ttl: self.history_ttl,
            meta_ttl: self.history_meta_ttl.unwrap_or(default_meta_ttl),
        }
    }
}

/// All namespaces of a server.
#[derive(Clone, Debug, Default)]
pub struct Namespaces {
    without: Namespace,
    named: HashMap<String, Namespace>,
}

impl Namespaces {
    /// Settings for channels without a namespace, and the named ones. A later namespace of the
    /// same name replaces the earlier.
    #[must_use]
    pub fn new(without: Namespace, named: impl IntoIterator<Item = Namespace>) -> Self {
        let named =
            named.into_iter().map(|namespace| (namespace.name.clone(), namespace)).collect();
        Self { without, named }
    }

    /// The settings of a channel; `None` when its namespace is not defined.
    #[must_use]
    pub fn find(&self, name: &ChannelName<'_>) -> Option<&Namespace> {
        if name.namespace.is_empty() { Some(&self.without) } else { self.named.get(name.namespace) }
    }
}

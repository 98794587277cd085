//! From the file's keys to the hub's settings, and the checks between the two.

use std::collections::BTreeSet;

use motet_realtime::broker::MemoryBrokerOptions;
use motet_realtime::message::Features;
use motet_realtime::server::{Allow, HubOptions, Namespace, Namespaces, RecoveryMode};

use super::keys::{Config, NamespaceKeys};
use super::{ConfigError, Span};

impl Config {
    /// The hub's settings.
    #[must_use]
    pub fn hub_options(&self) -> HubOptions {
        let client = &self.client;
        let personal = &client.subscribe_to_user_personal_channel;
        let named = self.channel.namespaces.iter().map(NamespaceKeys::namespace);
        HubOptions {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            namespaces: Namespaces::new(self.channel.without_namespace.namespace(), named),
            insecure: client.insecure,
            allow_anonymous_connect_without_token: client.allow_anonymous_connect_without_token,
            disallow_anonymous_connection_tokens: client.disallow_anonymous_connection_tokens,
            ping_interval: client.ping_interval.0,
            pong_timeout: client.pong_timeout.0,
            stale_close_delay: client.stale_close_delay.0,
            expired_close_delay: client.expired_close_delay.0,
            expired_sub_close_delay: client.expired_sub_close_delay.0,
            channel_position_check_delay: client.channel_position_check_delay.0,
            channel_limit: client.channel_limit,
            channel_max_length: self.channel.max_length,
            user_connection_limit: client.user_connection_limit,
            commands_per_second_max: client.command_rate_limit,
            history_max_publication_limit: client.history_max_publication_limit,
            recovery_max_publication_limit: client.recovery_max_publication_limit,
            history_bytes_max: client.history_max_size,
            recovery_bytes_max: client.recovery_max_size,
            publication_bytes_max: client.queue_max_size,
            history_meta_ttl: self.channel.history_meta_ttl.0,
            personal_channel_namespace: personal
                .enabled
                .then(|| personal.personal_channel_namespace.clone()),
            features: Features::ALL,
            report_accepted: !self.log.publication_log.is_empty(),
            ..HubOptions::default()
        }
    }

    /// The memory broker's settings.
    #[must_use]
    pub fn broker_options(&self) -> MemoryBrokerOptions {
        MemoryBrokerOptions {
            idempotency_window: self.broker.idempotency_window.0,
            idempotency_keys_max: self.broker.idempotency_keys_max,
            streams_max: self.broker.streams_max,
            bytes_max: self.broker.bytes_max,
        }
    }
}

impl NamespaceKeys {
    fn namespace(&self) -> Namespace {
        let set = |span: Span| (!span.0.is_zero()).then_some(span.0);
        Namespace {
            name: self.name.clone(),
            presence: self.presence,
            join_leave: self.join_leave,
            force_push_join_leave: self.force_push_join_leave,
            history_size: self.history_size,
            history_ttl: self.history_ttl.0,
            history_meta_ttl: set(self.history_meta_ttl),
            force_positioning: self.force_positioning,
            allow_positioning: self.allow_positioning,
            force_recovery: self.force_recovery,
            allow_recovery: self.allow_recovery,
            recovery_mode: if self.force_recovery_mode == "cache" {
                RecoveryMode::Cache
            } else {
                RecoveryMode::Stream
            },
            subscribe: Allow {
                client: self.allow_subscribe_for_client,
                anonymous: self.allow_subscribe_for_anonymous,
                subscriber: false,
            },
            publish: Allow {
                client: self.allow_publish_for_client,
                anonymous: self.allow_publish_for_anonymous,
                subscriber: self.allow_publish_for_subscriber,
            },
            presence_right: Allow {
                client: self.allow_presence_for_client,
                anonymous: self.allow_presence_for_anonymous,
                subscriber: self.allow_presence_for_subscriber,
            },
            history_right: Allow {
                client: self.allow_history_for_client,
                anonymous: self.allow_history_for_anonymous,
                subscriber: self.allow_history_for_subscriber,
            },
            allow_user_limited_channels: self.allow_user_limited_channels,
        }
    }
}

/// Checks what no single key can tell.
pub(super) fn validate(config: &Config, file: &str) -> Result<(), ConfigError> {
    let client = &config.client;
    let pings = !client.ping_interval.0.is_zero();
    if pings && client.pong_timeout.0 >= client.ping_interval.0 {
        let expected = "a time below client.ping_interval";
        return Err(ConfigError::invalid(file, "client.pong_timeout", expected));
    }
    if config.http_server.request_timeout.0.is_zero() {
        let expected = "a time above 0s: without one, peers that say nothing use up the server";
        return Err(ConfigError::invalid(file, "http_server.request_timeout", expected));
    }
    if client.stale_close_delay.0.is_zero() {
        let expected = "a time above 0s: with none, nobody is quick enough to connect";
        return Err(ConfigError::invalid(file, "client.stale_close_delay", expected));
    }
    if let Some(at) = client.allowed_origins.iter().position(|pattern| !is_origin(pattern)) {
        let key = format!("client.allowed_origins[{at}]");
        let expected = "an origin such as \"https://example.com\", which has no path; * stands for \
                        any text";
        return Err(ConfigError::invalid(file, key, expected));
    }
    for (limit, key) in [
        (client.queue_max_size, "client.queue_max_size"),
        (config.websocket.message_size_limit, "websocket.message_size_limit"),
        (config.channel.max_length, "channel.max_length"),
        (client.history_max_size, "client.history_max_size"),
        (client.recovery_max_size, "client.recovery_max_size"),
        (config.broker.bytes_max, "broker.bytes_max"),
    ] {
        if limit == 0 {
            return Err(ConfigError::invalid(file, key, "a number of bytes above 0"));
        }
    }
    let message_bytes_max = config.websocket.message_size_limit;
    if client.queue_max_size < message_bytes_max.saturating_add(MESSAGE_FRAMING_BYTES) {
        let expected = format!(
            "websocket.message_size_limit and {MESSAGE_FRAMING_BYTES} bytes more, or above: a \
             publication as large as that would close every subscriber"
        );
        return Err(ConfigError::invalid(file, "client.queue_max_size", expected));
    }
    let tls = &config.http_server.tls;
    if tls.enabled && (tls.cert_pem_file.is_empty() || tls.key_pem_file.is_empty()) {
        let expected = "cert_pem_file and key_pem_file, because TLS is enabled";
        return Err(ConfigError::invalid(file, "http_server.tls", expected));
    }
    if config.broker.r#type != "memory" {
        return Err(ConfigError::invalid(file, "broker.type", "\"memory\""));
    }
    if !is_free_path(&config.websocket.handler_prefix) {
        let expected = "a path of letters, digits, '-', '_', '.' and '/' that starts with a slash \
                        and is none of the server's own (/health, /metrics, /api)";
        return Err(ConfigError::invalid(file, "websocket.handler_prefix", expected));
    }
    for (keys, key) in [
        (&client.token.jwks_public_endpoint, "client.token"),
        (&client.subscription_token.jwks_public_endpoint, "client.subscription_token"),
    ] {
        if !keys.is_empty() && !keys.starts_with("https://") && !keys.starts_with("http://") {
            let key = format!("{key}.jwks_public_endpoint");
            return Err(ConfigError::invalid(file, key, "a URL of http or https"));
        }
    }
    if !LOG_LEVELS.contains(&config.log.level.as_str()) {
        let expected =
            format!("one of {}", LOG_LEVELS.map(|level| format!("\"{level}\"")).join(", "));
        return Err(ConfigError::invalid(file, "log.level", expected));
    }
    validate_channels(config, file)
}

/// What a publication may gain on its way to a subscriber: who published it, and where.
const MESSAGE_FRAMING_BYTES: usize = 4_096;

/// Whether the WebSocket endpoint can be there.
fn is_free_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let own = ["/health", "/metrics", "/api"];
    path.starts_with('/')
        && path.bytes().all(plain)
        && !own.contains(&path)
        && !path.starts_with("/api/")
}

/// Whether any page could have an origin that matches this pattern.
pub(super) fn is_origin(pattern: &str) -> bool {
    let host = match pattern.split_once("://") {
        // Some browsers say this of pages that are files.
        Some(("file", "")) => return true,
        Some((_, host)) => host,
        // The star may stand for the scheme too.
        None if pattern == "null" || pattern.contains('*') => pattern,
        None => return false,
    };
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"/?#".contains(&byte);
    !host.is_empty() && host.bytes().all(plain)
}

const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

fn validate_channels(config: &Config, file: &str) -> Result<(), ConfigError> {
    let without = &config.channel.without_namespace;
    validate_namespace(without, file, "channel.without_namespace")?;
    if !without.name.is_empty() {
        let expected = "no name; named namespaces go into [[channel.namespaces]]";
        return Err(ConfigError::invalid(file, "channel.without_namespace.name", expected));
    }
    let mut names = BTreeSet::new();
    for (index, namespace) in config.channel.namespaces.iter().enumerate() {
        let path = format!("channel.namespaces[{index}]");
        validate_namespace(namespace, file, &path)?;
        let name = namespace.name.as_str();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || !name.bytes().all(plain) {
            let expected = "a name of letters, digits, '-', '_' and '.'";
            return Err(ConfigError::invalid(file, format!("{path}.name"), expected));
        }
        if !names.insert(name) {
            let expected = format!("a name used once; \"{name}\" is used before");
            return Err(ConfigError::invalid(file, format!("{path}.name"), expected));
        }
    }
    let personal = &config.client.subscribe_to_user_personal_channel;
    let namespace = personal.personal_channel_namespace.as_str();
    if personal.enabled && !namespace.is_empty() && !names.contains(namespace) {
        let key = "client.subscribe_to_user_personal_channel.personal_channel_namespace";
        let expected = format!("a namespace that is defined; \"{namespace}\" is not");
        return Err(ConfigError::invalid(file, key, expected));
    }
    Ok(())
}

fn validate_namespace(
    namespace: &NamespaceKeys,
    file: &str,
    path: &str,
) -> Result<(), ConfigError> {
    let mode = &namespace.force_recovery_mode;
    if mode != "stream" && mode != "cache" {
        let key = format!("{path}.force_recovery_mode");
        return Err(ConfigError::invalid(file, key, "\"stream\" or \"cache\""));
    }
    let (sized, timed) = (namespace.history_size > 0, !namespace.history_ttl.0.is_zero());
    if sized != timed {
        let (missing, expected) = if sized {
            ("history_ttl", "a time above 0s beside history_size: without one nothing is kept")
        } else {
            ("history_size", "a number above 0 beside history_ttl: without one nothing is kept")
        };
        return Err(ConfigError::invalid(file, format!("{path}.{missing}"), expected));
    }
    let keeps_stream = sized && timed;
    let needs_stream = [
        (namespace.force_recovery, "force_recovery"),
        (namespace.allow_recovery, "allow_recovery"),
        (namespace.force_positioning, "force_positioning"),
        (namespace.allow_positioning, "allow_positioning"),
    ];
    for (set, key) in needs_stream {
        if set && !keeps_stream {
            let expected = "history_size and history_ttl above 0 beside it";
            return Err(ConfigError::invalid(file, format!("{path}.{key}"), expected));
        }
    }
    Ok(())
}

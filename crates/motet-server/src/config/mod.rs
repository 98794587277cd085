//! The configuration file: TOML, with the field names of the ecosystem's servers.
//!
//! Every key has a default and a sentence about it, so `motet config` can print a complete file.
//! A key that is not known is refused, never skipped: a misspelt limit is no limit.

mod describe;
mod error;
mod hub_options;
mod keys;
mod span;
mod store_rules;
mod token_environments;

pub use error::ConfigError;
pub use keys::{
    BrokerKeys, ChannelKeys, ClientKeys, Config, HealthKeys, HttpApiKeys, HttpServerKeys, LogKeys,
    NamespaceKeys, PersonalChannelKeys, PrometheusKeys, ShutdownKeys, StoreKeys, StoreTokenKeys,
    SubscriptionTokenKeys, TlsKeys, TokenKeys, WebsocketKeys,
};
pub use span::Span;
pub use token_environments::TokenEnvironments;

use std::path::Path;

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`] names the file, the key and what is expected there.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|cause| ConfigError::Unreadable { file: file.clone(), cause })?;
        Self::parse(&file, &text)
    }

    /// Parses a configuration; `file` is named in errors.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let document = toml::de::Deserializer::parse(text)
            .map_err(|cause| ConfigError::syntax(file, text, &cause))?;
        let config: Self = serde_path_to_error::deserialize(document)
            .map_err(|cause| ConfigError::from_path(file, &cause))?;
        config.validate(file)?;
        Ok(config)
    }

    /// A complete configuration file with every key, its default and what it is for.
    #[must_use]
    pub fn documentation() -> String {
        describe::document(&Self::default())
    }

    /// Checks what no single key can tell; `file` is named in errors.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn validate(&self, file: &str) -> Result<(), ConfigError> {
        hub_options::validate(self, file)?;
        store_rules::validate(&self.store, file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Config::parse("motet.toml", text).expect_err("an error").to_string()
    }

    #[test]
    fn the_printed_documentation_is_a_configuration_equal_to_the_defaults() {
        let printed = Config::documentation();
        let config = Config::parse("printed", &printed).expect("valid");
        assert_eq!(config, Config::default(), "{printed}");
    }

    #[test]
    fn an_unknown_key_is_refused_with_file_key_and_the_keys_there_are() {
        let text = refusal("[client]\nping_intervall = \"5s\"\n");
        assert!(text.contains("motet.toml"), "{text}");
        assert!(text.contains("client.ping_intervall"), "{text}");
        assert!(text.contains("`ping_interval`"), "{text}");
        let text = refusal("[[channel.namespaces]]\nname = \"a\"\nhistroy_size = 3\n");
        assert!(text.contains("channel.namespaces[0].histroy_size"), "{text}");
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_key_and_what_is_expected() {
        let text = refusal("[client]\nping_interval = \"soon\"\n");
        assert!(text.contains("client.ping_interval") && text.contains("\"25s\""), "{text}");
        for (value, key, range) in [
            ("\"many\"", "http_server]\nport", "from 0 to 65535"),
            ("70000", "http_server]\nport", "from 0 to 65535"),
            ("-1", "client]\nchannel_limit", "from 0 to 9223372036854775807"),
            ("5000000000", "client]\ncommand_rate_limit", "from 0 to 4294967295"),
        ] {
            let text = refusal(&format!("[{key} = {value}\n"));
            assert!(text.contains(&key.replace("]\n", ".")), "{text}");
            assert!(text.contains(range), "{text}");
        }
    }

    #[test]
    fn values_that_contradict_each_other_are_refused() {
        for (config, key) in [
            ("[client]\nping_interval = \"5s\"\npong_timeout = \"5s\"\n", "client.pong_timeout"),
            ("[channel.without_namespace]\nforce_recovery = true\n", "force_recovery"),
            ("[[channel.namespaces]]\npresence = true\n", "channel.namespaces[0].name"),
            ("[[channel.namespaces]]\nname = \"a:b\"\n", "channel.namespaces[0].name"),
            ("[channel.without_namespace]\nforce_recovery_mode = \"all\"\n", "force_recovery_mode"),
            ("[http_server.tls]\nenabled = true\n", "http_server.tls"),
            ("[http_server]\nrequest_timeout = \"0s\"\n", "http_server.request_timeout"),
            ("[channel.without_namespace]\nhistory_size = 1\n", "without_namespace.history_ttl"),
            ("[channel.without_namespace]\nhistory_ttl = \"1s\"\n", "history_size"),
            ("[client]\nstale_close_delay = \"0s\"\n", "client.stale_close_delay"),
            ("[client]\nqueue_max_size = 0\n", "client.queue_max_size"),
            ("[websocket]\nmessage_size_limit = 0\n", "websocket.message_size_limit"),
            ("[client]\nqueue_max_size = 65536\n", "client.queue_max_size"),
            ("[websocket]\nmessage_size_limit = 1048576\n", "client.queue_max_size"),
            ("[client]\nhistory_max_size = 0\n", "client.history_max_size"),
            ("[client]\nrecovery_max_size = 0\n", "client.recovery_max_size"),
            ("[broker]\nbytes_max = 0\n", "broker.bytes_max"),
            ("[channel]\nmax_length = 0\n", "channel.max_length"),
            ("[client.token]\njwks_public_endpoint = \"keys\"\n", "token.jwks_public_endpoint"),
            ("[log]\nlevel = \"loud\"\n", "log.level"),
            ("[store]\ncalls_max = 0\n", "store.calls_max"),
            ("[store]\nrequest_timeout = \"0s\"\n", "store.request_timeout"),
            ("[store]\nallowed_origins = [\"here\"]\n", "store.allowed_origins[0]"),
            ("[[store.tokens]]\nname = \"a\"\n", "store.tokens[0].token_sha256"),
        ] {
            let text = refusal(config);
            assert!(text.contains(key), "{text}");
        }
    }

    #[test]
    fn an_origin_that_no_page_could_have_is_refused() {
        let text = |pattern| format!("[client]\nallowed_origins = [\"*\", \"{pattern}\"]\n");
        for pattern in
            ["", "not an origin", "example.com", "https://", "https://example.com/", "localhost:80"]
        {
            let text = refusal(&text(pattern));
            assert!(text.contains("client.allowed_origins[1]"), "{pattern}: {text}");
        }
        for pattern in [
            "null",
            "file://",
            "https://*",
            "*.example.com",
            "http*://localhost:*",
            "https://Example.com:8443",
            "http://[::1]:80",
            "capacitor://localhost",
        ] {
            Config::parse("motet.toml", &text(pattern)).expect(pattern);
        }
    }

    #[test]
    fn an_endpoint_that_the_server_could_not_have_is_refused() {
        for path in
            ["", "ws", "/health", "/metrics", "/api", "/api/ws", "/:a", "/{a}", "/a b", "/*"]
        {
            let text = refusal(&format!("[websocket]\nhandler_prefix = \"{path}\"\n"));
            assert!(text.contains("websocket.handler_prefix"), "{path}: {text}");
        }
        for path in ["/", "/ws", "/connection/websocket/", "/healthy"] {
            let text = format!("[websocket]\nhandler_prefix = \"{path}\"\n");
            Config::parse("motet.toml", &text).expect("valid");
        }
    }

    #[test]
    fn a_key_that_is_set_twice_is_named_and_its_value_is_not() {
        let twice = "hmac_secret_key = \"s3cret\"\n".repeat(2);
        let text = refusal(&format!("[client.token]\n{twice}"));
        assert!(text.contains("line 3: hmac_secret_key: this is set before"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
        let text = refusal("[channel]\nnamespaces = []\n[[channel.namespaces]]\nname = \"a\"\n");
        assert!(text.contains("line 3: [[channel.namespaces]]: this is set before"), "{text}");
    }

    #[test]
    fn a_namespace_can_be_added_at_the_end_of_the_printed_documentation() {
        let text =
            format!("{}\n[[channel.namespaces]]\nname = \"chat\"\n", Config::documentation());
        let config = Config::parse("printed", &text).expect("valid");
        assert_eq!(config.channel.namespaces.len(), 1);
    }

    #[test]
    fn a_file_that_is_not_toml_is_refused_with_the_line() {
        let text = refusal("[client]\nping_interval = = 3\n");
        assert!(text.contains("line 2"), "{text}");
    }
}

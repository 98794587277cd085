//! Every key of the configuration. The documentation of each is what `motet config` prints.

use serde::{Deserialize, Serialize};

use super::describe::{self, Entry, Section};
use super::span::Span;
use super::token_environments::TokenEnvironments;

macro_rules! keys {
    ($($(#[doc = $about:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:expr,)*
    })*) => {$(
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $key: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl Section for $name {
            fn describe(&self, path: &str, page: &mut String) {
                $(if let Some(value) = self.$key.value() {
                    describe::key(page, &[$($doc),+], stringify!($key), &value);
                })*
                $(if self.$key.value().is_none() {
                    let dot = if path.is_empty() { "" } else { "." };
                    let path = format!("{path}{dot}{}", stringify!($key));
                    describe::header(page, &[$($doc),+], &path);
                    self.$key.section(&path, page);
                })*
            }
        }
    )*};
}

macro_rules! sections {
    ($($name:ident),*) => {$(
        impl Entry for $name {
            fn value(&self) -> Option<String> {
                None
            }

            fn section(&self, path: &str, page: &mut String) {
                self.describe(path, page);
            }
        }
    )*};
}

sections!(
    BrokerKeys,
    ChannelKeys,
    ClientKeys,
    HealthKeys,
    HttpApiKeys,
    HttpServerKeys,
    LogKeys,
    NamespaceKeys,
    PersonalChannelKeys,
    PrometheusKeys,
    ShutdownKeys,
    StoreKeys,
    SubscriptionTokenKeys,
    TlsKeys,
    TokenKeys,
    WebsocketKeys
);

keys! {
    /// The whole configuration.
    Config {
        /// Where the server listens.
        http_server: HttpServerKeys = HttpServerKeys::default(),
        /// WebSocket connections.
        websocket: WebsocketKeys = WebsocketKeys::default(),
        /// Connections and their limits.
        client: ClientKeys = ClientKeys::default(),
        /// Channels and what they offer.
        channel: ChannelKeys = ChannelKeys::default(),
        /// Who keeps streams and presence.
        broker: BrokerKeys = BrokerKeys::default(),
        /// The API for backends, under /api.
        http_api: HttpApiKeys = HttpApiKeys::default(),
        /// The document store, under /api/{environment}.
        store: StoreKeys = StoreKeys::default(),
        /// Metrics, under /metrics.
        prometheus: PrometheusKeys = PrometheusKeys::default(),
        /// The health check, under /health.
        health: HealthKeys = HealthKeys::default(),
        /// How the server stops.
        shutdown: ShutdownKeys = ShutdownKeys::default(),
        /// What the server writes down.
        log: LogKeys = LogKeys::default(),
    }

    /// Where the server listens.
    HttpServerKeys {
        /// Address to listen on. 0.0.0.0 or :: opens the server to the network.
        address: String = "127.0.0.1".to_owned(),
        /// Port to listen on; 0 takes a free one and prints it.
        port: u16 = 8000,
        /// How long the head of a request, its body, and a TLS handshake may take to arrive, and how
        /// long an answer may wait for somebody who does not read it.
        request_timeout: Span = Span::seconds(10),
        /// TLS.
        tls: TlsKeys = TlsKeys::default(),
    }

    /// TLS.
    TlsKeys {
        /// Speak TLS only.
        enabled: bool = false,
        /// PEM file with the certificate chain, the server's own certificate first.
        cert_pem_file: String = String::new(),
        /// PEM file with the private key.
        key_pem_file: String = String::new(),
    }

    /// WebSocket connections.
    WebsocketKeys {
        /// Path of the endpoint.
        handler_prefix: String = "/connection/websocket".to_owned(),
        /// Bytes in one message of a client; a larger one closes the connection.
        message_size_limit: usize = 65_536,
    }

    /// Connections and their limits.
    ClientKeys {
        /// Origins of web pages that may connect; `*` stands for any text. When empty, a server
        /// on a loopback address admits pages of this machine and any other server admits none.
        allowed_origins: Vec<String> = Vec::new(),
        /// Development only: everybody may do everything, no token is needed and none expires.
        insecure: bool = false,
        /// A connection without a token becomes an anonymous user.
        allow_anonymous_connect_without_token: bool = false,
        /// Refuse tokens whose user id is empty.
        disallow_anonymous_connection_tokens: bool = false,
        /// Time between pings; 0s sends none.
        ping_interval: Span = Span::seconds(25),
        /// How long a pong may take; below ping_interval. 0s asks for none.
        pong_timeout: Span = Span::seconds(8),
        /// How long a connection may take to send its connect command.
        stale_close_delay: Span = Span::seconds(10),
        /// How long an expired connection may take to refresh its token.
        expired_close_delay: Span = Span::seconds(25),
        /// How long an expired subscription may take to refresh its token.
        expired_sub_close_delay: Span = Span::seconds(25),
        /// Time between checks that a subscriber's place in a stream is the newest.
        channel_position_check_delay: Span = Span::seconds(40),
        /// Subscriptions per connection.
        channel_limit: usize = 1024,
        /// Bytes that may wait for a connection unasked; a client that reads too slowly is closed.
        /// Above websocket.message_size_limit. What a client asked for waits besides, and its next
        /// command waits meanwhile.
        queue_max_size: usize = 1_048_576,
        /// Bytes that may wait for all connections together; beyond it those for which the most
        /// waits for the longest are closed. 0 sets no limit.
        queue_total_max_size: usize = 268_435_456,
        /// Connections of this server; 0 sets no limit. Beyond it the answer is 503.
        connection_limit: usize = 0,
        /// New connections per second; 0 sets no limit. Beyond it the answer is 503.
        connection_rate_limit: u32 = 0,
        /// Connections per user; 0 sets no limit.
        user_connection_limit: usize = 0,
        /// Commands per connection and second; 0 sets no limit. Beyond it the answer is error 111.
        command_rate_limit: u32 = 0,
        /// Publications in one history reply.
        history_max_publication_limit: usize = 300,
        /// Publications in one recovery; a larger gap is not recovered.
        recovery_max_publication_limit: usize = 300,
        /// Bytes in one history reply: a page ends before it has more, so it may be shorter than
        /// asked for. It has one publication in any case.
        history_max_size: usize = 4_194_304,
        /// Bytes in one recovery; a larger gap is not recovered.
        recovery_max_size: usize = 4_194_304,
        /// Signed-in users are subscribed to a channel of their own.
        subscribe_to_user_personal_channel: PersonalChannelKeys = PersonalChannelKeys::default(),
        /// Keys of connection tokens (JWT).
        token: TokenKeys = TokenKeys::default(),
        /// Keys of subscription tokens; those of connection tokens when not enabled.
        subscription_token: SubscriptionTokenKeys = SubscriptionTokenKeys::default(),
    }

    /// Signed-in users are subscribed to a channel of their own.
    PersonalChannelKeys {
        /// Subscribe them to `#user`.
        enabled: bool = false,
        /// Namespace of these channels; empty for none.
        personal_channel_namespace: String = String::new(),
    }

    /// Keys of connection tokens (JWT).
    TokenKeys {
        /// Secret of HS256, HS384 and HS512 tokens; empty accepts none.
        hmac_secret_key: String = String::new(),
        /// The secret before the last change; accepted beside the present one.
        hmac_previous_secret_key: String = String::new(),
        /// Seconds since 1970: tokens of the previous secret that were issued later are refused;
        /// 0 accepts them whenever they were issued.
        hmac_previous_secret_key_valid_until: u64 = 0,
        /// PEM of the public key of RS256, RS384 and RS512 tokens; empty accepts none.
        rsa_public_key: String = String::new(),
        /// PEM of the public key of ES256 and ES384 tokens; empty accepts none.
        ecdsa_public_key: String = String::new(),
        /// Address of a JSON Web Key Set (RS, ES and EdDSA tokens that name a key); empty for none.
        jwks_public_endpoint: String = String::new(),
        /// Accept only tokens for this audience; empty accepts any.
        audience: String = String::new(),
        /// Accept only tokens of this issuer; empty accepts any.
        issuer: String = String::new(),
    }

    /// Keys of subscription tokens; those of connection tokens when not enabled.
    SubscriptionTokenKeys {
        /// Use the keys below instead of those of connection tokens.
        enabled: bool = false,
        /// Secret of HS256, HS384 and HS512 tokens; empty accepts none.
        hmac_secret_key: String = String::new(),
        /// The secret before the last change; accepted beside the present one.
        hmac_previous_secret_key: String = String::new(),
        /// Seconds since 1970: tokens of the previous secret that were issued later are refused;
        /// 0 accepts them whenever they were issued.
        hmac_previous_secret_key_valid_until: u64 = 0,
        /// PEM of the public key of RS256, RS384 and RS512 tokens; empty accepts none.
        rsa_public_key: String = String::new(),
        /// PEM of the public key of ES256 and ES384 tokens; empty accepts none.
        ecdsa_public_key: String = String::new(),
        /// Address of a JSON Web Key Set (RS, ES and EdDSA tokens that name a key); empty for none.
        jwks_public_endpoint: String = String::new(),
        /// Accept only tokens for this audience; empty accepts any.
        audience: String = String::new(),
        /// Accept only tokens of this issuer; empty accepts any.
        issuer: String = String::new(),
    }

    /// Channels and what they offer.
    ChannelKeys {
        /// Bytes in a channel's name.
        max_length: usize = 255,
        /// How long a stream's position outlives its publications.
        history_meta_ttl: Span = Span::seconds(30 * 24 * 3600),
        /// Namespaces: channels named `name:rest`. Each is a table at the end of this file with a
        /// `name` and the keys of without_namespace:
        namespaces: Vec<NamespaceKeys> = Vec::new(),
        /// Channels without a namespace.
        without_namespace: NamespaceKeys = NamespaceKeys::default(),
    }

    /// What the channels of one namespace offer, and to whom.
    NamespaceKeys {
        /// The namespace; empty only in without_namespace.
        name: String = String::new(),
        /// Who is in a channel can be asked.
        presence: bool = false,
        /// Joins and leaves are announced.
        join_leave: bool = false,
        /// Subscribers get the announcements without asking for them.
        force_push_join_leave: bool = false,
        /// Publications kept per channel; 0 keeps none.
        history_size: usize = 0,
        /// How long a publication is kept; 0s keeps none.
        history_ttl: Span = Span::seconds(0),
        /// How long a stream's position outlives its publications; 0s takes the server's.
        history_meta_ttl: Span = Span::seconds(0),
        /// The server watches every subscriber's place in the stream.
        force_positioning: bool = false,
        /// Subscribers may ask for that.
        allow_positioning: bool = false,
        /// Every subscription can be recovered.
        force_recovery: bool = false,
        /// Subscribers may ask for that.
        allow_recovery: bool = false,
        /// What a recovery gives: `stream` everything missed, `cache` the newest publication.
        force_recovery_mode: String = "stream".to_owned(),
        /// Signed-in users may subscribe without a token.
        allow_subscribe_for_client: bool = false,
        /// Anonymous users too, if allow_subscribe_for_client is on.
        allow_subscribe_for_anonymous: bool = false,
        /// Signed-in users may publish.
        allow_publish_for_client: bool = false,
        /// Anonymous users too, if allow_publish_for_client is on.
        allow_publish_for_anonymous: bool = false,
        /// Subscribers of the channel may publish into it.
        allow_publish_for_subscriber: bool = false,
        /// Signed-in users may ask for presence.
        allow_presence_for_client: bool = false,
        /// Anonymous users too, if allow_presence_for_client is on.
        allow_presence_for_anonymous: bool = false,
        /// Subscribers of the channel may ask for its presence.
        allow_presence_for_subscriber: bool = false,
        /// Signed-in users may read history.
        allow_history_for_client: bool = false,
        /// Anonymous users too, if allow_history_for_client is on.
        allow_history_for_anonymous: bool = false,
        /// Subscribers of the channel may read its history.
        allow_history_for_subscriber: bool = false,
        /// Names that end in `#user,user` open the channel to these users.
        allow_user_limited_channels: bool = false,
    }

    /// Who keeps streams and presence.
    BrokerKeys {
        /// `memory`: this one process; a restart starts all streams anew.
        r#type: String = "memory".to_owned(),
        /// How long an idempotency key is remembered.
        idempotency_window: Span = Span::seconds(300),
        /// Idempotency keys remembered at most; when there are more, the oldest are forgotten.
        idempotency_keys_max: usize = 1_000_000,
        /// Streams kept at most. A new one takes the place of a stream that has only its position
        /// left; where all have publications, publications into further channels are refused.
        streams_max: usize = 1_000_000,
        /// Bytes of all that is kept: a small publication counts about 430, each stream about 530
        /// besides. Beyond it streams that have only their position left make room, and where that
        /// is not enough publications are refused.
        bytes_max: usize = 1_073_741_824,
    }

    /// The API for backends, under /api.
    HttpApiKeys {
        /// The key that callers send in X-API-Key; when empty the API is off.
        key: String = String::new(),
        /// Development only: no key is needed.
        insecure: bool = false,
    }

    /// The document store, under /api/{environment}.
    StoreKeys {
        /// Directory of the store, made if it is absent; when empty no store is served.
        path: String = String::new(),
        /// Directory that backups are written into; when empty there are none over HTTP.
        backup_path: String = String::new(),
        /// Bytes that live entries of one environment may take.
        environment_bytes_max: u64 = 68_719_476_736,
        /// Environments that writes over HTTP may make; there may be more already.
        environments_max: usize = 64,
        /// Bytes of one document as JSON.
        value_bytes_max: usize = 4_194_304,
        /// Bytes in the body of a request.
        body_bytes_max: usize = 8_388_608,
        /// Bytes that the bodies of all requests under way may have together; one that would be too
        /// much is refused with RESOURCE_BUSY.
        bodies_bytes_max: usize = 67_108_864,
        /// Bytes of documents in one answer of a query or of the log. It ends early where they would
        /// be more, with one document at least, and says where to go on.
        answer_bytes_max: usize = 8_388_608,
        /// Writes in one transaction.
        batch_writes_max: usize = 100_000,
        /// Requests that work on the store at a time; others wait for their turn.
        calls_max: usize = 256,
        /// Requests that one token may make in a second, or all callers together where there are no
        /// tokens; as many may come at once. 0 sets no bound.
        requests_per_second: u32 = 0,
        /// How long a request may take, with its wait; then it is answered with an error.
        request_timeout: Span = Span::seconds(30),
        /// Origins of web pages that may use the store (CORS); `*` stands for any text. When
        /// empty, pages of this machine may send requests but browsers keep the answers from them.
        allowed_origins: Vec<String> = Vec::new(),
        /// API tokens. Without any, the store is served on loopback addresses only. Each has a
        /// `name`, a `token_sha256` (64 hex digits), `environments` (a list, or "*") and
        /// `permissions` (of "read", "write" and "admin"); `motet api-token` makes one.
        tokens: Vec<StoreTokenKeys> = Vec::new(),
    }

    /// An API token of the store.
    StoreTokenKeys {
        /// What it is called in the log.
        name: String = String::new(),
        /// SHA-256 of the token, 64 hex digits.
        token_sha256: String = String::new(),
        /// The environments that it is good for: a list of names, or "*" for all.
        environments: TokenEnvironments = TokenEnvironments::default(),
        /// What it allows: "read", "write" and "admin" (indexes, definitions, retention, pins,
        /// backups).
        permissions: Vec<String> = Vec::new(),
    }

    /// Metrics, under /metrics.
    PrometheusKeys {
        /// Serve metrics.
        enabled: bool = true,
    }

    /// The health check, under /health.
    HealthKeys {
        /// Serve the health check.
        enabled: bool = true,
    }

    /// How the server stops.
    ShutdownKeys {
        /// How long connections may take to close before the server stops anyway.
        timeout: Span = Span::seconds(10),
    }

    /// What the server writes down.
    LogKeys {
        /// `error`, `warn`, `info`, `debug` or `trace`.
        level: String = "info".to_owned(),
        /// Audit log of every accepted publication, one JSON object per line; empty writes none.
        publication_log: String = String::new(),
    }
}

//! Counters of the server, in the form that Prometheus reads.

mod store;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use motet_realtime::message::DisconnectCode;

pub use store::StoreMetrics;

use crate::engine::EngineStats;

/// Label of a count by close code.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CodeLabel {
    code: u32,
}

/// Label of a count by method and outcome.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ApiLabel {
    method: &'static str,
    outcome: &'static str,
}

/// Everything that the server counts.
pub struct Metrics {
    registry: Registry,
    /// WebSocket connections that were opened.
    pub connections_opened: Counter,
    /// WebSocket connections that ended.
    pub connections_closed: Counter,
    /// Connections turned away by a limit.
    pub connections_refused: Counter,
    /// Commands of clients.
    pub commands_received: Counter,
    /// Messages queued for clients, each delivery counted.
    pub messages_sent: Counter,
    /// Publications that the broker took.
    pub publications_accepted: Counter,
    disconnects: Family<CodeLabel, Counter>,
    api_calls: Family<ApiLabel, Counter>,
    clients: Gauge,
    users: Gauge,
    channels: Gauge,
    subscriptions: Gauge,
    waiting_bytes: Gauge,
    streams: Gauge,
    stream_bytes: Gauge,
    /// Publications that the broker had no room for.
    publications_refused: Counter,
    /// The store's API.
    pub store: StoreMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("motet");
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let connections_opened =
            counter("connections_opened", "WebSocket connections that were opened");
        let connections_closed = counter("connections_closed", "WebSocket connections that ended");
        let connections_refused =
            counter("connections_refused", "Connections turned away by a limit");
        let commands_received = counter("commands_received", "Commands of clients");
        let messages_sent =
            counter("messages_sent", "Messages queued for clients, each delivery counted");
        let publications_accepted =
            counter("publications_accepted", "Publications that the broker took");
        let publications_refused =
            counter("publications_refused", "Publications that the broker had no room for");
        let disconnects = Family::default();
        let help = "Connections closed by the server, by code";
        registry.register("disconnects", help, disconnects.clone());
        let api_calls = Family::default();
        let help = "Calls of the HTTP API, by method and outcome";
        registry.register("api_calls", help, api_calls.clone());
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let clients = gauge("clients", "Connections that have connected");
        let users = gauge("users", "Different users among them");
        let channels = gauge("channels", "Channels with subscribers");
        let subscriptions = gauge("subscriptions", "Subscriptions");
        let waiting_bytes = gauge("waiting_bytes", "Bytes that wait to be written to connections");
        let streams = gauge("streams", "Streams that the broker keeps");
        let stream_bytes = gauge("stream_bytes", "Bytes of them and their publications");
        let store = StoreMetrics::register(&mut registry);
        Self {
            registry,
            store,
            connections_opened,
            connections_closed,
            connections_refused,
            commands_received,
            messages_sent,
            publications_accepted,
            disconnects,
            api_calls,
            clients,
            users,
            channels,
            subscriptions,
            waiting_bytes,
            streams,
            stream_bytes,
            publications_refused,
        }
    }

    /// Counts a connection that the server closed.
    pub fn disconnected(&self, code: DisconnectCode) {
        self.disconnects.get_or_create(&CodeLabel { code: code.0 }).inc();
    }

    /// Counts a call of the API.
    pub fn api_called(&self, method: &'static str, succeeded: bool) {
        let outcome = if succeeded { "ok" } else { "error" };
        self.api_calls.get_or_create(&ApiLabel { method, outcome }).inc();
    }

    /// All counters as text.
    #[must_use]
    pub fn render(&self, stats: &EngineStats) -> String {
        let gauge = |gauge: &Gauge, value: usize| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        let EngineStats { hub, broker, waiting_bytes } = stats;
        gauge(&self.clients, hub.clients);
        gauge(&self.users, hub.users);
        gauge(&self.channels, hub.channels);
        gauge(&self.subscriptions, hub.subscriptions);
        gauge(&self.waiting_bytes, *waiting_bytes);
        gauge(&self.streams, broker.streams);
        gauge(&self.stream_bytes, broker.bytes);
        let refused = broker.refused.saturating_sub(self.publications_refused.get());
        self.publications_refused.inc_by(refused);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}

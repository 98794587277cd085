//! What is counted of the store's API.

use core::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabel {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CodeLabel {
    code: &'static str,
}

/// Counters of the store's API.
pub struct StoreMetrics {
    requests: Family<RequestLabel, Counter>,
    errors: Family<CodeLabel, Counter>,
    commit_seconds: Histogram,
    /// Calls that work on the store now.
    pub calls: Gauge,
}

impl StoreMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            errors: Family::default(),
            // From 0.1 ms to 6.5 s.
            commit_seconds: Histogram::new(exponential_buckets(0.000_1, 2.0, 17)),
            calls: Gauge::default(),
        };
        let help = "Requests to the store, by method, route and status";
        registry.register("store_requests", help, metrics.requests.clone());
        registry.register("store_errors", "Errors of the store, by code", metrics.errors.clone());
        let help = "Time from the begin of a write until it was durable";
        registry.register("store_commit_seconds", help, metrics.commit_seconds.clone());
        registry.register("store_calls", "Calls that work on the store", metrics.calls.clone());
        metrics
    }

    /// Counts a request that was answered.
    pub fn answered(&self, method: &str, route: &str, status: u16) {
        let label = RequestLabel { method: method.to_owned(), route: route.to_owned(), status };
        self.requests.get_or_create(&label).inc();
    }

    /// Counts an error.
    pub fn failed(&self, code: &'static str) {
        self.errors.get_or_create(&CodeLabel { code }).inc();
    }

    /// Takes down how long a write took.
    pub fn committed(&self, time: Duration) {
        self.commit_seconds.observe(time.as_secs_f64());
    }
}

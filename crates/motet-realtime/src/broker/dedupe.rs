//! Idempotency keys of publications, kept for a window of time and bounded in number.

use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use motet_protocol::Instant;

use super::{BrokerError, Idempotency, Published};

type Key = (Arc<str>, String);

/// The outcomes of publications by (channel, key).
pub(super) struct Dedupe {
    window: Duration,
    capacity: usize,
    outcomes: HashMap<Key, Outcome>,
    /// In order of expiry: the window is the same for all.
    order: VecDeque<(Instant, Key)>,
}

struct Outcome {
    fingerprint: Option<u64>,
    published: Published,
}

impl Dedupe {
    pub(super) fn new(window: Duration, capacity: usize) -> Self {
        Self { window, capacity, outcomes: HashMap::new(), order: VecDeque::new() }
    }

    /// The first outcome, if the key was used within the window.
    pub(super) fn find(
        &mut self,
        now: Instant,
        channel: &Arc<str>,
        idempotency: &Idempotency,
    ) -> Option<Result<Published, BrokerError>> {
        self.expire(now);
        let outcome = self.outcomes.get(&(channel.clone(), idempotency.key.clone()))?;
        let differs = matches!(
            (outcome.fingerprint, idempotency.fingerprint),
            (Some(first), Some(second)) if first != second
        );
        Some(if differs {
            Err(BrokerError::IdempotencyKeyReused)
        } else {
            Ok(Published { suppressed: true, ..outcome.published.clone() })
        })
    }

    /// Notes an outcome. When the store is full its oldest entry goes.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        channel: &Arc<str>,
        idempotency: Idempotency,
        published: Published,
    ) {
        while self.outcomes.len() >= self.capacity {
            let Some((_, key)) = self.order.pop_front() else { break };
            self.outcomes.remove(&key);
        }
        let key = (channel.clone(), idempotency.key);
        self.order.push_back((now + self.window, key.clone()));
        self.outcomes.insert(key, Outcome { fingerprint: idempotency.fingerprint, published });
    }

    pub(super) fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(expires, _)| *expires <= now) {
            if let Some((_, key)) = self.order.pop_front() {
                self.outcomes.remove(&key);
            }
        }
    }

    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.order.front().map(|(expires, _)| *expires)
    }
}

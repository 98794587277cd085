//! The broker of a single server: everything in memory, every request answered at once.

use core::time::Duration;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use motet_protocol::{Instant, Rng};

use super::dedupe::Dedupe;
use super::presence::Presence;
use super::stream::Stream;
use super::{
    Answer, Broker, BrokerError, BrokerEvent, BrokerOp, BrokerRequest, HistoryPage, HistoryQuery,
    PublishOptions, Published, Retention,
};
use crate::message::Publication;
use crate::pattern;
use crate::payload::Payload;

/// Bounds of a [`MemoryBroker`].
#[derive(Clone, Copy, Debug)]
pub struct MemoryBrokerOptions {
    /// How long an idempotency key is remembered.
    pub idempotency_window: Duration,
    /// Keys remembered at most; when there are more, the oldest are forgotten.
    pub idempotency_keys_max: usize,
}

impl Default for MemoryBrokerOptions {
    fn default() -> Self {
        Self { idempotency_window: Duration::from_secs(300), idempotency_keys_max: 1_000_000 }
    }
}

/// The broker of a single server. A restart starts all streams anew, with new epochs.
pub struct MemoryBroker<P> {
    rng: Rng,
    streams: HashMap<Arc<str>, Stream<P>>,
    /// Streams by the time at which something of them expires: one entry each, equal to its
    /// `scheduled`.
    expiries: BTreeSet<(Instant, Arc<str>)>,
    presence: Presence<P>,
    dedupe: Dedupe,
    subscribed: HashSet<Arc<str>>,
    patterns: BTreeSet<Arc<str>>,
    events: VecDeque<BrokerEvent<P>>,
}

impl<P: Payload> MemoryBroker<P> {
    /// An empty broker; `rng` names the epochs.
    #[must_use]
    pub fn new(rng: Rng, options: MemoryBrokerOptions) -> Self {
        Self {
            rng,
            streams: HashMap::new(),
            expiries: BTreeSet::new(),
            presence: Presence::new(),
            dedupe: Dedupe::new(options.idempotency_window, options.idempotency_keys_max),
            subscribed: HashSet::new(),
            patterns: BTreeSet::new(),
            events: VecDeque::new(),
        }
    }

    fn carry_out(
        &mut self,
        now: Instant,
        channel: &Arc<str>,
        op: BrokerOp<P>,
    ) -> Result<Answer<P>, BrokerError> {
        match op {
            BrokerOp::Subscribe if pattern::is_pattern(channel) => {
                self.patterns.insert(channel.clone());
            }
            BrokerOp::Subscribe => {
                self.subscribed.insert(channel.clone());
            }
            BrokerOp::Unsubscribe => {
                self.subscribed.remove(channel);
                self.patterns.remove(channel);
            }
            BrokerOp::Publish(publication, options) => {
                return self.publish(now, channel, publication, options).map(Answer::Published);
            }
            BrokerOp::Join(info) => {
                if self.subscribed.contains(channel) {
                    self.events.push_back(BrokerEvent::Join { channel: channel.clone(), info });
                }
            }
            BrokerOp::Leave(info) => {
                if self.subscribed.contains(channel) {
                    self.events.push_back(BrokerEvent::Leave { channel: channel.clone(), info });
                }
            }
            BrokerOp::History(query, retention) => {
                return Ok(Answer::History(self.read(now, channel, &query, &retention)));
            }
            BrokerOp::RemoveHistory => {
                if let Some(stream) = self.streams.get_mut(channel) {
                    stream.clear();
                }
            }
            BrokerOp::AddPresence(info) => self.presence.add(channel, *info),
            BrokerOp::RemovePresence(client) => self.presence.remove(channel, &client),
            BrokerOp::Presence => return Ok(Answer::Presence(self.presence.list(channel))),
            BrokerOp::PresenceStats => {
                let (num_clients, num_users) = self.presence.count(channel);
                return Ok(Answer::PresenceStats { num_clients, num_users });
            }
        }
        Ok(Answer::Done)
    }

    fn publish(
        &mut self,
        now: Instant,
        channel: &Arc<str>,
        mut publication: Box<Publication<P>>,
        options: PublishOptions,
    ) -> Result<Published, BrokerError> {
        let known = options.idempotency.as_ref().and_then(|i| self.dedupe.find(now, channel, i));
        if let Some(known) = known {
            return known;
        }
        let mut published = Published { position: None, suppressed: false };
        if options.retention.enabled() {
            let stream = self.stream(now, channel, &options.retention);
            if options.version.as_ref().is_some_and(|version| !stream.advance_version(version)) {
                return Ok(Published { position: Some(stream.position()), suppressed: true });
            }
            published.position = Some(stream.push(now, &options.retention, &mut publication));
            self.schedule(channel);
        }
        if let Some(idempotency) = options.idempotency {
            self.dedupe.insert(now, channel, idempotency, published.clone());
        }
        if self.wanted(channel) {
            self.events
                .push_back(BrokerEvent::Publication { channel: channel.clone(), publication });
        }
        Ok(published)
    }

    fn wanted(&self, channel: &Arc<str>) -> bool {
        self.subscribed.contains(channel)
            || (!self.patterns.is_empty()
                && pattern::matching(channel)
                    .any(|pattern| self.patterns.contains(pattern.as_str())))
    }

    fn read(
        &mut self,
        now: Instant,
        channel: &Arc<str>,
        query: &HistoryQuery,
        retention: &Retention,
    ) -> HistoryPage<P> {
        let stream = self.stream(now, channel, retention);
        let page = stream.read(now, query);
        self.schedule(channel);
        page
    }

    /// Makes sure that the stream is looked at when something of it expires.
    fn schedule(&mut self, channel: &Arc<str>) {
        let Some(stream) = self.streams.get_mut(channel) else { return };
        let due = stream.next_expiry();
        match stream.scheduled {
            Some(earlier) if earlier <= due => return,
            Some(later) => {
                self.expiries.remove(&(later, channel.clone()));
            }
            None => {}
        }
        stream.scheduled = Some(due);
        self.expiries.insert((due, channel.clone()));
    }

    fn forget(&mut self, channel: &Arc<str>) {
        if let Some(due) = self.streams.remove(channel).and_then(|stream| stream.scheduled) {
            self.expiries.remove(&(due, channel.clone()));
        }
    }

    fn stream(
        &mut self,
        now: Instant,
        channel: &Arc<str>,
        retention: &Retention,
    ) -> &mut Stream<P> {
        if self.streams.get_mut(channel).is_some_and(|stream| stream.expire(now)) {
            self.forget(channel);
        }
        let rng = &mut self.rng;
        let stream =
            self.streams.entry(channel.clone()).or_insert_with(|| Stream::new(now, retention, rng));
        stream.touch(now, retention);
        stream
    }
}

impl<P: Payload> Broker<P> for MemoryBroker<P> {
    fn handle(&mut self, now: Instant, request: BrokerRequest<P>) {
        let answer = self.carry_out(now, &request.channel, request.request);
        self.events.push_back(BrokerEvent::Answer(request.op, answer));
    }

    fn poll_output(&mut self) -> Option<BrokerEvent<P>> {
        self.events.pop_front()
    }

    fn next_timeout(&self) -> Option<Instant> {
        let stream = self.expiries.first().map(|(due, _)| *due);
        [stream, self.dedupe.next_expiry()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.dedupe.expire(now);
        while self.expiries.first().is_some_and(|(due, _)| *due <= now) {
            let Some((_, channel)) = self.expiries.pop_first() else { break };
            let Some(stream) = self.streams.get_mut(&channel) else { continue };
            stream.scheduled = None;
            if stream.expire(now) {
                self.streams.remove(&channel);
            } else {
                self.schedule(&channel);
            }
        }
    }
}

//! The broker of a single server: everything in memory, every request answered at once.

use core::time::Duration;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use motet_protocol::{Instant, Rng};

use super::dedupe::Dedupe;
use super::epochs::Epochs;
use super::presence::Presence;
use super::stream::{Due, Stream, kept_size, stream_size};
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
    /// Streams kept at most. One more takes the place of the stream whose position alone is left
    /// and would be forgotten first; where there is none it is refused.
    pub streams_max: usize,
    /// Bytes kept at most: of publications, and what each stream takes by itself. Beyond it streams
    /// whose position alone is left make room, those that would be forgotten first before others,
    /// and where that is not enough publications are refused.
    pub bytes_max: usize,
}

impl Default for MemoryBrokerOptions {
    fn default() -> Self {
        Self {
            idempotency_window: Duration::from_secs(300),
            idempotency_keys_max: 1_000_000,
            streams_max: 1_000_000,
            bytes_max: 1 << 30,
        }
    }
}

/// What a [`MemoryBroker`] holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBrokerStats {
    /// Streams, those of which only the position is left among them.
    pub streams: usize,
    /// Bytes of them and of the publications in them.
    pub bytes: usize,
    /// Publications refused so far because there was no room.
    pub refused: u64,
}

/// The broker of a single server. A restart starts all streams anew, with new epochs.
pub struct MemoryBroker<P> {
    epochs: Epochs,
    /// Streams with publications or the position that outlived them, and those without that
    /// somebody is subscribed to.
    streams: HashMap<Arc<str>, Stream<P>>,
    streams_max: usize,
    /// Bytes of all streams and of all publications in them.
    bytes: usize,
    bytes_max: usize,
    refused: u64,
    /// Streams by the time at which their oldest publication expires, and by that at which their
    /// position does: an entry for each stream in one of the two, equal to its `scheduled`.
    expiries: BTreeSet<(Instant, Arc<str>)>,
    positions: BTreeSet<(Instant, Arc<str>)>,
    presence: Presence<P>,
    dedupe: Dedupe,
    subscribed: HashSet<Arc<str>>,
    patterns: BTreeSet<Arc<str>>,
    events: VecDeque<BrokerEvent<P>>,
}

impl<P: Payload> MemoryBroker<P> {
    /// An empty broker; `rng` names the epochs.
    #[must_use]
    pub fn new(mut rng: Rng, options: MemoryBrokerOptions) -> Self {
        Self {
            epochs: Epochs::new(&mut rng),
            streams: HashMap::new(),
            streams_max: options.streams_max,
            bytes: 0,
            bytes_max: options.bytes_max,
            refused: 0,
            expiries: BTreeSet::new(),
            positions: BTreeSet::new(),
            presence: Presence::new(),
            dedupe: Dedupe::new(options.idempotency_window, options.idempotency_keys_max),
            subscribed: HashSet::new(),
            patterns: BTreeSet::new(),
            events: VecDeque::new(),
        }
    }

    /// What the broker holds.
    #[must_use]
    pub fn stats(&self) -> MemoryBrokerStats {
        let (streams, bytes) = (self.streams.len(), self.bytes);
        MemoryBrokerStats { streams, bytes, refused: self.refused }
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
                if self.streams.get(channel).is_some_and(Stream::is_unused) {
                    self.forget(channel);
                }
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
                    self.bytes -= stream.clear();
                    self.schedule(channel);
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
            published = self.keep(now, channel, &mut publication, &options)?;
            if published.suppressed {
                return Ok(published);
            }
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

    /// Gives a publication its place in the channel's stream.
    fn keep(
        &mut self,
        now: Instant,
        channel: &Arc<str>,
        publication: &mut Publication<P>,
        options: &PublishOptions,
    ) -> Result<Published, BrokerError> {
        let retention = &options.retention;
        self.expire(now, channel);
        let stream = self.streams.get(channel);
        let known =
            options.version.as_ref().zip(stream).filter(|(v, stream)| stream.knows_version(v));
        if let Some((_, stream)) = known {
            return Ok(Published { position: Some(stream.position()), suppressed: true });
        }
        let freed = stream.map_or(0, |stream| stream.next_freed(retention));
        let is_new = stream.is_none();
        let grown = kept_size(publication) + if is_new { stream_size(channel) } else { 0 };
        if !self.make_room(channel, grown.saturating_sub(freed)) {
            self.refused += 1;
            return Err(BrokerError::Full);
        }
        if is_new {
            self.add(channel, Stream::new(now, retention, self.epochs.of(channel)));
        }
        let stream = self.streams.get_mut(channel).expect("it was there or was just added");
        if let Some(version) = &options.version {
            stream.set_version(version.clone());
        }
        let (grown, shrunk) = stream.push(now, retention, publication);
        self.bytes = self.bytes + grown - shrunk;
        let position = Some(stream.position());
        self.schedule(channel);
        Ok(Published { position, suppressed: false })
    }

    /// Makes room for so many bytes more in a channel's stream, and for the stream if it is new, at
    /// the cost of other streams that have only their position left. Where these are too few
    /// (their names not counted, which would take a look at each) nothing is forgotten, and this is
    /// false.
    fn make_room(&mut self, channel: &Arc<str>, grown: usize) -> bool {
        let known = self.streams.get(channel);
        let is_new = known.is_none();
        let is_position = known.is_some_and(|s| matches!(s.scheduled, Some((_, Due::Position))));
        let spare = self.positions.len() - usize::from(is_position);
        let mut surplus =
            (self.streams.len() + usize::from(is_new)).saturating_sub(self.streams_max);
        let mut excess = (self.bytes + grown).saturating_sub(self.bytes_max);
        if surplus.max(excess.div_ceil(stream_size(""))) > spare {
            return false;
        }
        while surplus > 0 || excess > 0 {
            let mut others = self.positions.iter().map(|(_, other)| other);
            let first = others.find(|other| *other != channel).cloned();
            let first = first.expect("there are enough of them");
            self.forget(&first);
            surplus = surplus.saturating_sub(1);
            excess = excess.saturating_sub(stream_size(&first));
        }
        true
    }

    fn add(&mut self, channel: &Arc<str>, stream: Stream<P>) {
        self.bytes += stream_size(channel);
        self.streams.insert(channel.clone(), stream);
    }

    fn read(
        &mut self,
        now: Instant,
        channel: &Arc<str>,
        query: &HistoryQuery,
        retention: &Retention,
    ) -> HistoryPage<P> {
        self.expire(now, channel);
        if !self.streams.contains_key(channel) {
            let stream = Stream::new(now, retention, self.epochs.of(channel));
            let page = stream.read(query);
            // Its epoch can be told again, so only subscribers are worth the memory: to them the
            // stream must not begin anew because another one does.
            if self.subscribed.contains(channel) && self.make_room(channel, stream_size(channel)) {
                self.add(channel, stream);
                self.schedule(channel);
            }
            return page;
        }
        let stream = self.streams.get_mut(channel).expect("just looked");
        stream.touch(now, retention);
        let page = stream.read(query);
        self.schedule(channel);
        page
    }

    /// Drops what has expired of a stream, and the stream itself when all of it has.
    fn expire(&mut self, now: Instant, channel: &Arc<str>) {
        let Some(stream) = self.streams.get_mut(channel) else { return };
        self.bytes -= stream.expire(now);
        if stream.is_over(now) {
            self.forget(channel);
        }
    }

    /// Makes sure that the stream is looked at when something of it expires.
    fn schedule(&mut self, channel: &Arc<str>) {
        let Some(stream) = self.streams.get_mut(channel) else { return };
        let (at, due) = stream.next_expiry();
        match stream.scheduled {
            // It is looked at early enough, and found where it is looked for.
            Some((earlier, kind)) if kind == due && earlier <= at => return,
            Some((scheduled, Due::Publication)) => {
                self.expiries.remove(&(scheduled, channel.clone()));
            }
            Some((scheduled, Due::Position)) => {
                self.positions.remove(&(scheduled, channel.clone()));
            }
            None => {}
        }
        stream.scheduled = Some((at, due));
        match due {
            Due::Publication => self.expiries.insert((at, channel.clone())),
            Due::Position => self.positions.insert((at, channel.clone())),
        };
    }

    fn forget(&mut self, channel: &Arc<str>) {
        let Some(stream) = self.streams.remove(channel) else { return };
        self.bytes -= stream_size(channel);
        match stream.scheduled {
            Some((at, Due::Publication)) => self.expiries.remove(&(at, channel.clone())),
            Some((at, Due::Position)) => self.positions.remove(&(at, channel.clone())),
            None => false,
        };
        if !stream.is_unused() {
            self.epochs.end(channel);
        }
    }

    /// A stream at which something may have expired.
    fn next_due(&mut self, now: Instant) -> Option<Arc<str>> {
        [&self.expiries, &self.positions]
            .into_iter()
            .filter_map(|set| set.first())
            .find(|(due, _)| *due <= now)
            .map(|(_, channel)| channel.clone())
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
        let due = |set: &BTreeSet<(Instant, Arc<str>)>| set.first().map(|(due, _)| *due);
        let dues = [due(&self.expiries), due(&self.positions), self.dedupe.next_expiry()];
        dues.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.dedupe.expire(now);
        while let Some(channel) = self.next_due(now) {
            let Some(stream) = self.streams.get_mut(&channel) else { break };
            self.bytes -= stream.expire(now);
            let (at, due) = stream.scheduled.take().expect("it was found by its schedule");
            match due {
                Due::Publication => self.expiries.remove(&(at, channel.clone())),
                Due::Position => self.positions.remove(&(at, channel.clone())),
            };
            if stream.is_over(now) {
                self.forget(&channel);
            } else {
                self.schedule(&channel);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::OpId;

    const KEPT: Retention =
        Retention { size: 3, ttl: Duration::from_secs(60), meta_ttl: Duration::from_secs(3_600) };

    fn broker(options: MemoryBrokerOptions) -> MemoryBroker<u64> {
        MemoryBroker::new(Rng::from_seed([1; 32]), options)
    }

    fn ask(
        broker: &mut MemoryBroker<u64>,
        now: Instant,
        channel: &str,
        request: BrokerOp<u64>,
    ) -> Result<Answer<u64>, BrokerError> {
        broker.handle(now, BrokerRequest { op: OpId(1), channel: Arc::from(channel), request });
        let events = core::iter::from_fn(|| broker.poll_output());
        let answers = events.filter_map(|event| match event {
            BrokerEvent::Answer(_, answer) => Some(answer),
            _ => None,
        });
        answers.last().expect("each request is answered")
    }

    fn epoch(broker: &mut MemoryBroker<u64>, channel: &str) -> String {
        let request = BrokerOp::History(HistoryQuery::POSITION, KEPT);
        match ask(broker, Instant::ZERO, channel, request) {
            Ok(Answer::History(page)) => page.top.epoch,
            answer => panic!("expected a position, got {answer:?}"),
        }
    }

    fn publish(
        broker: &mut MemoryBroker<u64>,
        now: Instant,
        channel: &str,
    ) -> Result<Answer<u64>, BrokerError> {
        let options = PublishOptions { retention: KEPT, idempotency: None, version: None };
        ask(broker, now, channel, BrokerOp::Publish(Box::new(Publication::new(1)), options))
    }

    #[test]
    fn a_stream_without_publications_takes_no_memory_and_keeps_its_epoch() {
        let mut broker = broker(MemoryBrokerOptions::default());
        for number in 0..1_000 {
            let channel = format!("channel {number}");
            let before = epoch(&mut broker, &channel);
            ask(&mut broker, Instant::ZERO, &channel, BrokerOp::Subscribe).expect("done");
            assert_eq!(epoch(&mut broker, &channel), before);
            assert_eq!(broker.stats().streams, 1);
            ask(&mut broker, Instant::ZERO, &channel, BrokerOp::Unsubscribe).expect("done");
            assert_eq!(epoch(&mut broker, &channel), before, "for a subscriber that comes back");
        }
        assert_eq!((broker.stats().streams, broker.next_timeout()), (0, None));
    }

    #[test]
    fn a_publication_beyond_the_bytes_is_refused_until_others_have_expired() {
        let size = kept_size(&Publication::new(1_u64));
        let streams = stream_size("a") + stream_size("b");
        let bytes_max = streams + 4 * size;
        let options = MemoryBrokerOptions { bytes_max, ..MemoryBrokerOptions::default() };
        let mut broker = broker(options);
        for channel in ["a", "a", "a", "b", "a", "a"] {
            publish(&mut broker, Instant::ZERO, channel).expect("in the place of an older one");
        }
        assert_eq!(publish(&mut broker, Instant::ZERO, "b").err(), Some(BrokerError::Full));
        let full = MemoryBrokerStats { streams: 2, bytes: bytes_max, refused: 1 };
        assert_eq!(broker.stats(), full);
        let later = Instant::ZERO + KEPT.ttl;
        broker.handle_timeout(later);
        publish(&mut broker, later, "b").expect("there is room again");
        assert_eq!(broker.stats().bytes, streams + size);
        ask(&mut broker, later, "b", BrokerOp::RemoveHistory).expect("done");
        assert_eq!(broker.stats().bytes, streams);
        broker.handle_timeout(later + KEPT.meta_ttl);
        assert_eq!(broker.stats(), MemoryBrokerStats { refused: 1, ..Default::default() });
    }

    #[test]
    fn a_new_stream_takes_the_place_of_one_that_has_only_its_position_left_or_is_refused() {
        let options = MemoryBrokerOptions { streams_max: 2, ..MemoryBrokerOptions::default() };
        let mut broker = broker(options);
        publish(&mut broker, Instant::ZERO, "a").expect("room");
        publish(&mut broker, Instant::ZERO, "b").expect("room");
        assert_eq!(publish(&mut broker, Instant::ZERO, "c").err(), Some(BrokerError::Full));
        let (first, second) = (epoch(&mut broker, "a"), epoch(&mut broker, "b"));
        ask(&mut broker, Instant::ZERO, "a", BrokerOp::RemoveHistory).expect("done");
        publish(&mut broker, Instant::ZERO, "c").expect("in the place of a");
        assert_eq!(broker.stats().streams, 2);
        assert_ne!(epoch(&mut broker, "a"), first, "it is told that its stream began anew");
        assert_eq!(epoch(&mut broker, "b"), second);
    }

    #[test]
    fn small_publications_to_ever_new_channels_fill_the_bytes_by_their_streams() {
        let bytes_max = 100_000;
        let options = MemoryBrokerOptions { bytes_max, ..MemoryBrokerOptions::default() };
        let mut broker = broker(options);
        let name = |number: usize| format!("channel {number:04}");
        let count = bytes_max / (stream_size(&name(0)) + kept_size(&Publication::new(1_u64)));
        for number in 0..count {
            publish(&mut broker, Instant::ZERO, &name(number)).expect("room");
        }
        let refused = publish(&mut broker, Instant::ZERO, &name(count));
        assert_eq!(refused.err(), Some(BrokerError::Full));
        assert_eq!(broker.stats().streams, count);
    }

    #[test]
    fn positions_give_way_to_publications_but_not_to_one_that_does_not_fit_even_so() {
        let size = stream_size("a") + kept_size(&Publication::new(1_u64));
        let options = MemoryBrokerOptions { bytes_max: 3 * size, ..MemoryBrokerOptions::default() };
        let mut broker = broker(options);
        for channel in ["a", "b", "c"] {
            publish(&mut broker, Instant::ZERO, channel).expect("room");
        }
        let later = Instant::ZERO + KEPT.ttl;
        broker.handle_timeout(later);
        let epochs = ["a", "b", "c"].map(|channel| epoch(&mut broker, channel));
        let options = PublishOptions { retention: KEPT, idempotency: None, version: None };
        let mut large = Publication::new(1_u64);
        large.tags.insert("tag".into(), "x".repeat(3 * size));
        let refused = ask(&mut broker, later, "a", BrokerOp::Publish(Box::new(large), options));
        assert_eq!(refused.err(), Some(BrokerError::Full));
        assert_eq!(["a", "b", "c"].map(|channel| epoch(&mut broker, channel)), epochs);
        for channel in ["a", "a", "a", "d"] {
            publish(&mut broker, later, channel).expect("in the place of b and c");
        }
        assert_eq!(epoch(&mut broker, "a"), epochs[0], "a stream does not make room for itself");
        assert_ne!(epoch(&mut broker, "b"), epochs[1], "it is told that its stream began anew");
        assert!(broker.stats().bytes <= 3 * size);
    }
}

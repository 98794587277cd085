//! The contract of a [`Broker`] as tests: every implementation runs the whole suite.
//!
//! Each function of [`cases`] gets a [`Bench`] around a fresh broker and panics where the contract
//! is broken.

use core::time::Duration;
use std::sync::Arc;

use motet_protocol::Instant;

use super::{
    Answer, Broker, BrokerError, BrokerEvent, BrokerOp, BrokerRequest, HistoryPage, HistoryQuery,
    Idempotency, OpId, PublishOptions, Published, Retention, Version,
};
use crate::message::{ClientInfo, Publication};
use crate::payload::Payload;

/// Waits until the broker may have something to report; false when it is no use to wait longer.
pub type Wait<B> = fn(&mut B) -> bool;

/// A broker under test.
pub struct Bench<P, B> {
    broker: B,
    wait: Wait<B>,
    payload: fn(u64) -> P,
    now: Instant,
    next_op: u64,
    heard: Vec<BrokerEvent<P>>,
}

/// A test of the suite, and what it proves.
pub type Case<P, B> = (&'static str, fn(&mut Bench<P, B>));

impl<P: Payload, B: Broker<P>> Bench<P, B> {
    /// A bench around a fresh broker. `payload` makes payloads that differ when their numbers do.
    pub fn new(broker: B, wait: Wait<B>, payload: fn(u64) -> P) -> Self {
        Self { broker, wait, payload, now: Instant::ZERO, next_op: 0, heard: Vec::new() }
    }

    fn ask(&mut self, channel: &str, request: BrokerOp<P>) -> Result<Answer<P>, BrokerError> {
        self.next_op += 1;
        let op = OpId(self.next_op);
        self.broker.handle(self.now, BrokerRequest { op, channel: Arc::from(channel), request });
        loop {
            match self.broker.poll_output() {
                Some(BrokerEvent::Answer(answered, answer)) if answered == op => return answer,
                Some(event) => self.heard.push(event),
                None => assert!((self.wait)(&mut self.broker), "every request is answered"),
            }
        }
    }

    fn done(&mut self, channel: &str, request: BrokerOp<P>) {
        let answer = self.ask(channel, request);
        assert!(matches!(answer, Ok(Answer::Done)), "there is nothing to tell");
    }

    fn publish_with(
        &mut self,
        channel: &str,
        number: u64,
        options: PublishOptions,
    ) -> Result<Published, BrokerError> {
        let publication = Publication::new((self.payload)(number));
        match self.ask(channel, BrokerOp::Publish(Box::new(publication), options))? {
            Answer::Published(published) => Ok(published),
            _ => panic!("a publish is answered with the publication's place"),
        }
    }

    /// Publishes into a channel with a stream; returns the offset.
    fn publish(&mut self, channel: &str, number: u64) -> u64 {
        let options = PublishOptions { retention: STREAM, idempotency: None, version: None };
        let published = self.publish_with(channel, number, options).expect("the broker is there");
        published.position.expect("the channel keeps a stream").offset
    }

    fn history(&mut self, channel: &str, query: HistoryQuery) -> HistoryPage<P> {
        match self.ask(channel, BrokerOp::History(query, STREAM)) {
            Ok(Answer::History(page)) => page,
            _ => panic!("a history request is answered with a page"),
        }
    }

    fn offsets(&mut self, channel: &str, query: HistoryQuery) -> Vec<u64> {
        self.history(channel, query).publications.iter().map(|p| p.offset).collect()
    }

    /// Publications heard since the last call: channel and offset.
    fn heard_publications(&mut self) -> Vec<(String, u64)> {
        while let Some(event) = self.broker.poll_output() {
            self.heard.push(event);
        }
        let heard = core::mem::take(&mut self.heard);
        let publication = |event| match event {
            BrokerEvent::Publication { channel, publication } => {
                Some((channel.to_string(), publication.offset))
            }
            _ => None,
        };
        heard.into_iter().filter_map(publication).collect()
    }

    fn pass(&mut self, duration: Duration) {
        self.now += duration;
        self.broker.handle_timeout(self.now);
    }

    fn counts(&mut self, channel: &str) -> (u32, u32) {
        match self.ask(channel, BrokerOp::PresenceStats) {
            Ok(Answer::PresenceStats { num_clients, num_users }) => (num_clients, num_users),
            _ => panic!("presence counts are answered with counts"),
        }
    }
}

const STREAM: Retention =
    Retention { size: 3, ttl: Duration::from_secs(60), meta_ttl: Duration::from_secs(3600) };
const ALL: HistoryQuery =
    HistoryQuery { since: None, limit: None, reverse: false, bytes_max: None };
const POSITION: HistoryQuery = HistoryQuery::POSITION;

/// Every case of the suite.
#[must_use]
pub fn cases<P: Payload, B: Broker<P>>() -> Vec<Case<P, B>> {
    vec![
        ("offsets start at 1 and have no gaps", offsets_are_contiguous),
        (
            "the first publication has the epoch that was read before",
            the_epoch_precedes_publications,
        ),
        ("history keeps the newest and reads both ways", history_is_bounded_and_reads_both_ways),
        ("a page ends before it is too large", a_page_ends_before_it_is_too_large),
        ("the position outlives the publications", position_outlives_publications),
        ("a forgotten stream begins a new life", a_forgotten_stream_begins_anew),
        ("only subscribed channels are delivered, in order", delivery_follows_subscriptions),
        ("a pattern hears its channels and not its prefix", patterns_hear_their_channels),
        ("an idempotency key is taken once", an_idempotency_key_is_taken_once),
        ("an older version is suppressed", an_older_version_is_suppressed),
        ("presence counts exactly", presence_counts_exactly),
        ("joins and leaves reach subscribers", joins_and_leaves_are_delivered),
        ("a channel without a stream has no positions", no_stream_no_position),
    ]
}

fn offsets_are_contiguous<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    let offsets: Vec<_> = (0..5).map(|n| bench.publish("a", n)).collect();
    assert_eq!(offsets, [1, 2, 3, 4, 5]);
    assert_eq!(bench.publish("b", 0), 1, "each channel has its own stream");
}

fn the_epoch_precedes_publications<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    let top = bench.history("a", POSITION).top;
    assert_eq!(top.offset, 0);
    assert!(!top.epoch.is_empty());
    bench.publish("a", 0);
    let after = bench.history("a", POSITION).top;
    assert_eq!((after.offset, after.epoch), (1, top.epoch));
}

fn history_is_bounded_and_reads_both_ways<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    for n in 1..=5 {
        bench.publish("a", n);
    }
    assert_eq!(bench.offsets("a", ALL), [3, 4, 5]);
    assert_eq!(bench.offsets("a", HistoryQuery { limit: Some(2), ..ALL }), [3, 4]);
    assert_eq!(bench.offsets("a", HistoryQuery { since: Some(4), ..ALL }), [5]);
    assert_eq!(bench.offsets("a", HistoryQuery { since: Some(1), ..ALL }), [3, 4, 5]);
    assert!(bench.offsets("a", HistoryQuery { since: Some(u64::MAX), ..ALL }).is_empty());
    let reverse = HistoryQuery { reverse: true, ..ALL };
    assert_eq!(bench.offsets("a", reverse), [5, 4, 3]);
    assert_eq!(bench.offsets("a", HistoryQuery { since: Some(5), ..reverse }), [4, 3]);
    assert!(bench.offsets("a", POSITION).is_empty());
}

fn a_page_ends_before_it_is_too_large<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    for n in 1..=3 {
        bench.publish("a", n);
    }
    let size = bench.history("a", ALL).publications[0].encoded_size_max(0);
    for (bytes_max, forward, reverse) in [
        (1, vec![1], vec![3]),
        (2 * size, vec![1, 2], vec![3, 2]),
        (3 * size, vec![1, 2, 3], vec![3, 2, 1]),
    ] {
        let query = HistoryQuery { bytes_max: Some(bytes_max), ..ALL };
        assert_eq!(bench.offsets("a", query), forward, "{bytes_max} bytes");
        assert_eq!(bench.offsets("a", HistoryQuery { reverse: true, ..query }), reverse);
    }
    let query = HistoryQuery { since: Some(2), bytes_max: Some(1), ..ALL };
    assert_eq!(bench.offsets("a", query), [3], "whoever asks on gets to the end");
    let query = HistoryQuery { bytes_max: Some(1), ..POSITION };
    assert!(bench.offsets("a", query).is_empty());
}

fn position_outlives_publications<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    bench.publish("a", 1);
    let before = bench.history("a", POSITION).top;
    bench.pass(STREAM.ttl + Duration::from_secs(1));
    let page = bench.history("a", ALL);
    assert!(page.publications.is_empty(), "publications expire");
    assert_eq!(page.top, before);
    bench.publish("a", 2);
    bench.done("a", BrokerOp::RemoveHistory);
    let page = bench.history("a", ALL);
    assert!(page.publications.is_empty(), "publications are removed");
    assert_eq!((page.top.offset, page.top.epoch), (2, before.epoch));
}

fn a_forgotten_stream_begins_anew<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    bench.publish("a", 1);
    let before = bench.history("a", POSITION).top;
    bench.pass(STREAM.meta_ttl + Duration::from_secs(1));
    let after = bench.history("a", POSITION).top;
    assert_eq!(after.offset, 0);
    assert_ne!(after.epoch, before.epoch);
}

fn delivery_follows_subscriptions<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    bench.publish("a", 0);
    bench.done("a", BrokerOp::Subscribe);
    bench.done("a", BrokerOp::Subscribe);
    bench.publish("a", 1);
    bench.publish("b", 1);
    bench.publish("a", 2);
    let once = [("a".to_owned(), 2), ("a".to_owned(), 3)];
    assert_eq!(bench.heard_publications(), once, "subscribing twice does not deliver twice");
    bench.done("a", BrokerOp::Unsubscribe);
    bench.publish("a", 3);
    assert!(bench.heard_publications().is_empty());
}

fn patterns_hear_their_channels<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    bench.done("chat.*", BrokerOp::Subscribe);
    for channel in ["chat", "chat.a", "chat.a.b", "chatter.a", "$chat.a", "chat.a#1"] {
        bench.publish(channel, 1);
    }
    let heard = [("chat.a".to_owned(), 1), ("chat.a.b".to_owned(), 1)];
    assert_eq!(bench.heard_publications(), heard);
}

fn an_idempotency_key_is_taken_once<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    bench.done("a", BrokerOp::Subscribe);
    let options = |fingerprint| PublishOptions {
        retention: STREAM,
        idempotency: Some(Idempotency { key: "k".to_owned(), fingerprint: Some(fingerprint) }),
        version: None,
    };
    let first = bench.publish_with("a", 1, options(1)).expect("first use");
    let again = bench.publish_with("a", 1, options(1)).expect("same payload");
    assert!(!first.suppressed && again.suppressed);
    assert_eq!(first.position, again.position, "the first outcome is told again");
    let other = bench.publish_with("a", 2, options(2));
    assert_eq!(other, Err(BrokerError::IdempotencyKeyReused));
    assert_eq!(bench.heard_publications().len(), 1);
    let elsewhere = bench.publish_with("b", 2, options(2)).expect("keys belong to a channel");
    assert!(!elsewhere.suppressed);
}

fn an_older_version_is_suppressed<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    let options = |number, epoch: &str| PublishOptions {
        retention: STREAM,
        idempotency: None,
        version: Some(Version { number, epoch: epoch.to_owned() }),
    };
    let suppressed = [(1, ""), (3, ""), (2, ""), (3, ""), (4, ""), (1, "e")]
        .map(|(number, epoch)| bench.publish_with("a", number, options(number, epoch)))
        .map(|published| published.expect("the broker is there").suppressed);
    assert_eq!(suppressed, [false, false, true, true, false, false]);
    assert_eq!(bench.history("a", POSITION).top.offset, 4, "a suppressed one takes no offset");
}

fn presence_counts_exactly<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    let info = |user: &str, client: &str| {
        BrokerOp::AddPresence(Box::new(ClientInfo::new(user.to_owned(), client.to_owned())))
    };
    for (user, client) in [("u1", "c1"), ("u1", "c2"), ("u2", "c3"), ("u2", "c3")] {
        bench.done("a", info(user, client));
    }
    assert_eq!(bench.counts("a"), (3, 2));
    bench.done("a", BrokerOp::RemovePresence("c1".to_owned()));
    bench.done("a", BrokerOp::RemovePresence("c1".to_owned()));
    assert_eq!(bench.counts("a"), (2, 2));
    bench.done("a", BrokerOp::RemovePresence("c2".to_owned()));
    assert_eq!(bench.counts("a"), (1, 1));
    let Ok(Answer::Presence(presence)) = bench.ask("a", BrokerOp::Presence) else {
        panic!("presence is answered with who is there");
    };
    assert_eq!(presence.keys().collect::<Vec<_>>(), ["c3"]);
    assert_eq!(bench.counts("b"), (0, 0));
}

fn joins_and_leaves_are_delivered<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    let info = || Box::new(ClientInfo::new("u".to_owned(), "c".to_owned()));
    bench.done("a", BrokerOp::Join(info()));
    bench.done("a", BrokerOp::Subscribe);
    bench.done("a", BrokerOp::Join(info()));
    bench.done("a", BrokerOp::Leave(info()));
    while let Some(event) = bench.broker.poll_output() {
        bench.heard.push(event);
    }
    let heard = core::mem::take(&mut bench.heard);
    assert!(
        matches!(heard[..], [BrokerEvent::Join { .. }, BrokerEvent::Leave { .. }]),
        "one join and one leave after the subscription"
    );
}

fn no_stream_no_position<P: Payload, B: Broker<P>>(bench: &mut Bench<P, B>) {
    bench.done("a", BrokerOp::Subscribe);
    let options = PublishOptions { retention: Retention::NONE, idempotency: None, version: None };
    let published = bench.publish_with("a", 1, options).expect("the broker is there");
    assert_eq!(published.position, None);
    assert_eq!(bench.heard_publications(), [("a".to_owned(), 0)]);
}

//! A broker that takes its time: what comes in between is neither lost nor repeated nor early.

use core::time::Duration;
use std::collections::VecDeque;

use motet_protocol::{Instant, Rng};
use motet_realtime::broker::{
    Answer, Broker, BrokerEvent, BrokerOp, BrokerRequest, MemoryBroker, MemoryBrokerOptions,
};
use motet_realtime::hub::{Hub, Input, Output, SessionId};
use motet_realtime::message::{
    Command, Publication, PushEvent, Reply, ReplyBody, Request, StreamPosition,
};

use crate::world::{options, publish_to, subscribe_to};

const SUBSCRIBER: SessionId = SessionId(1);

/// A hub whose broker answers only when the test says so.
struct Slow {
    now: Instant,
    hub: Hub<u64>,
    broker: MemoryBroker<u64>,
    requests: VecDeque<BrokerRequest<u64>>,
    sent: Vec<(SessionId, Reply<u64>)>,
    closed: Vec<(SessionId, u32)>,
}

impl Slow {
    fn new() -> Self {
        let options =
            motet_realtime::server::HubOptions { ping_interval: Duration::ZERO, ..options() };
        let broker = MemoryBroker::new(Rng::from_seed([2; 32]), MemoryBrokerOptions::default());
        let mut slow = Self {
            now: Instant::ZERO,
            hub: Hub::new(options, Rng::from_seed([1; 32])),
            broker,
            requests: VecDeque::new(),
            sent: Vec::new(),
            closed: Vec::new(),
        };
        slow.input(Input::Open(SUBSCRIBER));
        slow.command(1, Request::Connect(Box::default()));
        slow
    }

    fn input(&mut self, input: Input<u64>) {
        self.hub.handle(self.now, input);
        while let Some(output) = self.hub.poll_output() {
            match output {
                Output::Broker(request) => self.requests.push_back(request),
                Output::Reply(session, reply) => self.sent.push((session, reply)),
                Output::Fanout(push, sessions) => {
                    self.sent.extend(sessions.iter().map(|id| (*id, Reply::push(push.clone()))))
                }
                Output::Close(session, disconnect) => {
                    self.closed.push((session, disconnect.code.0));
                }
                Output::Verify { .. }
                | Output::ApiReply(..)
                | Output::Accepted { .. }
                | Output::FramePing(_) => {}
            }
        }
    }

    fn command(&mut self, id: u32, request: Request<u64>) {
        self.input(Input::Command(SUBSCRIBER, Command::new(id, request)));
    }

    /// Lets the broker carry out one request; its events are held back.
    fn carry_out(&mut self) -> Vec<BrokerEvent<u64>> {
        let request = self.requests.pop_front().expect("a request");
        self.broker.handle(self.now, request);
        core::iter::from_fn(|| self.broker.poll_output()).collect()
    }

    fn answer_all(&mut self) {
        while !self.requests.is_empty() {
            for event in self.carry_out() {
                self.input(Input::Broker(event));
            }
        }
    }

    /// What the subscriber was sent: subscribe replies and publications by offset.
    fn seen(&self) -> Vec<String> {
        let seen = |reply: &Reply<u64>| match &reply.body {
            ReplyBody::Subscribe(result) => Some(format!("subscribed at {}", result.offset)),
            ReplyBody::Push(push) => match &push.event {
                PushEvent::Publication(publication) => Some(format!("{}", publication.offset)),
                PushEvent::Unsubscribe(end) => Some(format!("unsubscribed {}", end.code.0)),
                _ => None,
            },
            ReplyBody::Error(error) => Some(format!("error {}", error.code.0)),
            _ => None,
        };
        self.sent.iter().filter_map(|(_, reply)| seen(reply)).collect()
    }

    fn publication(&self, offset: u64, epoch: &str) -> Input<u64> {
        let publication =
            Publication { offset, epoch: epoch.to_owned(), ..Publication::new(offset) };
        Input::Broker(BrokerEvent::Publication {
            channel: "a".into(),
            publication: Box::new(publication),
        })
    }

    /// Subscribes with the broker's answers so far that only the stream is still to be read;
    /// returns the answer, not yet told.
    fn subscribe_up_to_the_read(&mut self) -> Vec<BrokerEvent<u64>> {
        self.command(2, Request::Subscribe(Box::new(subscribe_to("a"))));
        for event in self.carry_out() {
            self.input(Input::Broker(event));
        }
        self.carry_out()
    }
}

/// The position in the answer to a history request.
fn position(answer: &[BrokerEvent<u64>]) -> StreamPosition {
    match answer {
        [BrokerEvent::Answer(_, Ok(Answer::History(page)))] => page.top.clone(),
        events => panic!("expected a page, got {events:?}"),
    }
}

#[test]
fn publications_that_arrive_before_the_reply_follow_it() {
    let mut slow = Slow::new();
    let answer = slow.subscribe_up_to_the_read();
    let epoch = position(&answer).epoch;
    slow.input(slow.publication(1, &epoch));
    slow.input(slow.publication(2, &epoch));
    assert!(slow.seen().is_empty());
    answer.into_iter().for_each(|event| slow.input(Input::Broker(event)));
    assert_eq!(slow.seen(), ["subscribed at 0", "1", "2"]);
    slow.input(slow.publication(3, &epoch));
    assert_eq!(slow.seen().last().map(String::as_str), Some("3"));
}

#[test]
fn publications_that_the_read_has_seen_are_not_repeated() {
    let mut slow = Slow::new();
    slow.command(2, Request::Subscribe(Box::new(subscribe_to("a"))));
    for event in slow.carry_out() {
        slow.input(Input::Broker(event));
    }
    // The broker takes a publication and reports it late: the read is ahead of the delivery.
    let read = slow.requests.pop_front().expect("the read");
    slow.command(3, publish_to("a", 1));
    assert!(slow.requests.is_empty(), "the connection's next command waits its turn");
    let publish = BrokerOp::Publish(
        Box::new(Publication::new(1)),
        motet_realtime::broker::PublishOptions {
            retention: motet_realtime::broker::Retention {
                size: 10,
                ttl: Duration::from_secs(60),
                meta_ttl: Duration::from_secs(60),
            },
            idempotency: None,
            version: None,
        },
    );
    let op = motet_realtime::broker::OpId(1_000_000);
    slow.requests.push_back(BrokerRequest { op, channel: "a".into(), request: publish });
    let late = slow.carry_out();
    slow.requests.push_back(read);
    for event in slow.carry_out() {
        slow.input(Input::Broker(event));
    }
    late.into_iter().for_each(|event| slow.input(Input::Broker(event)));
    slow.answer_all();
    assert_eq!(slow.seen(), ["subscribed at 1", "2"], "1 was in the position already");
}

#[test]
fn a_hole_in_what_came_before_the_reply_closes_with_3010() {
    let mut slow = Slow::new();
    let answer = slow.subscribe_up_to_the_read();
    let epoch = position(&answer).epoch;
    slow.input(slow.publication(2, &epoch));
    answer.into_iter().for_each(|event| slow.input(Input::Broker(event)));
    slow.answer_all();
    let ended = slow.closed == [(SUBSCRIBER, 3010)]
        || slow.seen().last().is_some_and(|last| last == "unsubscribed 2500");
    assert!(ended, "{:?} {:?}", slow.seen(), slow.closed);
}

#[test]
fn a_gap_in_live_delivery_unsubscribes_with_2500_and_a_repeat_is_dropped() {
    let mut slow = Slow::new();
    let answer = slow.subscribe_up_to_the_read();
    let epoch = position(&answer).epoch;
    answer.into_iter().for_each(|event| slow.input(Input::Broker(event)));
    for offset in [1, 1, 2, 4] {
        slow.input(slow.publication(offset, &epoch));
    }
    assert_eq!(slow.seen(), ["subscribed at 0", "1", "2", "unsubscribed 2500"]);
    assert!(slow.closed.is_empty());
}

#[test]
fn another_epoch_in_live_delivery_unsubscribes_with_2500() {
    let mut slow = Slow::new();
    let answer = slow.subscribe_up_to_the_read();
    answer.into_iter().for_each(|event| slow.input(Input::Broker(event)));
    slow.input(slow.publication(1, "other"));
    assert_eq!(slow.seen(), ["subscribed at 0", "unsubscribed 2500"]);
}

#[test]
fn a_publication_that_never_arrives_is_found_by_the_position_check() {
    let mut slow = Slow::new();
    let answer = slow.subscribe_up_to_the_read();
    let epoch = position(&answer).epoch;
    answer.into_iter().for_each(|event| slow.input(Input::Broker(event)));
    slow.answer_all();
    for look in 0..2 {
        slow.now = slow.hub.next_timeout().expect("a position check");
        slow.input(Input::Timeout);
        let request = slow.requests.pop_front().expect("the check asks the broker");
        assert!(matches!(request.request, BrokerOp::History(..)), "look {look}");
        let page = motet_realtime::broker::HistoryPage {
            publications: Vec::new(),
            top: StreamPosition { offset: 1, epoch: epoch.clone() },
        };
        slow.input(Input::Broker(BrokerEvent::Answer(request.op, Ok(Answer::History(page)))));
    }
    assert_eq!(slow.seen(), ["subscribed at 0", "unsubscribed 2500"]);
}

#[test]
fn an_operation_without_an_answer_fails_with_error_100_in_bounded_time() {
    let mut slow = Slow::new();
    slow.command(2, Request::Subscribe(Box::new(subscribe_to("a"))));
    slow.command(3, publish_to("a", 1));
    for _ in 0..4 {
        let Some(due) = slow.hub.next_timeout() else { break };
        slow.now = due;
        slow.input(Input::Timeout);
    }
    assert_eq!(slow.seen(), ["error 100", "error 100"]);
    assert!(slow.now <= Instant::ZERO + Duration::from_secs(11));
}

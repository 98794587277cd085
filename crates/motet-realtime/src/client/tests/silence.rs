use motet_protocol::transport::PublishRequest;
use motet_protocol::{CallId, ErrorCode};

use super::*;

fn pinged(pong: bool) -> Rig {
    let mut rig = Rig::new();
    rig.connect(ConnectResult { ping: 25, pong, ..ConnectResult::default() });
    rig
}

#[test]
fn pings_are_answered_when_the_server_wants_it() {
    let mut rig = pinged(true);
    rig.say(Reply::ping());
    rig.say(Reply::ping());
    assert_eq!(rig.names(), ["pong", "pong"]);
    let mut rig = pinged(false);
    rig.say(Reply::ping());
    assert!(rig.frames.is_empty());
}

#[test]
fn silence_longer_than_ping_and_grace_ends_the_connection() {
    let mut rig = pinged(true);
    rig.wait(seconds(34));
    rig.say(Reply::ping());
    rig.wait(seconds(34));
    assert!(rig.events.is_empty(), "anything heard starts the silence anew");
    rig.wait(seconds(1));
    assert_eq!(disconnected(&rig.events[0]), Some((0, false)));
    assert_eq!(rig.sockets, [Socket::Close(1)]);
}

#[test]
fn without_pings_silence_means_nothing() {
    let mut rig = Rig::connected();
    rig.wait(seconds(86_400));
    assert!(rig.events.is_empty());
}

#[test]
fn after_a_sleep_what_lies_in_the_socket_is_read_before_the_silence_is_judged() {
    let mut rig = pinged(true);
    rig.sleep(seconds(300));
    assert!(rig.events.is_empty(), "the overdue timer does not kill the link");
    rig.say(Reply::ping());
    rig.wait(seconds(34));
    assert!(rig.events.is_empty());
    assert_eq!(rig.names(), ["pong"]);
}

#[test]
fn a_link_that_stays_silent_after_a_sleep_is_dead() {
    let mut rig = pinged(true);
    rig.sleep(seconds(300));
    rig.wait(seconds(3));
    assert_eq!(rig.sockets, [Socket::Close(1)]);
}

#[test]
fn timers_that_are_always_late_do_not_keep_a_dead_link() {
    let mut rig = pinged(true);
    rig.sleep(seconds(60));
    assert!(rig.events.is_empty());
    rig.sleep(seconds(60));
    assert_eq!(disconnected(&rig.events[0]), Some((0, false)));
}

#[test]
fn a_reply_that_waited_through_a_sleep_is_taken() {
    let mut rig = pinged(true);
    rig.subscribe("news");
    rig.sleep(seconds(20));
    assert!(rig.events.is_empty());
    rig.stand("news", stream("e", 4));
    let [TransportEvent::Subscribed { position: at, .. }] = &rig.events[..] else { panic!() };
    assert_eq!(*at, Some(position("e", 4)));
}

#[test]
fn a_subscribe_without_an_answer_makes_the_client_reconnect() {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.wait(seconds(5));
    let Some(TransportEvent::Disconnected { error, terminal: false }) = rig.events.first() else {
        panic!()
    };
    assert_eq!(error.code, ErrorCode::RequestTimeout);
    rig.closed(1000);
    rig.clear();
    rig.wait(seconds(1));
    rig.open();
    assert_eq!(rig.names(), ["connect", "subscribe news"]);
}

fn publish() -> TransportOp<u64> {
    TransportOp::Publish(PublishRequest {
        call: CallId::from_bits(7),
        topic: "news".into(),
        payload: 1,
        idempotency_key: None,
        message_id: None,
        timestamp_ms: None,
        remaining: seconds(10),
    })
}

fn outcome_unknown() -> Event {
    let result = Err(ErrorCode::OutcomeUnknown.into());
    TransportEvent::Published { call: CallId::from_bits(7), result }
}

#[test]
fn a_publish_without_an_answer_on_a_link_that_talks_has_an_unknown_outcome() {
    let mut rig = Rig::connected();
    rig.op(publish());
    rig.wait(seconds(4));
    rig.say(Reply::ping());
    rig.wait(seconds(60));
    assert_eq!(rig.events, [outcome_unknown()]);
    assert!(rig.sockets.is_empty());
}

#[test]
fn a_link_without_a_word_for_as_long_as_an_answer_may_take_is_dead() {
    let mut rig = pinged(true);
    rig.op(publish());
    rig.wait(seconds(5));
    assert_eq!(rig.events[0], outcome_unknown());
    assert_eq!(disconnected(&rig.events[1]), Some((0, false)));
    assert_eq!(rig.sockets, [Socket::Close(1)]);
}

#[test]
fn a_socket_that_was_opening_through_a_sleep_gets_its_moment() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.sleep(seconds(120));
    assert_eq!(rig.sockets, [Socket::Open(1)]);
    rig.open();
    assert_eq!(rig.names(), ["connect"]);
}

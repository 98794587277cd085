use motet_protocol::ErrorCode;

use super::*;
use crate::message::ServerErrorCode;

fn gone(topic: &str) -> Event {
    TransportEvent::Unsubscribed { topic: topic.into(), error: None, terminal: true }
}

fn subscribed_to(topic: &str) -> Rig {
    let mut rig = Rig::connected();
    rig.subscribe(topic);
    rig.stand(topic, stream("e", 5));
    rig.clear();
    rig
}

#[test]
fn a_subscription_is_reported_once_and_repeating_the_wish_is_harmless() {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.subscribe("news");
    rig.stand("news", SubscribeResult::default());
    rig.subscribe("news");
    assert_eq!(rig.names(), ["subscribe news"]);
    let expected = TransportEvent::Subscribed {
        topic: "news".into(),
        position: None,
        recovered: false,
        publications: vec![],
    };
    assert_eq!(rig.events, [expected]);
}

#[test]
fn an_unsubscribe_is_answered_once_the_server_has_confirmed_it() {
    let mut rig = subscribed_to("news");
    rig.unsubscribe("news");
    assert_eq!(rig.names(), ["unsubscribe news"]);
    assert!(rig.events.is_empty());
    rig.live("news", 6);
    assert!(rig.events.is_empty(), "nothing is delivered for a topic that was given up");
    rig.answer(rig.unsubscribe_id("news"), ReplyBody::Unsubscribe);
    assert_eq!(rig.events, [gone("news")]);
}

#[test]
fn an_unsubscribe_of_an_unknown_topic_is_answered_at_once() {
    let mut rig = Rig::new();
    rig.unsubscribe("news");
    assert_eq!(rig.events, [gone("news")]);
    let mut rig = Rig::connected();
    rig.unsubscribe("news");
    assert_eq!(rig.events, [gone("news")]);
    assert!(rig.frames.is_empty());
}

#[test]
fn an_unsubscribe_while_the_subscribe_is_in_flight_follows_it() {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.unsubscribe("news");
    assert_eq!(rig.names(), ["subscribe news", "unsubscribe news"]);
    rig.stand("news", stream("e", 1));
    rig.live("news", 2);
    assert!(rig.events.is_empty(), "the late confirmation is about nothing any more");
    rig.answer(rig.unsubscribe_id("news"), ReplyBody::Unsubscribe);
    assert_eq!(rig.events, [gone("news")]);
}

#[test]
fn an_unsubscribe_between_the_connect_frame_and_its_reply_follows_it() {
    let mut rig = Rig::new();
    rig.subscribe("news");
    rig.op(TransportOp::Open);
    rig.open();
    rig.unsubscribe("news");
    assert_eq!(rig.names(), ["connect", "subscribe news", "unsubscribe news"]);
    rig.accept(ConnectResult::default());
    rig.stand("news", SubscribeResult::default());
    rig.answer(rig.unsubscribe_id("news"), ReplyBody::Unsubscribe);
    assert_eq!(rig.events.iter().filter_map(unsubscribed).count(), 1);
    assert!(!rig.events.iter().any(|e| matches!(e, TransportEvent::Subscribed { .. })));
}

#[test]
fn a_subscribe_that_was_not_written_yet_is_taken_back_unseen() {
    let mut rig = Rig::connected();
    let topic = || "news".to_owned();
    let subscribe = TransportOp::Subscribe { topic: topic(), since: None };
    rig.client.handle(rig.now, Input::Op(subscribe));
    rig.unsubscribe("news");
    assert!(rig.frames.is_empty());
    assert_eq!(rig.events, [gone("news")]);
}

#[test]
fn a_new_subscribe_waits_until_the_unsubscribe_is_confirmed() {
    let mut rig = subscribed_to("news");
    rig.unsubscribe("news");
    rig.subscribe("news");
    assert_eq!(rig.names(), ["unsubscribe news"]);
    rig.answer(rig.unsubscribe_id("news"), ReplyBody::Unsubscribe);
    assert_eq!(rig.names(), ["unsubscribe news", "subscribe news"]);
    rig.stand("news", stream("e", 9));
    assert_eq!(rig.events[0], gone("news"));
    assert!(matches!(&rig.events[1], TransportEvent::Subscribed { recovered: false, .. }));
}

#[test]
fn of_two_unsubscribes_neither_is_answered_before_the_server_has_confirmed() {
    let mut rig = subscribed_to("news");
    rig.unsubscribe("news");
    rig.subscribe("news");
    rig.unsubscribe("news");
    assert_eq!(rig.events, []);
    rig.answer(rig.unsubscribe_id("news"), ReplyBody::Unsubscribe);
    assert_eq!(rig.events, [gone("news")]);
    assert_eq!(rig.names(), ["unsubscribe news"]);
}

#[test]
fn already_subscribed_is_repaired_and_never_fatal() {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    for _ in 0..5 {
        rig.say(Reply::error(rig.subscribe_id("news"), ServerErrorCode::ALREADY_SUBSCRIBED));
        rig.answer(rig.unsubscribe_id("news"), ReplyBody::Unsubscribe);
        rig.wait(seconds(4));
    }
    rig.stand("news", SubscribeResult::default());
    assert!(rig.events.iter().filter_map(unsubscribed).next().is_none());
    assert!(matches!(rig.events[..], [TransportEvent::Subscribed { .. }]));
}

#[test]
fn a_stale_unsubscribe_push_does_not_hit_the_new_subscription() {
    let mut rig = subscribed_to("news");
    rig.unsubscribe("news");
    rig.subscribe("news");
    rig.push_unsubscribe("news", UnsubscribeCode::SERVER);
    rig.answer(rig.unsubscribe_id("news"), ReplyBody::Unsubscribe);
    rig.push_unsubscribe("news", UnsubscribeCode::SERVER);
    rig.stand("news", stream("e", 5));
    assert!(matches!(rig.events.last(), Some(TransportEvent::Subscribed { .. })));
    assert_eq!(rig.events.iter().filter_map(unsubscribed).collect::<Vec<_>>(), [("news", 0, true)]);
}

#[test]
fn a_lost_position_is_followed_by_a_recovery() {
    let mut rig = subscribed_to("news");
    rig.push_unsubscribe("news", UnsubscribeCode::INSUFFICIENT_STATE);
    assert_eq!(unsubscribed(&rig.events[0]), Some(("news", 2500, false)));
    rig.wait(seconds(1));
    assert_eq!(rig.names(), ["subscribe news 5@e"]);
}

#[test]
fn an_unsubscribe_by_the_server_is_for_good() {
    let mut rig = subscribed_to("news");
    rig.push_unsubscribe("news", UnsubscribeCode::SERVER);
    rig.wait(seconds(100));
    assert_eq!(unsubscribed(&rig.events[0]), Some(("news", 2000, true)));
    assert!(rig.frames.is_empty());
    rig.subscribe("news");
    assert_eq!(rig.names(), ["subscribe news"], "until it is wanted again");
}

#[test]
fn invalidated_state_starts_anew() {
    let mut rig = subscribed_to("news");
    rig.push_unsubscribe("news", UnsubscribeCode::STATE_INVALIDATED);
    rig.wait(seconds(1));
    assert_eq!(rig.names(), ["subscribe news"]);
}

#[test]
fn refusals_for_good_and_for_now_are_told_apart() {
    for (code, expected) in [(100, false), (111, false), (102, true), (103, true), (106, true)] {
        let mut rig = Rig::connected();
        rig.subscribe("news");
        rig.say(Reply::error(rig.subscribe_id("news"), ServerErrorCode(code)));
        assert_eq!(unsubscribed(&rig.events[0]), Some(("news", code, expected)));
        rig.wait(seconds(4));
        assert_eq!(rig.frames.len(), if expected { 1 } else { 2 }, "{code}");
    }
}

#[test]
fn an_unrecoverable_position_is_let_go() {
    let mut rig = Rig::connected();
    let since = Some(position("old", 3));
    rig.op(TransportOp::Subscribe { topic: "news".into(), since });
    let id = rig.subscribe_id("news");
    rig.say(Reply::error(id, ServerErrorCode::UNRECOVERABLE_POSITION));
    rig.wait(seconds(1));
    assert_eq!(rig.names(), ["subscribe news 3@old", "subscribe news"]);
}

#[test]
fn after_a_reconnect_everything_wanted_is_subscribed_and_recovered() {
    let mut rig = Rig::connected();
    for topic in ["a", "b", "c", "d"] {
        rig.subscribe(topic);
    }
    rig.stand("a", stream("e", 5));
    rig.stand("b", SubscribeResult::default());
    rig.stand("c", stream("e", 1));
    rig.live("a", 6);
    rig.unsubscribe("c");
    rig.clear();
    rig.closed(3001);
    assert_eq!(disconnected(&rig.events[0]), Some((3001, false)));
    assert_eq!(rig.events[1..], [gone("c")], "an unsubscribe has nothing left to wait for");
    rig.wait(seconds(1));
    rig.open();
    assert_eq!(rig.names(), ["connect", "subscribe a 6@e", "subscribe b", "subscribe d"]);
}

#[test]
fn a_topic_wanted_again_while_it_was_left_survives_the_reconnect() {
    let mut rig = subscribed_to("news");
    rig.unsubscribe("news");
    rig.subscribe("news");
    rig.closed(1006);
    assert_eq!(rig.events[1..], [gone("news")]);
    rig.wait(seconds(1));
    rig.open();
    assert_eq!(rig.sent().last().map(name), Some("subscribe news".into()));
}

#[test]
fn more_topics_than_allowed_are_refused() {
    let mut rig = Rig::with(ClientConfig { topics_max: 2, ..config() }, 1);
    for topic in ["a", "b", "c"] {
        rig.subscribe(topic);
    }
    let [TransportEvent::Unsubscribed { topic, error: Some(error), terminal: true }] =
        &rig.events[..]
    else {
        panic!()
    };
    assert_eq!((topic.as_str(), error.code), ("c", ErrorCode::Backpressure));
}

#[test]
fn patterns_wait_for_a_server_that_knows_them() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.subscribe("chat.*");
    rig.open();
    assert_eq!(rig.names(), ["connect"]);
    rig.accept(extension(Features::ALL));
    assert_eq!(rig.names(), ["connect", "subscribe chat.*"]);
    rig.stand("chat.*", SubscribeResult::default());
    rig.clear();
    let publication = Publication { offset: 8, channel: "chat.a".into(), ..Publication::new(80) };
    rig.say(Reply::push(Push::publication("chat.*", publication)));
    let [TransportEvent::Publication { topic, publication }] = &rig.events[..] else { panic!() };
    assert_eq!((topic.as_str(), publication.offset, publication.payload), ("chat.a", 8, 80));
}

#[test]
fn a_pattern_is_refused_where_the_server_has_none() {
    let mut rig = Rig::connected();
    rig.subscribe("chat.*");
    let [TransportEvent::Unsubscribed { error: Some(error), terminal: true, .. }] = &rig.events[..]
    else {
        panic!()
    };
    assert_eq!(error.code, ErrorCode::WildcardUnsupported);
    assert!(rig.frames.is_empty());
}

#[test]
fn ten_rounds_of_subscribe_and_unsubscribe_leave_nothing_behind() {
    let mut rig = Rig::connected();
    for _ in 0..10 {
        rig.subscribe("news");
        rig.stand("news", stream("e", 1));
        rig.unsubscribe("news");
        rig.answer(rig.unsubscribe_id("news"), ReplyBody::Unsubscribe);
    }
    assert_eq!(rig.events.len(), 20);
    assert_eq!(rig.client.next_timeout(), None);
    rig.closed(1006);
    rig.wait(seconds(1));
    rig.clear();
    rig.open();
    assert_eq!(rig.names(), ["connect"]);
}

use motet_protocol::ErrorCode;

use super::*;
use crate::client::TopicTokens;
use crate::message::{RefreshResult, ServerErrorCode, SubRefreshResult};

const WANTED: Event = TransportEvent::TokenWanted { topic: None };

fn wanted(topic: &str) -> Event {
    TransportEvent::TokenWanted { topic: Some(topic.into()) }
}

fn expiring(ttl: u32) -> ConnectResult<u64> {
    ConnectResult { expires: true, ttl, ..ConnectResult::default() }
}

fn with_token() -> Rig {
    let mut rig = Rig::with(ClientConfig { token_needed: true, ..config() }, 1);
    rig.op(TransportOp::Open);
    rig.token(None, Some("t1"));
    rig.open();
    rig
}

#[test]
fn a_needed_token_is_asked_for_before_the_socket_opens() {
    let mut rig = Rig::with(ClientConfig { token_needed: true, ..config() }, 1);
    rig.op(TransportOp::Open);
    assert_eq!(rig.events, [TransportEvent::Connecting, WANTED]);
    assert!(rig.sockets.is_empty());
    rig.token(None, Some("t1"));
    rig.open();
    assert_eq!(rig.names(), ["connect t1"]);
    rig.accept(ConnectResult::default());
    rig.closed(1006);
    rig.wait(seconds(1));
    rig.open();
    assert_eq!(rig.names(), ["connect t1", "connect t1"], "a good token is used again");
}

#[test]
fn an_application_without_a_token_is_asked_again_later() {
    let mut rig = Rig::with(ClientConfig { token_needed: true, ..config() }, 1);
    rig.op(TransportOp::Open);
    rig.token(None, None);
    let Some(TransportEvent::Disconnected { error, terminal: false }) = rig.events.last() else {
        panic!()
    };
    assert_eq!(error.code, ErrorCode::TokenUnavailable);
    rig.clear();
    rig.wait(seconds(1));
    assert_eq!(rig.events, [TransportEvent::Connecting, WANTED]);
}

#[test]
fn an_application_that_never_answers_is_asked_again() {
    let mut rig = Rig::with(ClientConfig { token_needed: true, ..config() }, 1);
    rig.op(TransportOp::Open);
    rig.clear();
    rig.wait(seconds(31));
    assert_eq!(disconnected(&rig.events[0]), Some((0, false)));
    assert_eq!(rig.events[1..], [TransportEvent::Connecting, WANTED]);
}

#[test]
fn a_connect_with_an_expired_token_is_followed_by_one_with_a_new_token() {
    let mut rig = with_token();
    rig.clear();
    rig.say(Reply::error(1, ServerErrorCode::TOKEN_EXPIRED));
    assert_eq!(disconnected(&rig.events[0]), Some((109, false)));
    rig.closed(1000);
    rig.wait(seconds(1));
    assert_eq!(rig.events[1..], [TransportEvent::Connecting, WANTED]);
    rig.token(None, Some("t2"));
    rig.open();
    assert_eq!(rig.names(), ["connect t2"]);
}

#[test]
fn an_expired_connection_asks_for_a_token_before_it_comes_back() {
    let mut rig = with_token();
    rig.accept(expiring(60));
    rig.clear();
    rig.closed(DisconnectCode::CONNECTION_EXPIRED.0);
    rig.wait(seconds(1));
    assert_eq!(rig.events[1..], [TransportEvent::Connecting, WANTED]);
    assert!(rig.sockets.is_empty());
}

#[test]
fn a_token_that_expired_during_sleep_is_replaced_before_it_is_used() {
    let mut rig = with_token();
    rig.accept(ConnectResult { ping: 25, pong: true, ..expiring(60) });
    rig.sleep(seconds(600));
    rig.clear();
    rig.closed(1006);
    rig.wait(seconds(1));
    assert_eq!(rig.events[1..], [TransportEvent::Connecting, WANTED]);
}

#[test]
fn invalidated_state_never_turns_a_known_user_anonymous() {
    let mut rig = Rig::new();
    rig.token(None, Some("static"));
    rig.connect(ConnectResult::default());
    rig.subscribe("news");
    rig.stand("news", stream("e", 4));
    rig.clear();
    rig.closed(DisconnectCode::STATE_INVALIDATED.0);
    rig.wait(seconds(1));
    assert_eq!(rig.events[1..], [TransportEvent::Connecting, WANTED]);
    rig.token(None, Some("new"));
    rig.open();
    assert_eq!(rig.names(), ["connect new", "subscribe news"], "and the old place is void");
}

#[test]
fn the_connection_is_refreshed_when_its_time_is_up_and_only_once() {
    let mut rig = with_token();
    rig.accept(expiring(60));
    rig.clear();
    rig.wait(seconds(59));
    assert!(rig.events.is_empty());
    rig.wait(seconds(1));
    assert_eq!(rig.take_events(), [WANTED]);
    rig.token(None, Some("t2"));
    rig.token(None, Some("t2"));
    assert_eq!(rig.names(), ["refresh t2"]);
    let result = RefreshResult { expires: true, ttl: 30, ..RefreshResult::default() };
    rig.answer(rig.id_of(|r| matches!(r, Request::Refresh(_))), ReplyBody::Refresh(result));
    rig.wait(seconds(29));
    assert!(rig.events.is_empty());
    rig.wait(seconds(1));
    assert_eq!(rig.events, [WANTED]);
}

#[test]
fn a_refresh_without_a_token_or_an_answer_is_tried_again_between_5_and_10_seconds_later() {
    let mut rig = with_token();
    rig.accept(expiring(60));
    rig.wait(seconds(60));
    rig.clear();
    rig.token(None, None);
    rig.wait(seconds(5) - Duration::from_micros(1));
    assert!(rig.events.is_empty());
    rig.wait(seconds(5));
    assert_eq!(rig.take_events(), [WANTED]);
    rig.token(None, Some("t2"));
    rig.wait(seconds(4));
    rig.say(Reply::ping());
    rig.wait(seconds(5));
    assert!(rig.events.is_empty(), "5 seconds for the server, at least 5 more of patience");
    rig.wait(seconds(6));
    assert_eq!(rig.take_events(), [WANTED]);
}

#[test]
fn a_refresh_refused_for_good_ends_the_connection_for_good() {
    let mut rig = with_token();
    rig.accept(expiring(60));
    rig.wait(seconds(60));
    rig.token(None, Some("t2"));
    let id = rig.last_id();
    rig.clear();
    rig.say(Reply::error(id, ServerErrorCode::PERMISSION_DENIED));
    assert_eq!(disconnected(&rig.events[0]), Some((103, true)));
    assert_eq!(rig.sockets, [Socket::Close(1)]);
}

#[test]
fn a_refresh_with_a_token_that_is_expired_already_asks_for_another() {
    let mut rig = with_token();
    rig.accept(expiring(60));
    rig.wait(seconds(60));
    rig.token(None, Some("t2"));
    let id = rig.last_id();
    rig.clear();
    rig.say(Reply::error(id, ServerErrorCode::TOKEN_EXPIRED));
    rig.wait(seconds(10));
    assert_eq!(rig.events, [WANTED]);
}

#[test]
fn private_topics_are_subscribed_with_a_token_and_others_without() {
    let mut rig = Rig::connected();
    rig.subscribe("open");
    rig.subscribe("$secret");
    assert_eq!(rig.names(), ["subscribe open"]);
    assert_eq!(rig.events, [wanted("$secret")]);
    rig.token(Some("$secret"), Some("s1"));
    assert_eq!(rig.names(), ["subscribe open", "subscribe $secret s1"]);
    let mut rig = Rig::with(ClientConfig { topic_tokens: TopicTokens::Always, ..config() }, 1);
    rig.connect(ConnectResult::default());
    rig.subscribe("open");
    assert_eq!(rig.events, [wanted("open")]);
    let mut rig = Rig::with(ClientConfig { topic_tokens: TopicTokens::Never, ..config() }, 1);
    rig.connect(ConnectResult::default());
    rig.subscribe("$secret");
    assert_eq!(rig.names(), ["subscribe $secret"]);
}

#[test]
fn a_topic_token_that_arrives_while_disconnected_is_used_on_connect() {
    let mut rig = Rig::connected();
    rig.subscribe("$secret");
    rig.closed(1006);
    rig.token(Some("$secret"), Some("s1"));
    rig.wait(seconds(1));
    rig.clear();
    rig.open();
    assert_eq!(rig.names(), ["connect", "subscribe $secret s1"]);
}

#[test]
fn a_topic_without_a_token_is_tried_again_later() {
    let mut rig = Rig::connected();
    rig.subscribe("$secret");
    rig.clear();
    rig.token(Some("$secret"), None);
    let [TransportEvent::Unsubscribed { error: Some(error), terminal: false, .. }] =
        &rig.events[..]
    else {
        panic!()
    };
    assert_eq!(error.code, ErrorCode::TokenUnavailable);
    rig.clear();
    rig.wait(seconds(1));
    assert_eq!(rig.events, [wanted("$secret")]);
}

#[test]
fn an_expired_topic_token_is_replaced() {
    let mut rig = Rig::connected();
    rig.subscribe("$secret");
    rig.token(Some("$secret"), Some("s1"));
    let id = rig.last_id();
    rig.clear();
    rig.say(Reply::error(id, ServerErrorCode::TOKEN_EXPIRED));
    assert_eq!(unsubscribed(&rig.events[0]), Some(("$secret", 109, false)));
    rig.wait(seconds(1));
    assert_eq!(rig.events[1..], [wanted("$secret")]);
    rig.token(Some("$secret"), Some("s2"));
    assert_eq!(rig.names(), ["subscribe $secret s2"]);
}

#[test]
fn a_subscription_whose_token_expired_comes_back_with_a_new_one() {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.token(Some("news"), Some("s1"));
    rig.stand("news", stream("e", 7));
    rig.clear();
    rig.push_unsubscribe("news", UnsubscribeCode::EXPIRED);
    rig.wait(seconds(1));
    assert_eq!(rig.events[1..], [wanted("news")], "a token was used before, so one is needed");
    rig.token(Some("news"), Some("s2"));
    assert_eq!(rig.names(), ["subscribe news 7@e"], "and nothing is lost");
}

fn expiring_topic() -> Rig {
    let mut rig = Rig::connected();
    rig.subscribe("$s");
    rig.token(Some("$s"), Some("s1"));
    rig.stand("$s", SubscribeResult { expires: true, ttl: 60, ..stream("e", 1) });
    rig.clear();
    rig
}

#[test]
fn a_subscription_is_refreshed_when_its_time_is_up() {
    let mut rig = expiring_topic();
    rig.wait(seconds(60));
    assert_eq!(rig.take_events(), [wanted("$s")]);
    rig.token(Some("$s"), Some("s2"));
    assert_eq!(rig.names(), ["sub_refresh $s s2"]);
    let id = rig.last_id();
    rig.answer(id, ReplyBody::SubRefresh(SubRefreshResult { expires: true, ttl: 60 }));
    rig.wait(seconds(59));
    assert!(rig.events.is_empty());
    rig.wait(seconds(1));
    assert_eq!(rig.events, [wanted("$s")]);
    rig.closed(1006);
    rig.wait(seconds(1));
    rig.clear();
    rig.open();
    assert_eq!(rig.names(), ["connect", "subscribe $s 1@e"]);
    let Some(Request::Subscribe(request)) = &rig.frames[0][1].request else { panic!() };
    assert_eq!(request.token, "s2", "the refreshed token is kept");
}

#[test]
fn a_refresh_does_not_outlive_its_subscription() {
    let mut rig = expiring_topic();
    rig.wait(seconds(60));
    rig.token(Some("$s"), Some("s2"));
    let refresh = rig.last_id();
    rig.unsubscribe("$s");
    rig.answer(rig.unsubscribe_id("$s"), ReplyBody::Unsubscribe);
    rig.clear();
    rig.say(Reply::error(refresh, ServerErrorCode::PERMISSION_DENIED));
    rig.token(Some("$s"), Some("s3"));
    rig.wait(seconds(600));
    assert!(rig.events.is_empty() && rig.frames.is_empty());
}

#[test]
fn a_refused_topic_refresh_subscribes_anew_with_another_token() {
    let mut rig = expiring_topic();
    rig.wait(seconds(60));
    rig.token(Some("$s"), Some("s2"));
    let id = rig.last_id();
    rig.clear();
    rig.say(Reply::error(id, ServerErrorCode::PERMISSION_DENIED));
    rig.answer(rig.unsubscribe_id("$s"), ReplyBody::Unsubscribe);
    rig.wait(seconds(1));
    assert_eq!(rig.events, [wanted("$s")]);
    rig.token(Some("$s"), Some("s3"));
    assert_eq!(rig.names(), ["unsubscribe $s", "subscribe $s 1@e"]);
}

#[test]
fn a_terminal_refusal_drops_the_token_that_may_have_caused_it() {
    let mut rig = with_token();
    rig.say(Reply::error(1, ServerErrorCode::PERMISSION_DENIED));
    rig.closed(1000);
    rig.clear();
    rig.op(TransportOp::Retry);
    assert_eq!(rig.events, [TransportEvent::Connecting, WANTED]);
}

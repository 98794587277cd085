use core::time::Duration;

use motet_realtime::hub::Input;
use motet_realtime::message::{
    Command, ConnectRequest, Features, HistoryRequest, ReplyBody, Request, RpcRequest, SendRequest,
};
use motet_realtime::server::{ConnectionClaims, HubOptions, ServerSubscription};

use crate::world::{World, options, subscribe_to};

#[test]
fn anything_before_connect_closes_with_3501() {
    let mut world = World::new(options());
    for request in [
        Request::Subscribe(Box::new(subscribe_to("a"))),
        Request::Ping,
        Request::History(HistoryRequest::default()),
    ] {
        let session = world.open();
        world.send(session, Command::new(1, request));
        assert_eq!(world.closed.get(&session), Some(&3501));
    }
    let session = world.open();
    world.send(session, Command::pong());
    assert_eq!(world.closed.get(&session), Some(&3501), "a pong is no connect either");
}

#[test]
fn a_second_connect_a_ping_a_missing_id_and_garbage_close_with_3501() {
    let mut world = World::new(options());
    let connect = || Request::Connect(Box::default());
    for command in [
        Command::new(2, connect()),
        Command::new(2, Request::Ping),
        Command::new(0, Request::Subscribe(Box::new(subscribe_to("a")))),
        Command { id: 3, request: None },
    ] {
        let session = world.client();
        world.send(session, command);
        assert_eq!(world.closed.get(&session), Some(&3501));
    }
    let session = world.client();
    world.input(Input::Malformed(session));
    assert_eq!(world.closed.get(&session), Some(&3501));
}

#[test]
fn a_connection_that_never_connects_is_stale_after_ten_seconds() {
    let mut world = World::new(options());
    let session = world.open();
    world.pass(Duration::from_millis(9_999));
    assert!(world.closed.is_empty());
    world.pass(Duration::from_millis(1));
    assert_eq!(world.closed.get(&session), Some(&3502));
}

#[test]
fn the_connect_reply_names_client_ping_and_pong() {
    let mut world = World::new(options());
    let (_, result) = world.client_result(ConnectRequest::default());
    assert_eq!(result.client.len(), 36);
    assert_eq!(result.client.as_bytes()[14], b'4', "a random UUID");
    assert_eq!((result.ping, result.pong, result.expires), (25, true, false));
    assert_eq!(result.motet, None, "who does not ask for the extension does not get it");
    let request = ConnectRequest { motet: Some(Features::ALL), ..ConnectRequest::default() };
    assert_eq!(world.client_result(request).1.motet, Some(Features::ALL));
}

#[test]
fn pings_come_every_25_seconds_and_a_missing_pong_closes_with_3012() {
    let mut world = World::new(options());
    let session = world.client();
    world.inbox(session);
    world.pass(Duration::from_millis(12_499));
    assert!(world.inbox(session).is_empty(), "the first ping is at least half an interval away");
    world.pass_to_next_timer();
    assert!(world.now < motet_protocol::Instant::ZERO + Duration::from_secs(25));
    let pings = world.inbox(session);
    assert!(pings.len() == 1 && pings[0].is_ping(), "{pings:?}");
    world.send(session, Command::pong());
    assert!(world.closed.is_empty());
    world.pass(Duration::from_secs(25));
    assert_eq!(world.inbox(session).len(), 1);
    world.pass(Duration::from_secs(8));
    assert_eq!(world.closed.get(&session), Some(&3012));
}

#[test]
fn a_connection_pinged_by_frames_is_told_of_no_pings_and_judged_by_its_pong_frames() {
    let mut world = World::new(options());
    let session = world.open();
    world.input(Input::FramePings(session));
    world.send(session, Command::new(1, Request::Connect(Box::default())));
    let replies = world.inbox(session);
    let ReplyBody::Connect(result) = &replies[0].body else { panic!("{replies:?}") };
    assert_eq!((result.ping, result.pong), (0, false));
    world.input(Input::FramePong(session));
    world.pass_to_next_timer();
    assert_eq!(world.frame_pings, [session], "an unasked pong before it is no offence");
    world.input(Input::FramePong(session));
    world.pass(Duration::from_secs(25));
    assert_eq!(world.frame_pings, [session, session]);
    assert!(world.inbox(session).is_empty() && world.closed.is_empty());
    world.pass(Duration::from_secs(8));
    assert_eq!(world.closed.get(&session), Some(&3012));
}

#[test]
fn an_unsolicited_pong_closes_with_3501() {
    let mut world = World::new(options());
    let session = world.client();
    world.pass_to_next_timer();
    world.send(session, Command::pong());
    assert!(world.closed.is_empty());
    world.send(session, Command::pong());
    assert_eq!(world.closed.get(&session), Some(&3501));
}

#[test]
fn a_server_without_anonymous_access_answers_101_to_a_connect_without_token() {
    let mut world =
        World::new(HubOptions { allow_anonymous_connect_without_token: false, ..options() });
    let session = world.open();
    assert_eq!(world.error(session, Request::Connect(Box::default())), 101);
    world.send(session, Command::new(9, Request::Connect(Box::default())));
    assert_eq!(world.closed.get(&session), Some(&3501), "a refused connection is of no more use");
}

#[test]
fn tokens_are_refused_with_3500_and_expired_ones_with_109() {
    let mut world = World::new(options());
    world.expired_token("old");
    let session = world.open();
    let connect = |token: &str| {
        let token = token.to_owned();
        Request::Connect(Box::new(ConnectRequest { token, ..ConnectRequest::default() }))
    };
    assert_eq!(world.error(session, connect("old")), 109);
    let session = world.open();
    world.send(session, Command::new(1, connect("forged")));
    assert_eq!(world.closed.get(&session), Some(&3500));
}

#[test]
fn commands_sent_right_behind_connect_are_answered_in_order() {
    let mut world = World::new(options());
    let session = world.open();
    world.send(session, Command::new(1, Request::Connect(Box::default())));
    world.send(session, Command::new(2, Request::Subscribe(Box::new(subscribe_to("a")))));
    world.send(session, Command::new(3, Request::Subscribe(Box::new(subscribe_to("b")))));
    let ids: Vec<_> = world.inbox(session).iter().map(|reply| reply.id).collect();
    assert_eq!(ids, [1, 2, 3]);
}

#[test]
fn send_closes_with_3508_and_rpc_answers_108() {
    let mut world = World::new(options());
    let session = world.client();
    let rpc = Request::Rpc(RpcRequest { data: 1, method: "m".to_owned() });
    assert_eq!(world.error(session, rpc), 108);
    world.send(session, Command::new(0, Request::Send(SendRequest { data: 1 })));
    assert_eq!(world.closed.get(&session), Some(&3508));
}

#[test]
fn server_side_subscriptions_come_with_the_connect_reply_and_recover() {
    let mut world = World::new(options());
    let publisher = world.client();
    world.publish(publisher, "news", 1);
    let mut claims = ConnectionClaims::user("42");
    let sub = ServerSubscription { data: Some(7), ..ServerSubscription::default() };
    claims.subs.insert("news".to_owned(), sub);
    world.connection_token("t", claims);
    let request = || ConnectRequest { token: "t".to_owned(), ..ConnectRequest::default() };
    let (session, result) = world.client_result(request());
    let news = &result.subs["news"];
    assert_eq!((news.offset, news.recoverable, news.data), (1, true, Some(7)));
    world.publish(publisher, "news", 2);
    assert_eq!(world.pushed(session).len(), 1);
    world.input(Input::Closed(session));
    world.publish(publisher, "news", 3);
    let mut again = request();
    let mut recover = subscribe_to("");
    (recover.recover, recover.offset, recover.epoch) = (true, 2, news.epoch.clone());
    again.subs.insert("news".to_owned(), recover);
    let (_, result) = world.client_result(again);
    let news = &result.subs["news"];
    assert!(news.recovered);
    assert_eq!(news.publications.iter().map(|p| p.data).collect::<Vec<_>>(), [3]);
}

#[test]
fn a_token_for_an_unknown_namespace_is_answered_with_102() {
    let mut world = World::new(options());
    let mut claims = ConnectionClaims::user("42");
    claims.subs.insert("nowhere:a".to_owned(), ServerSubscription::default());
    claims.subs.insert("a".to_owned(), ServerSubscription::default());
    world.connection_token("t", claims);
    let request = ConnectRequest { token: "t".to_owned(), ..ConnectRequest::default() };
    let (_, body) = world.connect_with(request);
    assert!(matches!(body, ReplyBody::Error(error) if error.code.0 == 102));
    assert_eq!(world.presence_count("a"), 0, "nothing of the refused connect stays");
}

#[test]
fn connections_per_user_are_limited_with_3504() {
    let mut world = World::new(HubOptions { user_connection_limit: 1, ..options() });
    let first = world.user("42");
    world.connection_token("second", ConnectionClaims::user("42"));
    let session = world.open();
    let token = "second".to_owned();
    let connect = Request::Connect(Box::new(ConnectRequest { token, ..ConnectRequest::default() }));
    world.send(session, Command::new(1, connect));
    assert_eq!(world.closed.get(&session), Some(&3504));
    assert!(!world.closed.contains_key(&first));
}

#[test]
fn shutdown_closes_everybody_with_3001_and_takes_nobody_new() {
    let mut world = World::new(options());
    let session = world.client();
    world.input(Input::Shutdown);
    assert_eq!(world.closed.get(&session), Some(&3001));
    let late = world.open();
    assert_eq!(world.closed.get(&late), Some(&3001));
}

#[test]
fn the_personal_channel_is_subscribed_for_signed_in_users_only() {
    let namespace = Some("small".to_owned());
    let mut world = World::new(HubOptions { personal_channel_namespace: namespace, ..options() });
    world.user("42");
    world.client();
    assert_eq!(world.presence_count("small:#42"), 1);
    assert_eq!(world.presence_count("small:#"), 0);
}

use core::time::Duration;

use motet_realtime::hub::SessionId;
use motet_realtime::message::{
    Command, ConnectRequest, PushEvent, RefreshRequest, ReplyBody, Request, SubRefreshRequest,
    SubscribeRequest,
};
use motet_realtime::server::{
    ConnectionClaims, HubOptions, ServerSubscription, SubscriptionClaims, SubscriptionOverride,
};

use crate::world::{World, options, subscribe_to};

const MINUTE: Duration = Duration::from_secs(60);

fn quiet() -> HubOptions {
    HubOptions { ping_interval: Duration::ZERO, ..options() }
}

fn expiring(user: &str) -> ConnectionClaims<u64> {
    ConnectionClaims { expires_in: Some(MINUTE), ..ConnectionClaims::user(user) }
}

fn connect(world: &mut World, claims: ConnectionClaims<u64>) -> SessionId {
    world.connection_token("connect", claims);
    let token = "connect".to_owned();
    let (session, result) =
        world.client_result(ConnectRequest { token, ..ConnectRequest::default() });
    assert_eq!((result.expires, result.ttl), (true, 60));
    session
}

fn refresh(token: &str) -> Request<u64> {
    Request::Refresh(RefreshRequest { token: token.to_owned() })
}

#[test]
fn an_expired_connection_has_25_seconds_to_refresh_then_3005() {
    let mut world = World::new(quiet());
    let session = connect(&mut world, expiring("42"));
    world.pass(MINUTE + Duration::from_secs(24));
    world.connection_token("fresh", expiring("42"));
    let ReplyBody::Refresh(result) = world.ask(session, refresh("fresh")) else {
        panic!("a refresh")
    };
    assert_eq!((result.expires, result.ttl), (true, 60));
    world.pass(MINUTE + Duration::from_secs(24));
    assert!(world.closed.is_empty());
    world.pass(Duration::from_secs(1));
    assert_eq!(world.closed.get(&session), Some(&3005));
}

#[test]
fn each_bad_refresh_closes_with_its_code() {
    let mut with_channel = expiring("42");
    with_channel.subs.insert("news".to_owned(), ServerSubscription::default());
    for (token, code) in
        [("", 3501), ("forged", 3500), ("old", 3005), ("other user", 3500), ("channels", 3010)]
    {
        let mut world = World::new(quiet());
        world.expired_token("old");
        world.connection_token("other user", expiring("43"));
        world.connection_token("channels", with_channel.clone());
        let session = connect(&mut world, expiring("42"));
        world.send(session, Command::new(9, refresh(token)));
        assert_eq!(world.closed.get(&session), Some(&code), "{token}");
    }
}

fn subscription(user: &str) -> SubscriptionClaims<u64> {
    SubscriptionClaims {
        user: user.to_owned(),
        channel: "$a".to_owned(),
        client: None,
        expires_in: Some(MINUTE),
        info: None,
        overrides: SubscriptionOverride::default(),
    }
}

fn sub_refresh(channel: &str, token: &str) -> Request<u64> {
    Request::SubRefresh(SubRefreshRequest {
        channel: channel.to_owned(),
        token: token.to_owned(),
        kind: 0,
    })
}

fn subscribed(world: &mut World) -> SessionId {
    world.subscription_token("sub", subscription("42"));
    let session = world.user("42");
    let request = SubscribeRequest { token: "sub".to_owned(), ..subscribe_to("$a") };
    let result = world.subscribe_with(session, request);
    assert_eq!((result.expires, result.ttl), (true, 60));
    session
}

#[test]
fn an_expired_subscription_has_25_seconds_to_refresh_then_2501() {
    let mut world = World::new(quiet());
    let session = subscribed(&mut world);
    world.pass(MINUTE + Duration::from_secs(20));
    let ReplyBody::SubRefresh(result) = world.ask(session, sub_refresh("$a", "sub")) else {
        panic!("a refresh")
    };
    assert_eq!((result.expires, result.ttl), (true, 60));
    world.pass(MINUTE + Duration::from_secs(25));
    let unsubscribed = world.inbox(session).into_iter().any(|reply| match reply.body {
        ReplyBody::Push(push) => {
            matches!(push.event, PushEvent::Unsubscribe(end) if end.code.0 == 2501)
        }
        _ => false,
    });
    assert!(unsubscribed && world.closed.is_empty());
    assert_eq!(world.error(session, sub_refresh("$a", "sub")), 103, "not subscribed any more");
}

#[test]
fn each_bad_subscription_refresh_closes_with_its_code() {
    for (channel, token, code) in [
        ("", "sub", 3501),
        ("$a", "", 3501),
        ("$a", "forged", 3500),
        ("$a", "other", 3500),
        ("$a", "old", 3006),
    ] {
        let mut world = World::new(quiet());
        world.expired_token("old");
        world.subscription_token("other", subscription("43"));
        let session = subscribed(&mut world);
        world.send(session, Command::new(99, sub_refresh(channel, token)));
        assert_eq!(world.closed.get(&session), Some(&code), "{channel} {token}");
    }
}

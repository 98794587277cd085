use bytes::Bytes;

use motet_protocol::ErrorCode;
use motet_protocol::transport::{TransportEvent, TransportOp};
use motet_realtime::client::ClientConfig;
use motet_realtime::codec::Encoding;
use motet_realtime::server::{
    ConnectionClaims, HubOptions, SubscriptionClaims, SubscriptionOverride, TokenClaims, TokenError,
};

use super::world::{Event, World, options, seconds};

fn signed_in(history: usize) -> HubOptions {
    HubOptions { allow_anonymous_connect_without_token: false, ..options(history) }
}

fn connection(expires_in_s: u64) -> Result<TokenClaims<Bytes>, TokenError> {
    let claims =
        ConnectionClaims { expires_in: Some(seconds(expires_in_s)), ..ConnectionClaims::user("u") };
    Ok(TokenClaims::Connection(Box::new(claims)))
}

fn subscription(expires_in_s: u64) -> Result<TokenClaims<Bytes>, TokenError> {
    Ok(TokenClaims::Subscription(Box::new(SubscriptionClaims {
        user: "u".into(),
        channel: "$news".into(),
        client: None,
        expires_in: Some(seconds(expires_in_s)),
        info: None,
        overrides: SubscriptionOverride::default(),
    })))
}

fn config() -> ClientConfig<Bytes> {
    ClientConfig { token_needed: true, ..ClientConfig::new("test".into(), "1".into()) }
}

/// Lets time pass; the application answers each wish for a token with the next of these.
fn run_answering(world: &mut World, peer: usize, tokens: &mut Vec<Option<&str>>, until_s: u64) {
    for _ in 0..until_s * 10 {
        world.run(core::time::Duration::from_millis(100));
        while let Some(event) = world.peers[peer].events.get(world.peers[peer].answered).cloned() {
            world.peers[peer].answered += 1;
            if let Event::TokenWanted { topic } = event {
                let token = if tokens.is_empty() { None } else { tokens.remove(0) };
                world.op(peer, TransportOp::Token { topic, token: token.map(Into::into) });
            }
        }
    }
}

fn open(world: &mut World) -> usize {
    let peer = world.add_peer(config());
    world.run(seconds(1));
    peer
}

#[test]
fn a_connection_lives_on_refreshed_tokens() {
    let mut world = World::new(signed_in(100), Encoding::Json, 1);
    for token in ["t1", "t2", "t3", "t4"] {
        world.token(token, connection(60));
    }
    let peer = open(&mut world);
    world.op(peer, TransportOp::Open);
    world.subscribe(peer, "news", None);
    run_answering(&mut world, peer, &mut vec![Some("t1"), Some("t2"), Some("t3"), Some("t4")], 200);
    world.publish("news", 1);
    world.run(seconds(1));
    assert_eq!(world.peers[peer].sockets, 1);
    assert!(world.peers[peer].disconnects().is_empty());
    assert_eq!(world.peers[peer].received("news"), [1]);
}

#[test]
fn a_connection_whose_application_has_no_token_expires_and_comes_back_with_one() {
    let mut world = World::new(signed_in(100), Encoding::Protobuf, 1);
    world.token("t1", connection(60));
    world.token("t2", connection(600));
    let peer = open(&mut world);
    world.op(peer, TransportOp::Open);
    world.subscribe(peer, "news", None);
    // Asked again every 5 to 10 seconds through the 25 seconds of the server's patience.
    run_answering(&mut world, peer, &mut vec![Some("t1")], 88);
    assert_eq!(world.peers[peer].disconnects().first(), Some(&3005));
    world.publish("news", 1);
    run_answering(&mut world, peer, &mut vec![Some("t2")], 60);
    assert_eq!(world.peers[peer].received("news"), [1]);
    assert_eq!(world.peers[peer].sockets, 2, "no attempt without a token");
}

#[test]
fn an_expired_token_at_connect_is_replaced() {
    let mut world = World::new(signed_in(100), Encoding::Json, 1);
    world.token("old", Err(TokenError::Expired));
    world.token("new", connection(60));
    let peer = open(&mut world);
    world.op(peer, TransportOp::Open);
    run_answering(&mut world, peer, &mut vec![Some("old"), Some("new")], 10);
    assert_eq!(world.peers[peer].disconnects(), [109]);
    let last = world.peers[peer].events.last();
    assert!(matches!(last, Some(TransportEvent::Connected(_))), "{last:?}");
}

#[test]
fn a_wrong_token_is_refused_for_good_until_there_is_another() {
    let mut world = World::new(signed_in(100), Encoding::Json, 1);
    world.token("good", connection(600));
    let peer = open(&mut world);
    world.op(peer, TransportOp::Open);
    run_answering(&mut world, peer, &mut vec![Some("forged")], 100);
    let Some(TransportEvent::Disconnected { error, terminal: true }) =
        world.peers[peer].events.last()
    else {
        panic!("{:?}", world.peers[peer].events)
    };
    assert_eq!((error.code, error.server_code), (ErrorCode::ConnectRejected, Some(3500)));
    world.op(peer, TransportOp::Token { topic: None, token: Some("good".into()) });
    world.run(seconds(1));
    let last = world.peers[peer].events.last();
    assert!(matches!(last, Some(TransportEvent::Connected(_))), "{last:?}");
}

#[test]
fn a_private_subscription_lives_on_refreshed_tokens_and_survives_an_expired_one() {
    let mut world = World::new(signed_in(100), Encoding::Json, 1);
    world.token("t", connection(100_000));
    for token in ["s1", "s2", "s3"] {
        world.token(token, subscription(60));
    }
    let peer = open(&mut world);
    world.op(peer, TransportOp::Open);
    world.subscribe(peer, "$news", None);
    let mut tokens = vec![Some("t"), Some("s1"), Some("s2")];
    run_answering(&mut world, peer, &mut tokens, 100);
    assert_eq!(world.peers[peer].recoveries("$news"), [false], "one subscription so far");
    // The application has none for longer than the server's patience, then has one again.
    run_answering(&mut world, peer, &mut tokens, 60);
    world.publish("$news", 1);
    run_answering(&mut world, peer, &mut vec![Some("s3")], 30);
    assert_eq!(world.peers[peer].recoveries("$news"), [false, true]);
    assert_eq!(world.peers[peer].received("$news"), [1]);
    assert_eq!(world.peers[peer].sockets, 1);
}

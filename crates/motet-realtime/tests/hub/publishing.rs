use core::time::Duration;

use motet_realtime::message::{
    Command, ConnectRequest, Features, PublishExtension, PublishRequest, ReplyBody, Request,
    TAG_MESSAGE_ID, TAG_TIMESTAMP_MS,
};
use motet_realtime::server::{Allow, ConnectionClaims, HubOptions, Namespace, Namespaces};

use crate::world::{World, open_namespace, options, publish_to};

fn keyed(channel: &str, data: u64, key: &str) -> Request<u64> {
    Request::Publish(PublishRequest {
        channel: channel.to_owned(),
        data,
        kind: 0,
        motet: Some(PublishExtension {
            key: Some(key.to_owned()),
            message_id: Some("m1".to_owned()),
            timestamp_ms: Some(5),
        }),
    })
}

#[test]
fn a_publication_reaches_every_subscriber_and_its_publisher_with_info_and_offset() {
    let mut world = World::new(options());
    let (first, second) = (world.user("1"), world.user("2"));
    world.subscribe(first, "a");
    world.subscribe(second, "a");
    world.publish(first, "a", 7);
    for session in [first, second] {
        let pushed = world.pushed(session);
        assert_eq!(pushed.len(), 1);
        assert_eq!((pushed[0].data, pushed[0].offset), (7, 1));
        assert_eq!(pushed[0].info.as_ref().map(|info| info.user.as_str()), Some("1"));
    }
}

#[test]
fn a_channel_without_history_numbers_nothing() {
    let mut world = World::new(options());
    let session = world.client();
    let result = world.subscribe(session, "plain:a");
    assert!(!result.positioned && result.epoch.is_empty());
    world.publish(session, "plain:a", 1);
    assert_eq!(world.pushed(session)[0].offset, 0);
}

#[test]
fn publishing_needs_the_right_and_a_subscriber_right_needs_a_subscription() {
    let guarded = Namespace {
        publish: Allow { subscriber: true, ..Allow::default() },
        ..open_namespace("guarded", 0)
    };
    let mut world = World::new(HubOptions {
        namespaces: Namespaces::new(open_namespace("", 0), [guarded]),
        ..options()
    });
    let session = world.client();
    assert_eq!(world.error(session, publish_to("guarded:a", 1)), 103);
    world.subscribe(session, "guarded:a");
    world.publish(session, "guarded:a", 1);
    assert_eq!(world.error(session, publish_to("nowhere:a", 1)), 102);
    assert_eq!(world.error(session, publish_to("a.*", 1)), 107, "a pattern is no channel");
    world.send(session, Command::new(9, publish_to("", 1)));
    assert_eq!(world.closed.get(&session), Some(&3501));
}

#[test]
fn an_insecure_server_lets_everybody_do_everything() {
    let namespaces = Namespaces::new(Namespace::default(), []);
    let mut world = World::new(HubOptions { insecure: true, namespaces, ..HubOptions::default() });
    let session = world.client();
    world.subscribe(session, "$private");
    world.publish(session, "$private", 1);
    assert_eq!(world.pushed(session).len(), 1);
}

#[test]
fn a_repeated_key_is_delivered_once_and_another_payload_under_it_is_refused() {
    let mut world = World::new(options());
    let session = world.client();
    world.subscribe(session, "a");
    for _ in 0..2 {
        assert!(matches!(world.ask(session, keyed("a", 1, "k")), ReplyBody::Publish));
    }
    let pushed = world.pushed(session);
    assert_eq!(pushed.len(), 1);
    assert_eq!(pushed[0].tags[TAG_MESSAGE_ID], "m1");
    assert_eq!(pushed[0].tags[TAG_TIMESTAMP_MS], "5");
    assert_eq!(world.error(session, keyed("a", 2, "k")), 5000);
    world.pass(Duration::from_secs(299));
    let again = world.client();
    assert!(matches!(world.ask(again, keyed("a", 1, "k")), ReplyBody::Publish));
    assert!(world.pushed(session).is_empty(), "the key outlives its connection");
}

#[test]
fn the_key_of_one_user_is_nothing_to_another() {
    let mut world = World::new(options());
    let anonymous = world.client();
    world.subscribe(anonymous, "a");
    assert!(matches!(world.ask(anonymous, keyed("a", 1, "k")), ReplyBody::Publish));
    let user = world.user("42");
    assert!(matches!(world.ask(user, keyed("a", 2, "k")), ReplyBody::Publish));
    assert_eq!(world.pushed(anonymous).len(), 2);
}

#[test]
fn a_user_and_a_key_are_never_taken_for_another_user_and_key() {
    let mut world = World::new(options());
    for (data, user, key) in [(1, "a", "b/c"), (2, "a/b", "c")] {
        world.connection_token(user, ConnectionClaims::user(user));
        let (token, motet) = (user.to_owned(), Some(Features::ALL));
        let (session, _) =
            world.client_result(ConnectRequest { token, motet, ..ConnectRequest::default() });
        assert!(matches!(world.ask(session, keyed("a", data, key)), ReplyBody::Publish), "{user}");
    }
}

#[test]
fn accepted_publications_are_reported_once() {
    let mut world = World::new(HubOptions { report_accepted: true, ..options() });
    let session = world.client();
    world.ask(session, keyed("a", 1, "k"));
    world.ask(session, keyed("a", 1, "k"));
    world.error(session, publish_to("closed:a", 2));
    assert_eq!(world.accepted, [("a".to_owned(), 1)]);
}

#[test]
fn a_publication_that_no_queue_can_take_is_refused_and_closes_nobody() {
    let mut world = World::new(HubOptions { publication_bytes_max: 450, ..options() });
    let session = world.client();
    world.subscribe(session, "a");
    assert_eq!(world.error(session, publish_to("a", 1)), 106);
    assert!(world.pushed(session).is_empty() && world.closed.is_empty());
    let mut world = World::new(HubOptions { publication_bytes_max: 600, ..options() });
    let session = world.client();
    world.subscribe(session, "a");
    world.publish(session, "a", 1);
    assert_eq!(world.pushed(session).len(), 1);
}

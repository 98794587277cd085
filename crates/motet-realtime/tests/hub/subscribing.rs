use motet_realtime::hub::Input;
use motet_realtime::message::{
    Command, PushEvent, Reply, ReplyBody, Request, SubscribeRequest, UnsubscribeRequest,
};
use motet_realtime::server::{
    HubOptions, Namespace, Namespaces, SubscriptionClaims, SubscriptionOverride,
};

use crate::world::{EVERYBODY, World, open_namespace, options, subscribe_to};

fn subscribe(request: SubscribeRequest<u64>) -> Request<u64> {
    Request::Subscribe(Box::new(request))
}

#[test]
fn each_refused_subscription_has_its_code() {
    let mut world = World::new(HubOptions { channel_limit: 2, ..options() });
    let session = world.client();
    let mut error = |request| world.error(session, subscribe(request));
    assert_eq!(error(subscribe_to(&"x".repeat(256))), 107, "too long");
    assert_eq!(error(subscribe_to("caf\u{e9}")), 107, "not ASCII");
    assert_eq!(error(subscribe_to("a*b")), 107, "a star is no part of a name");
    assert_eq!(error(subscribe_to("nowhere:a")), 102, "no such namespace");
    assert_eq!(error(subscribe_to("closed:a")), 103, "nothing is granted there");
    assert_eq!(error(subscribe_to("$a")), 103, "private without a token");
    assert_eq!(error(SubscribeRequest { kind: 1, ..subscribe_to("a") }), 103, "no map here");
    assert_eq!(error(SubscribeRequest { tags_filter: true, ..subscribe_to("a") }), 107);
    world.subscribe(session, "a");
    assert_eq!(world.error(session, subscribe(subscribe_to("a"))), 105);
    world.subscribe(session, "b");
    assert_eq!(world.error(session, subscribe(subscribe_to("c"))), 106);
}

#[test]
fn an_empty_channel_and_an_unknown_delta_format_close_with_3501() {
    for request in
        [subscribe_to(""), SubscribeRequest { delta: "zip".to_owned(), ..subscribe_to("a") }]
    {
        let mut world = World::new(options());
        let session = world.client();
        world.send(session, Command::new(5, subscribe(request)));
        assert_eq!(world.closed.get(&session), Some(&3501));
    }
}

#[test]
fn unsubscribe_ends_deliveries_and_of_an_unknown_channel_succeeds() {
    let mut world = World::new(options());
    let session = world.client();
    world.unsubscribe(session, "never");
    world.subscribe(session, "a");
    world.unsubscribe(session, "a");
    world.publish(session, "a", 1);
    assert!(world.pushed(session).is_empty());
    assert_eq!(world.presence_count("a"), 0);
    world.subscribe(session, "a");
}

#[test]
fn an_unsubscribe_right_behind_connect_and_subscribe_leaves_nothing_behind() {
    let mut world = World::new(options());
    let session = world.open();
    world.send(session, Command::new(1, Request::Connect(Box::default())));
    world.send(session, Command::new(2, subscribe(subscribe_to("a"))));
    let request = UnsubscribeRequest { channel: "a".to_owned() };
    world.send(session, Command::new(3, Request::Unsubscribe(request)));
    let bodies: Vec<_> = world.inbox(session).into_iter().map(|reply| reply.body).collect();
    assert!(matches!(
        bodies[..],
        [ReplyBody::Connect(_), ReplyBody::Subscribe(_), ReplyBody::Unsubscribe]
    ));
    assert_eq!(world.presence_count("a"), 0);
}

#[test]
fn presence_is_exact_through_ten_rounds_of_coming_and_going() {
    let mut world = World::new(options());
    for _ in 0..10 {
        let session = world.client();
        world.subscribe(session, "a");
        assert_eq!(world.presence_count("a"), 1);
        world.unsubscribe(session, "a");
        assert_eq!(world.presence_count("a"), 0);
        world.subscribe(session, "a");
        world.input(Input::Closed(session));
        assert_eq!(world.presence_count("a"), 0);
    }
}

#[test]
fn a_subscription_token_opens_its_channel_for_its_user_alone() {
    let mut world = World::new(options());
    let claims = |user: &str, channel: &str| SubscriptionClaims {
        user: user.to_owned(),
        channel: channel.to_owned(),
        client: None,
        expires_in: None,
        info: None,
        overrides: SubscriptionOverride::default(),
    };
    world.subscription_token("good", claims("42", "$secret"));
    world.subscription_token("foreign", claims("43", "$secret"));
    world.subscription_token("elsewhere", claims("42", "$other"));
    world.expired_token("old");
    let with =
        |token: &str| SubscribeRequest { token: token.to_owned(), ..subscribe_to("$secret") };
    let session = world.user("42");
    assert_eq!(world.error(session, subscribe(with("forged"))), 103);
    assert_eq!(world.error(session, subscribe(with("old"))), 109);
    world.subscribe_with(session, with("good"));
    for token in ["foreign", "elsewhere"] {
        let session = world.user("42");
        world.send(session, Command::new(9, subscribe(with(token))));
        assert_eq!(world.closed.get(&session), Some(&3500), "{token}");
    }
}

#[test]
fn joins_and_leaves_are_announced_to_those_who_listen_and_to_the_joiner() {
    let lobby =
        Namespace { join_leave: true, force_push_join_leave: true, ..open_namespace("lobby", 0) };
    let mut world = World::new(HubOptions {
        namespaces: Namespaces::new(open_namespace("", 0), [lobby]),
        ..options()
    });
    let (first, second) = (world.user("1"), world.user("2"));
    world.subscribe(first, "lobby:a");
    world.subscribe(second, "lobby:a");
    world.input(Input::Closed(second));
    let seen: Vec<_> = world
        .inbox(first)
        .into_iter()
        .filter_map(|reply| match reply.body {
            ReplyBody::Push(push) => match push.event {
                PushEvent::Join(info) => Some(("join", info.user)),
                PushEvent::Leave(info) => Some(("leave", info.user)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    let expected = [("join", "1"), ("join", "2"), ("leave", "2")];
    assert_eq!(seen, expected.map(|(kind, user)| (kind, user.to_owned())));
}

#[test]
fn a_user_limited_channel_opens_for_its_users() {
    let dialogs = Namespace {
        allow_user_limited_channels: true,
        subscribe: EVERYBODY,
        ..open_namespace("dialog", 0)
    };
    let mut world = World::new(HubOptions {
        namespaces: Namespaces::new(open_namespace("", 0), [dialogs]),
        ..options()
    });
    let (member, stranger) = (world.user("1"), world.user("3"));
    world.subscribe(member, "dialog:x#1,2");
    assert_eq!(world.error(stranger, subscribe(subscribe_to("dialog:x#1,2"))), 103);
}

#[test]
fn a_flood_of_commands_is_answered_with_111() {
    let mut world = World::new(HubOptions { commands_per_second_max: 3, ..options() });
    let session = world.client();
    world.subscribe(session, "a");
    world.subscribe(session, "b");
    assert_eq!(world.error(session, subscribe(subscribe_to("c"))), 111);
    world.pass(core::time::Duration::from_secs(1));
    world.subscribe(session, "c");
}

#[test]
fn a_subscription_whose_payloads_do_not_fit_ends_for_good_and_the_others_go_on() {
    let mut world = World::new(options());
    let session = world.client();
    for channel in ["a", "b"] {
        world.subscribe(session, channel);
    }
    world.input(Input::Unfit(session, "a".to_owned()));
    world.input(Input::Unfit(session, "a".to_owned()));
    let told = world.inbox(session);
    let [Reply { body: ReplyBody::Push(push), .. }] = &told[..] else { panic!("{told:?}") };
    let PushEvent::Unsubscribe(end) = &push.event else { panic!("{push:?}") };
    assert_eq!((push.channel.as_str(), end.code.0), ("a", 2000));
    assert!(end.reason.contains("Protobuf"), "{}", end.reason);
    assert_eq!((world.presence_count("a"), world.presence_count("b")), (0, 1));
    world.publish(session, "a", 1);
    world.publish(session, "b", 2);
    let heard: Vec<_> = world.pushed(session).iter().map(|p| p.data).collect();
    assert_eq!((heard, world.closed.len()), (vec![2], 0));
}

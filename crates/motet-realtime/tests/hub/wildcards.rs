use motet_realtime::message::{ConnectRequest, Request};

use crate::world::{World, options, subscribe_to};

#[test]
fn a_pattern_hears_its_channels_each_with_name_and_position() {
    let mut world = World::new(options());
    let session = world.client();
    world.subscribe(session, "chat.*");
    for channel in ["chat", "chat.a", "chat.a", "chat.b.c", "news.a"] {
        world.publish(session, channel, 1);
    }
    let heard: Vec<_> =
        world.pushed(session).into_iter().map(|p| (p.channel, p.offset, p.epoch.len())).collect();
    let expected = [("chat.a", 1, 8), ("chat.a", 2, 8), ("chat.b.c", 1, 8)];
    assert_eq!(heard, expected.map(|(channel, offset, epoch)| (channel.to_owned(), offset, epoch)));
}

#[test]
fn the_star_hears_every_channel_without_namespace() {
    let mut world = World::new(options());
    let session = world.client();
    world.subscribe(session, "*");
    for channel in ["a", "b.c", "small:a"] {
        world.publish(session, channel, 1);
    }
    assert_eq!(world.pushed(session).len(), 2);
    world.unsubscribe(session, "*");
    world.publish(session, "a", 1);
    assert!(world.pushed(session).is_empty());
}

#[test]
fn a_pattern_needs_the_extension_and_the_right_in_its_namespace() {
    let mut world = World::new(options());
    let (foreign, _) = world.client_result(ConnectRequest::default());
    let subscribe = |channel| Request::Subscribe(Box::new(subscribe_to(channel)));
    assert_eq!(world.error(foreign, subscribe("chat.*")), 107);
    let session = world.client();
    assert_eq!(world.error(session, subscribe("closed:chat.*")), 103);
}

use motet_realtime::message::{ConnectRequest, Request, SubscribeRequest, SubscribeResult};
use motet_realtime::server::{
    ConnectionClaims, HubOptions, Namespace, Namespaces, RecoveryMode, ServerSubscription,
};

use crate::world::{World, open_namespace, options, subscribe_to};

fn recover(channel: &str, epoch: &str, offset: u64) -> SubscribeRequest<u64> {
    SubscribeRequest { recover: true, epoch: epoch.to_owned(), offset, ..subscribe_to(channel) }
}

fn data(result: &SubscribeResult<u64>) -> Vec<u64> {
    result.publications.iter().map(|p| p.data).collect()
}

/// A world where `count` publications were made in a channel, and the stream's epoch.
fn published(channel: &str, count: u64) -> (World, String) {
    let mut world = World::new(options());
    let session = world.client();
    let epoch = world.subscribe(session, channel).epoch;
    for number in 1..=count {
        world.publish(session, channel, number);
    }
    (world, epoch)
}

#[test]
fn a_complete_gap_is_recovered_and_the_reply_names_the_requested_offset() {
    let (mut world, epoch) = published("a", 5);
    let session = world.client();
    let result = world.subscribe_with(session, recover("a", &epoch, 2));
    assert!(result.was_recovering && result.recovered && result.positioned);
    assert_eq!(result.offset, 2);
    assert_eq!(data(&result), [3, 4, 5]);
    world.publish(session, "a", 6);
    let pushed = world.pushed(session);
    assert_eq!(pushed.iter().map(|p| p.offset).collect::<Vec<_>>(), [6]);
}

#[test]
fn nothing_missed_is_recovered_with_nothing_and_an_empty_epoch_matches_any() {
    let (mut world, epoch) = published("a", 2);
    for epoch in [epoch.as_str(), ""] {
        let session = world.client();
        let result = world.subscribe_with(session, recover("a", epoch, 2));
        assert!(result.recovered && result.publications.is_empty());
    }
}

#[test]
fn more_than_the_history_holds_or_another_epoch_is_not_recovered() {
    let (mut world, epoch) = published("small:a", 5);
    let session = world.client();
    let result = world.subscribe_with(session, recover("small:a", &epoch, 1));
    assert!(result.was_recovering && !result.recovered && result.publications.is_empty());
    assert_eq!((result.offset, result.epoch), (5, epoch));
    let session = world.client();
    let result = world.subscribe_with(session, recover("small:a", "another", 5));
    assert!(result.was_recovering && !result.recovered);
}

#[test]
fn at_most_300_publications_are_recovered() {
    let (mut world, epoch) = published("a", 301);
    let session = world.client();
    assert!(world.subscribe_with(session, recover("a", &epoch, 1)).recovered);
    let session = world.client();
    assert!(!world.subscribe_with(session, recover("a", &epoch, 0)).recovered);
}

#[test]
fn flag_2_turns_a_failed_recovery_into_error_112() {
    let (mut world, epoch) = published("small:a", 5);
    let session = world.client();
    let strict = SubscribeRequest { flag: 3, ..recover("small:a", &epoch, 1) };
    let before = world.presence_count("small:a");
    assert_eq!(world.error(session, Request::Subscribe(Box::new(strict.clone()))), 112);
    assert_eq!(world.presence_count("small:a"), before);
    let fine = SubscribeRequest { offset: 3, ..strict };
    assert!(world.subscribe_with(session, fine).recovered);
}

#[test]
fn cache_mode_gives_the_newest_publication_only() {
    let cache = Namespace { recovery_mode: RecoveryMode::Cache, ..open_namespace("cache", 10) };
    let mut world = World::new(HubOptions {
        namespaces: Namespaces::new(open_namespace("", 0), [cache]),
        ..options()
    });
    let publisher = world.client();
    let result = world.subscribe_with(publisher, recover("cache:a", "", 0));
    assert!(result.was_recovering && !result.recovered, "there is nothing yet");
    for number in 1..=3 {
        world.publish(publisher, "cache:a", number);
    }
    let session = world.client();
    let result = world.subscribe_with(session, recover("cache:a", "", 0));
    assert!(result.recovered);
    assert_eq!((data(&result), result.offset), (vec![3], 3));
    let session = world.client();
    let known = world.subscribe_with(session, recover("cache:a", &result.epoch, 3));
    assert!(known.recovered && known.publications.is_empty(), "the client has it already");
}

#[test]
fn the_first_publication_of_a_stream_names_its_epoch() {
    let mut world = World::new(options());
    let session = world.client();
    let epoch = world.subscribe(session, "a").epoch;
    world.publish(session, "a", 1);
    world.publish(session, "a", 2);
    let epochs: Vec<_> = world.pushed(session).into_iter().map(|p| p.epoch).collect();
    assert_eq!(epochs, [epoch, String::new()]);
}

#[test]
fn a_gap_with_more_bytes_than_a_reply_may_have_is_not_recovered() {
    let mut world = World::new(HubOptions { recovery_bytes_max: 2_000, ..options() });
    let publisher = world.client();
    let epoch = world.subscribe(publisher, "a").epoch;
    for number in 1..=20 {
        world.publish(publisher, "a", number);
    }
    let session = world.client();
    let result = world.subscribe_with(session, recover("a", &epoch, 2));
    assert!(result.was_recovering && !result.recovered && result.publications.is_empty());
    assert_eq!((result.offset, &result.epoch), (20, &epoch));
    let session = world.client();
    let result = world.subscribe_with(session, recover("a", &epoch, 17));
    assert!(result.recovered);
    assert_eq!(data(&result), [18, 19, 20]);
    let strict = SubscribeRequest { flag: 3, ..recover("a", &epoch, 2) };
    let session = world.client();
    assert_eq!(world.error(session, Request::Subscribe(Box::new(strict))), 112);
}

#[test]
fn the_recoveries_of_one_connect_reply_share_its_bytes() {
    let mut world = World::new(HubOptions { recovery_bytes_max: 2_000, ..options() });
    let publisher = world.client();
    let mut request = ConnectRequest { token: "t".to_owned(), ..ConnectRequest::default() };
    let mut claims = ConnectionClaims::user("1");
    for channel in ["a", "b", "c"] {
        let epoch = world.subscribe(publisher, channel).epoch;
        for number in 1..=3 {
            world.publish(publisher, channel, number);
        }
        request.subs.insert(channel.to_owned(), recover(channel, &epoch, 0));
        claims.subs.insert(channel.to_owned(), ServerSubscription::default());
    }
    world.connection_token("t", claims);
    let (session, result) = world.client_result(request);
    let recovered: Vec<_> = result.subs.values().map(|sub| (sub.recovered, sub.offset)).collect();
    assert_eq!(recovered, [(true, 0), (false, 3), (false, 3)]);
    world.publish(publisher, "b", 4);
    assert_eq!(world.pushed(session).len(), 1, "and goes on at the top");
}

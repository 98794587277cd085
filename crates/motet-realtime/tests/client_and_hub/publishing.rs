use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use core::time::Duration;

use motet_protocol::transport::{HistoryRequest, PublishRequest, TransportEvent, TransportOp};
use motet_protocol::{CallId, ErrorCode};
use motet_realtime::codec::Encoding;

use super::world::{World, options, seconds};

fn publish(number: u64) -> TransportOp<Bytes> {
    TransportOp::Publish(PublishRequest {
        call: CallId::from_bits(number),
        topic: "news".into(),
        payload: Bytes::from(number.to_string()),
        idempotency_key: Some(format!("key {number}")),
        message_id: Some(format!("id {number}")),
        timestamp_ms: Some(i64::try_from(number).expect("a small number")),
        remaining: seconds(10),
    })
}

fn outcomes(world: &World, peer: usize) -> BTreeMap<u64, Result<(), ErrorCode>> {
    let mut outcomes = BTreeMap::new();
    for event in &world.peers[peer].events {
        if let TransportEvent::Published { call, result } = event {
            let result = result.clone().map_err(|error| error.code);
            let earlier = outcomes.insert(call.bits(), result);
            assert_eq!(earlier, None, "settled twice: {}", call.bits());
        }
    }
    outcomes
}

#[test]
fn each_publication_settles_once_and_truthfully() {
    let mut unknown = 0;
    for seed in 0..24 {
        let mut world = World::new(options(10_000), Encoding::Json, seed);
        let peer = world.open_peer();
        for number in 1..=300 {
            world.op(peer, publish(number));
            if world.rng.below(15) == 0 {
                world.cut(peer);
            }
            let pause = Duration::from_millis(world.rng.below(40));
            world.run(pause);
        }
        world.run(seconds(60));
        let kept: BTreeSet<_> = world.history("news").into_iter().collect();
        let outcomes = outcomes(&world, peer);
        assert_eq!(outcomes.len(), 300, "seed {seed}: each settles");
        for (number, outcome) in outcomes {
            match outcome {
                Ok(()) => assert!(kept.contains(&number), "seed {seed}: {number} was acknowledged"),
                Err(ErrorCode::TransportUnavailable) => {
                    assert!(!kept.contains(&number), "seed {seed}: {number} was never written");
                }
                Err(ErrorCode::OutcomeUnknown) => unknown += 1,
                Err(other) => panic!("seed {seed}: {number} {other:?}"),
            }
        }
    }
    assert!(unknown > 0, "some were cut off in flight");
}

#[test]
fn with_an_idempotency_key_sending_again_is_safe() {
    for seed in 0..12 {
        let mut world = World::new(options(10_000), Encoding::Protobuf, seed);
        let peer = world.open_peer();
        let mut open: BTreeSet<u64> = (1..=100).collect();
        while !open.is_empty() {
            for number in &open {
                world.op(peer, publish(*number));
            }
            let until_cut = Duration::from_millis(world.rng.below(120));
            world.run(until_cut);
            world.cut(peer);
            world.run(seconds(40));
            open.retain(|number| outcomes(&world, peer).get(number) != Some(&Ok(())));
            world.peers[peer].events.clear();
        }
        let mut kept = world.history("news");
        kept.sort_unstable();
        assert!(kept.into_iter().eq(1..=100), "seed {seed}: each exactly once");
    }
}

#[test]
fn a_key_that_is_used_again_with_another_payload_is_told_by_its_own_code() {
    let mut world = World::new(options(10), Encoding::Json, 1);
    let peer = world.open_peer();
    world.run(seconds(1));
    for number in [1, 2] {
        let TransportOp::Publish(mut request) = publish(number) else { panic!("a publication") };
        request.idempotency_key = Some("key".to_owned());
        world.op(peer, TransportOp::Publish(request));
    }
    world.run(seconds(1));
    let outcomes = outcomes(&world, peer);
    assert_eq!(outcomes[&1], Ok(()));
    assert_eq!(outcomes[&2], Err(ErrorCode::IdempotencyKeyReused));
}

#[test]
fn ids_and_times_of_the_application_reach_the_subscribers() {
    let mut world = World::new(options(10), Encoding::Json, 1);
    let (publisher, subscriber) = (world.open_peer(), world.open_peer());
    world.subscribe(subscriber, "news", None);
    world.run(seconds(1));
    world.op(publisher, publish(42));
    world.run(seconds(1));
    let Some(TransportEvent::Publication { publication, .. }) =
        world.peers[subscriber].events.last()
    else {
        panic!("{:?}", world.peers[subscriber].events)
    };
    assert_eq!(publication.message_id.as_deref(), Some("id 42"));
    assert_eq!(publication.timestamp_ms, Some(42));
    assert_eq!(publication.offset, 1);
}

#[test]
fn history_comes_in_pages_in_both_directions() {
    let mut world = World::new(options(100), Encoding::Json, 1);
    let peer = world.open_peer();
    for number in 1..=10 {
        world.publish("news", number);
    }
    world.run(seconds(1));
    let mut ask = |call, since, reverse| {
        world.op(
            peer,
            TransportOp::History(HistoryRequest {
                call: CallId::from_bits(call),
                topic: "news".into(),
                since,
                limit: 3,
                reverse,
            }),
        );
        world.run(seconds(1));
        match world.peers[peer].events.last() {
            Some(TransportEvent::History { result: Ok(page), .. }) => page.clone(),
            other => panic!("{other:?}"),
        }
    };
    let newest = ask(1, None, true);
    assert_eq!(newest.position.offset, 10);
    assert!(newest.publications.iter().map(|p| p.offset).eq([10, 9, 8]));
    let mut since = newest.position;
    since.offset = 4;
    let page = ask(2, Some(since), false);
    assert!(page.publications.iter().map(|p| p.offset).eq([5, 6, 7]));
}

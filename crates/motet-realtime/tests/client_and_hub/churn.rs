use std::collections::BTreeSet;

use core::time::Duration;

use motet_protocol::transport::{TransportEvent, TransportOp};
use motet_realtime::codec::Encoding;

use super::world::{World, options, seconds};

/// Random subscribes, unsubscribes, cuts, closes and opens; afterwards exactly what is wanted is
/// subscribed, and each unsubscribe was answered.
#[test]
fn whatever_the_order_of_events_the_last_wish_counts() {
    for seed in 0..40 {
        let mut world = World::new(options(100), Encoding::Json, seed);
        let peer = world.open_peer();
        let topics = ["a", "b", "c"];
        let mut wanted = BTreeSet::new();
        for _ in 0..200 {
            let topic = topics[usize::try_from(world.rng.below(3)).unwrap()];
            match world.rng.below(12) {
                0..5 => {
                    wanted.insert(topic);
                    world.subscribe(peer, topic, None);
                }
                5..10 => {
                    wanted.remove(topic);
                    world.op(peer, TransportOp::Unsubscribe { topic: topic.to_owned() });
                }
                10 => world.cut(peer),
                _ if world.rng.below(4) == 0 => {
                    world.op(peer, TransportOp::Close);
                    wanted.clear();
                    world.op(peer, TransportOp::Open);
                }
                _ => world.op(peer, TransportOp::Nudge),
            }
            let pause = Duration::from_millis(world.rng.below(60));
            world.run(pause);
        }
        world.run(seconds(60));
        world.peers[peer].events.clear();
        for topic in topics {
            world.publish(topic, 7);
        }
        world.run(seconds(1));
        let events = &world.peers[peer].events;
        let heard: BTreeSet<_> = events
            .iter()
            .map(|event| match event {
                TransportEvent::Publication { topic, .. } => topic.as_str(),
                other => panic!("seed {seed}: {other:?}"),
            })
            .collect();
        assert_eq!(heard, wanted, "seed {seed}");
    }
}

#[test]
fn a_thousand_topics_are_back_after_a_restart_in_a_few_frames() {
    let mut world = World::new(options(10), Encoding::Json, 1);
    let peer = world.open_peer();
    let topics: Vec<_> = (0..1_000).map(|i| format!("topic-with-a-long-name-{i:0>60}")).collect();
    for topic in &topics {
        world.subscribe(peer, topic, None);
    }
    world.run(seconds(2));
    world.crash();
    world.restart(true);
    for (number, topic) in (1..).zip(&topics) {
        world.publish(topic, number);
    }
    world.run(seconds(20));
    for (number, topic) in (1..).zip(&topics) {
        assert_eq!(world.peers[peer].received(topic), [number]);
        assert_eq!(world.peers[peer].recoveries(topic), [false, true]);
    }
    assert_eq!(world.peers[peer].sockets, 2);
}

#[test]
fn clients_that_a_restart_cut_off_do_not_come_back_all_at_once() {
    let mut world = World::new(options(10), Encoding::Protobuf, 1);
    let peers: Vec<_> = (0..50).map(|_| world.open_peer()).collect();
    world.run(seconds(10));
    world.crash();
    let mut attempts = Vec::new();
    for _ in 0..30 {
        world.run(seconds(1));
        attempts.push(peers.iter().map(|peer| world.peers[*peer].sockets).sum::<u32>());
    }
    let total = attempts.last().unwrap();
    assert!(*total < 50 * 15, "{total} attempts of 50 clients in 30 seconds: {attempts:?}");
    world.restart(true);
    world.run(seconds(31));
    for peer in peers {
        let last = world.peers[peer].events.last();
        assert!(matches!(last, Some(TransportEvent::Connected(_))), "{last:?}");
    }
}

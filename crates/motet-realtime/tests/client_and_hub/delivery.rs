use motet_protocol::transport::TransportEvent;
use motet_realtime::codec::Encoding;
use motet_realtime::hub::Input;

use super::world::{World, options, seconds};

#[test]
fn nothing_is_lost_or_repeated_however_often_the_link_breaks() {
    for seed in 0..24 {
        let encoding = if seed % 2 == 0 { Encoding::Json } else { Encoding::Protobuf };
        let mut world = World::new(options(1_000), encoding, seed);
        let peers = [world.open_peer(), world.open_peer()];
        for peer in peers {
            world.subscribe(peer, "news", None);
        }
        world.run(seconds(1));
        for number in 1..=600 {
            world.publish("news", number);
            if world.rng.below(20) == 0 {
                world.cut(peers[usize::from(number % 2 == 0)]);
            }
            let pause = core::time::Duration::from_millis(world.rng.below(30));
            world.run(pause);
        }
        world.run(seconds(60));
        for peer in peers {
            let received = world.peers[peer].received("news");
            assert!(received.iter().copied().eq(1..=600), "seed {seed}: {received:?}");
            assert!(world.peers[peer].disconnects().len() >= 2, "seed {seed}");
        }
    }
}

#[test]
fn a_restart_that_keeps_its_streams_loses_nothing() {
    let mut world = World::new(options(1_000), Encoding::Json, 1);
    let peer = world.open_peer();
    world.subscribe(peer, "news", None);
    world.run(seconds(1));
    for number in 1..=100 {
        world.publish("news", number);
    }
    world.crash();
    world.run(seconds(5));
    world.restart(true);
    for number in 101..=200 {
        world.publish("news", number);
    }
    world.run(seconds(60));
    assert!(world.peers[peer].received("news").into_iter().eq(1..=200));
    assert_eq!(world.peers[peer].recoveries("news"), [false, true]);
}

#[test]
fn a_restart_that_forgets_its_streams_is_told() {
    let mut world = World::new(options(1_000), Encoding::Protobuf, 1);
    let peer = world.open_peer();
    world.subscribe(peer, "news", None);
    world.run(seconds(1));
    world.publish("news", 1);
    world.run(seconds(1));
    world.crash();
    world.restart(false);
    world.run(seconds(60));
    world.publish("news", 2);
    world.run(seconds(1));
    let peer = &world.peers[peer];
    assert_eq!(peer.recoveries("news"), [false, false]);
    assert_eq!(peer.received("news"), [1, 2]);
    let epochs = peer.events.iter().filter_map(|event| match event {
        TransportEvent::Subscribed { position, .. } => Some(position.clone().unwrap().epoch),
        _ => None,
    });
    let epochs: Vec<_> = epochs.collect();
    assert_ne!(epochs[0], epochs[1]);
}

#[test]
fn a_gap_beyond_the_history_is_told_and_not_papered_over() {
    let mut world = World::new(options(5), Encoding::Json, 1);
    let peer = world.open_peer();
    world.subscribe(peer, "news", None);
    world.run(seconds(1));
    world.publish("news", 1);
    world.run(seconds(1));
    world.cut(peer);
    for number in 2..=20 {
        world.publish("news", number);
    }
    world.run(seconds(5));
    world.publish("news", 21);
    world.run(seconds(1));
    assert_eq!(world.peers[peer].recoveries("news"), [false, false]);
    assert_eq!(world.peers[peer].received("news"), [1, 21]);
}

#[test]
fn a_peer_that_slept_comes_back_with_everything() {
    for minutes in [1, 10] {
        let mut world = World::new(options(1_000), Encoding::Json, 3);
        let peer = world.open_peer();
        world.subscribe(peer, "news", None);
        world.run(seconds(1));
        world.sleep(peer);
        for number in 1..=60 {
            world.publish("news", number);
            world.run(seconds(minutes));
        }
        world.wake(peer);
        world.run(seconds(10));
        let peer = &world.peers[peer];
        assert!(peer.received("news").into_iter().eq(1..=60), "{:?}", peer.received("news"));
        assert_eq!(peer.sockets, 2, "one reconnect: the server had missed its pong");
    }
}

#[test]
fn a_short_sleep_costs_no_connection() {
    let mut world = World::new(options(1_000), Encoding::Json, 3);
    let peer = world.open_peer();
    world.subscribe(peer, "news", None);
    world.run(seconds(1));
    for number in 1..=20 {
        world.sleep(peer);
        world.publish("news", number);
        world.run(seconds(7));
        world.wake(peer);
        world.run(seconds(60));
    }
    assert!(world.peers[peer].received("news").into_iter().eq(1..=20));
    assert_eq!(world.peers[peer].sockets, 1);
}

#[test]
fn a_server_that_stops_sends_its_clients_to_the_next_one() {
    let mut world = World::new(options(1_000), Encoding::Protobuf, 1);
    let peers: Vec<_> = (0..10).map(|_| world.open_peer()).collect();
    for peer in &peers {
        world.subscribe(*peer, "news", None);
    }
    world.run(seconds(1));
    world.publish("news", 1);
    world.hub_input(Input::Shutdown);
    world.restart(true);
    world.publish("news", 2);
    world.run(seconds(20));
    for peer in peers {
        assert_eq!(world.peers[peer].disconnects(), [3001]);
        assert_eq!(world.peers[peer].received("news"), [1, 2]);
    }
}

#[test]
fn an_idle_connection_stays_open_for_a_day() {
    let mut world = World::new(options(10), Encoding::Json, 1);
    let peer = world.open_peer();
    world.subscribe(peer, "news", None);
    world.run(seconds(86_400));
    assert_eq!(world.peers[peer].sockets, 1);
    assert!(world.peers[peer].disconnects().is_empty());
}

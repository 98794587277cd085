//! Rules of membership, ownership and handoff, each on its own.

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use motet_cluster::Packet;
use motet_cluster::frame::{
    Frame, GapReason, JoinFrame, MessageHead, PublishFrame, ToNode, ToPage,
};
use motet_cluster::node::NodeInput;
use motet_cluster::table::{Route, RouteState};
use motet_protocol::transport::TransportEvent;
use motet_protocol::{
    CallId, Error, ErrorCode, Fence, Generation, Position, RouteFence, StreamEpoch,
};
use world::{World, client, node};

fn at(offset: u64) -> Position {
    Position::new(StreamEpoch::new("epoch"), offset)
}

#[test]
fn the_first_node_governs_and_the_others_follow() {
    let world = World::new(5);
    assert_eq!(world.coordinator(), [1]);
}

#[test]
fn one_topic_of_twenty_nodes_needs_one_connection() {
    let mut world = World::new(20);
    (1..=20).for_each(|n| world.subscribe(n, "price"));
    assert_eq!(world.owner("price"), [1]);
    assert_eq!(world.connections.len(), 1);
    (1..=20).for_each(|n| world.page(n, ToNode::Unsubscribe { topics: vec!["price".into()] }));
    world.run();
    assert_eq!(world.owner("price"), [] as [u64; 0]);
    assert_eq!(world.connections.len(), 0, "no topic, no connection");
}

#[test]
fn topics_spread_over_at_most_three_owners() {
    let mut world = World::new(6);
    for n in 0..12 {
        world.subscribe(1 + n % 6, &format!("topic.{n}"));
    }
    let mut loads = std::collections::BTreeMap::new();
    for n in 0..12 {
        for owner in world.owner(&format!("topic.{n}")) {
            *loads.entry(owner).or_insert(0) += 1;
        }
    }
    assert_eq!(loads.into_iter().collect::<Vec<_>>(), [(1, 4), (2, 4), (3, 4)]);
}

#[test]
fn a_dead_owners_topics_move_at_once_and_its_successor_recovers() {
    let mut world = World::new(4);
    world.subscribe(2, "a");
    world.subscribe(3, "b");
    world.publish("b", 10);
    assert_eq!(world.owner("b"), [2]);
    world.kill(2);
    assert_eq!(world.owner("b").len(), 1);
    assert_ne!(world.owner("b"), [2]);
    world.publish("b", 11);
    let joined = world.join(3, "b", Some(at(1)), 0);
    assert_eq!((joined.messages.len(), joined.position), (1, at(2)));
    assert_eq!(joined.missing, None);
}

#[test]
fn a_dead_coordinators_topics_move_at_once_under_a_higher_fence() {
    let mut world = World::new(4);
    world.subscribe(2, "a");
    world.subscribe(3, "b");
    let before = world.route(3, "a").fence;
    assert_eq!((world.coordinator(), world.owner("a")), (vec![1], vec![1]));
    world.kill(1);
    assert_eq!(world.coordinator(), [2]);
    assert_eq!(world.owner("a").len(), 1);
    assert!(world.route(3, "a").fence > before);
    assert_eq!(world.owner("b"), [2], "a standing route is kept");
}

#[test]
fn a_frozen_owner_is_replaced_within_four_seconds_and_does_not_act_when_it_thaws() {
    let mut world = World::new(3);
    world.subscribe(1, "a");
    world.subscribe(3, "b");
    assert_eq!(world.owner("b"), [2]);
    world.frozen.insert(node(2));
    world.publish("b", 1);
    world.advance(Duration::from_secs(4));
    assert_eq!(world.owner("b"), [2, 3], "the frozen one still holds its subscription");
    world.data.clear();
    world.frozen.remove(&node(2));
    world.run();
    world.advance(Duration::from_secs(1));
    assert_eq!(world.owner("b"), [3]);
    assert!(world.data.iter().all(|(from, _)| *from != node(2)), "{:?}", world.data);
}

#[test]
fn a_node_that_finds_only_a_frozen_coordinator_takes_over_from_it() {
    let mut world = World::new(1);
    world.frozen.insert(node(1));
    world.start(2);
    world.subscribe(2, "a");
    world.advance(Duration::from_secs(5));
    assert_eq!(world.coordinator(), [1, 2]);
    assert_eq!(world.owner("a"), [2]);
    world.frozen.remove(&node(1));
    world.run();
    world.advance(Duration::from_secs(1));
    assert_eq!(world.coordinator(), [2]);
}

#[test]
fn a_publication_through_an_owner_that_died_with_its_office_has_an_unknown_outcome_at_once() {
    let mut world = World::new(3);
    world.subscribe(1, "a");
    world.subscribe(2, "b");
    assert_eq!((world.coordinator(), world.owner("a")), (vec![1], vec![1]));
    world.frozen.insert(node(1));
    let mut packet = Packet::new(node(3));
    let slot = packet.attach(7);
    packet.frames.push(ToNode::Publish(PublishFrame {
        call: CallId::from_bits(5),
        topic: "a".into(),
        slot,
        size: 8,
        idempotency_key: None,
        message_id: None,
        timestamp_ms: None,
        remaining_ms: 10_000,
    }));
    world.input(3, NodeInput::Port { client: client(3), packet });
    world.run();
    world.kill(1);
    let answers = world.pages[&node(3)].iter().filter_map(|frame| match frame {
        ToPage::Published { call, error, .. } => Some((*call, error.as_ref()?.code)),
        _ => None,
    });
    let outcomes: Vec<_> = answers.collect();
    assert_eq!(outcomes, [(CallId::from_bits(5), ErrorCode::OutcomeUnknown)]);
}

#[test]
fn a_frozen_coordinator_is_replaced_and_follows_when_it_thaws() {
    let mut world = World::new(3);
    world.subscribe(2, "a");
    world.frozen.insert(node(1));
    world.advance(Duration::from_secs(4));
    assert_eq!(world.coordinator(), [1, 2]);
    assert_eq!(world.owner("a"), [1, 2]);
    world.data.clear();
    world.frozen.remove(&node(1));
    world.publish("a", 1);
    world.advance(Duration::from_secs(1));
    assert_eq!((world.coordinator(), world.owner("a")), (vec![2], vec![2]));
    assert!(world.data.iter().all(|(from, _)| *from != node(1)), "{:?}", world.data);
}

#[test]
fn closing_hands_over_before_the_new_owner_subscribes() {
    let mut world = World::new(3);
    world.subscribe(1, "a");
    world.subscribe(3, "b");
    assert_eq!(world.owner("b"), [2]);
    world.server_log.clear();
    world.page(2, ToNode::Bye);
    world.run();
    assert_eq!(
        world.server_log,
        [(node(2), "unsubscribe", "b".to_owned()), (node(3), "subscribe", "b".to_owned())]
    );
    assert!(world.pages[&node(2)].contains(&ToPage::Closed));
}

#[test]
fn a_closing_coordinator_hands_over_the_office_and_then_its_topics() {
    let mut world = World::new(3);
    world.subscribe(2, "a");
    assert_eq!((world.coordinator(), world.owner("a")), (vec![1], vec![1]));
    world.server_log.clear();
    world.page(1, ToNode::Bye);
    world.run();
    assert_eq!(world.coordinator(), [2]);
    let (log, owner) = (&world.server_log, world.owner("a"));
    assert_eq!(log.first(), Some(&(node(1), "unsubscribe", "a".to_owned())), "{log:?}");
    assert!(owner.len() == 1 && owner != [1], "{owner:?}");
    assert!(world.pages[&node(1)].contains(&ToPage::Closed));
}

#[test]
fn the_last_node_closes_at_once() {
    let mut world = World::new(1);
    world.subscribe(1, "a");
    world.page(1, ToNode::Bye);
    world.run();
    assert!(world.pages[&node(1)].contains(&ToPage::Closed));
    assert_eq!((world.owner("a").len(), world.connections.len()), (0, 0));
}

#[test]
fn a_page_that_hides_ends_its_node_and_the_topic_moves() {
    let mut world = World::new(3);
    world.subscribe(1, "a");
    world.subscribe(3, "b");
    let leaving = Frame::Leaving { node: node(2), graceful: false };
    for n in [1, 3] {
        let packet = motet_cluster::Packet::single(node(2), leaving.clone());
        world.input(n, motet_cluster::node::NodeInput::Announce(packet));
    }
    world.run();
    assert!(world.owner("b").contains(&3));
    assert_eq!(world.route(3, "b").state, RouteState::Subscribed);
}

#[test]
fn a_late_page_gets_the_last_messages_marked_replayed() {
    let mut world = World::new(2);
    world.subscribe(1, "a");
    (1..=10).for_each(|n| world.publish("a", n));
    world.subscribe(2, "a");
    let joined = world.join(2, "a", None, 4);
    assert_eq!((joined.replayed, joined.messages.len(), joined.position), (4, 4, at(10)));
}

#[test]
fn a_page_that_joins_while_history_is_asked_for_less_gets_all_that_it_wants() {
    let mut world = World::new(2);
    (1..=40).for_each(|n| world.publish("a", n));
    world.subscribe(1, "a");
    world.subscribe(2, "a");
    let join = |n, replay| {
        let (topic, call) = ("a".to_owned(), CallId::from_bits(n));
        ToNode::Join(JoinFrame { topic, client: client(n), call, position: None, replay })
    };
    world.pages.clear();
    // The owner's own page joins while the other one's frame is on its way.
    world.page(2, join(2, 30));
    world.page(1, join(1, 5));
    world.run();
    let replayed: BTreeMap<_, _> = world
        .pages
        .values()
        .flatten()
        .filter_map(|frame| match frame {
            ToPage::Joined(joined) => Some((joined.call.bits(), joined.replayed)),
            _ => None,
        })
        .collect();
    assert_eq!(replayed, BTreeMap::from([(1, 5), (2, 30)]));
}

#[test]
fn a_replay_that_the_server_gives_in_small_pages_is_whole() {
    let mut world = World::new(1);
    world.history_page_max = 7;
    (1..=40).for_each(|n| world.publish("a", n));
    world.subscribe(1, "a");
    let joined = world.join(1, "a", None, 30);
    let offsets: Vec<_> = joined.messages.iter().map(|head| head.offset).collect();
    assert_eq!(offsets, (11..=40).collect::<Vec<_>>());
    let all = world.join(1, "a", None, 60);
    assert_eq!((all.replayed, all.messages.len()), (40, 40), "there are no more");
}

/// The authority under which a node asks its page for what it kept, if it does.
fn ring_wanted(world: &World, n: u64) -> Option<RouteFence> {
    world.pages[&node(n)].iter().find_map(|frame| match frame {
        ToPage::RingWanted { fence, .. } => Some(*fence),
        _ => None,
    })
}

/// A page gives the messages that it kept.
fn give_ring(world: &mut World, n: u64, fence: RouteFence, kept: impl IntoIterator<Item = u64>) {
    let mut packet = Packet::new(node(n));
    let messages = kept.into_iter().map(|offset| MessageHead {
        offset,
        size: 8,
        slot: packet.attach(offset),
        message_id: None,
        timestamp_ms: None,
    });
    let messages = messages.collect();
    let epoch = StreamEpoch::new("as it came");
    packet.frames.push(ToNode::Ring { topic: "a".into(), fence, epoch, messages });
    world.input(n, NodeInput::Port { client: client(n), packet });
    world.run();
}

#[test]
fn what_a_page_kept_serves_late_ones_though_it_asks_only_after_the_new_owner_stands() {
    let mut world = World::new(5);
    world.history = false;
    (1..=4).for_each(|n| world.subscribe(n, "a"));
    let earlier = || Some(Position::new(StreamEpoch::new("of an earlier owner"), 20));
    world.join(2, "a", earlier(), 0);
    let fence = ring_wanted(&world, 2).expect("its node asks the page for what it kept");
    give_ring(&mut world, 2, fence, []);
    world.join(3, "a", earlier(), 0);
    let fence = ring_wanted(&world, 3).expect("the first one had nothing");
    give_ring(&mut world, 3, fence, 18..=20);
    let late = world.join(5, "a", None, 2);
    assert_eq!((late.replayed, late.messages.len(), late.missing), (2, 2, None));
    world.join(4, "a", earlier(), 0);
    assert_eq!(ring_wanted(&world, 4), None, "one is enough");
}

#[test]
fn a_page_far_behind_is_caught_up_from_history_in_several_answers() {
    let mut world = World::new(2);
    world.subscribe(1, "a");
    (1..=700).for_each(|n| world.publish("a", n));
    world.pages.clear();
    let last = world.join(2, "a", Some(at(5)), 0);
    let mut offsets = Vec::new();
    for frame in &world.pages[&node(2)] {
        if let ToPage::Joined(joined) = frame {
            offsets.extend(joined.messages.iter().map(|head| head.offset));
        }
    }
    assert_eq!(offsets, (6..=700).collect::<Vec<_>>());
    assert!(!last.more && last.position == at(700));
}

#[test]
fn a_position_of_another_stream_is_answered_with_one_gap() {
    let mut world = World::new(1);
    world.subscribe(1, "a");
    world.publish("a", 1);
    let joined = world.join(1, "a", Some(Position::new(StreamEpoch::new("old"), 40)), 0);
    assert_eq!((joined.missing, joined.position), (Some(GapReason::StreamReset), at(1)));
}

#[test]
fn twenty_idle_nodes_post_fewer_than_two_messages_a_second() {
    let mut world = World::new(20);
    (1..=20).for_each(|n| world.subscribe(n, "a"));
    world.subscribe(2, "b");
    world.subscribe(3, "c");
    world.advance(Duration::from_secs(5));
    let before = world.announced;
    world.advance(Duration::from_secs(60));
    let announced = world.announced - before;
    assert!(announced <= 25, "{announced} beats in a minute");
}

#[test]
fn every_node_that_leaves_is_replaced_until_one_is_left() {
    let mut world = World::new(8);
    (1..=8).for_each(|n| world.subscribe(n, "a"));
    for n in 1..8 {
        world.kill(n);
        assert_eq!(world.owner("a").len(), 1, "after {n}");
        assert_eq!(world.coordinator(), [n + 1]);
    }
    world.publish("a", 1);
    assert_eq!(world.join(8, "a", None, 1).messages.len(), 1);
}

#[test]
fn a_node_that_was_silent_while_nothing_was_asked_of_it_keeps_the_topic_it_gets() {
    let mut world = World::new(3);
    world.subscribe(1, "a");
    // Between two beats, longer after the last one than its grace.
    world.advance(Duration::from_millis(4_500));
    world.subscribe(3, "b");
    assert_eq!(world.owner("b"), [2]);
    let decided = world.route(3, "b").fence;
    world.advance(Duration::from_secs(10));
    assert_eq!((world.owner("b"), world.route(3, "b").fence), (vec![2], decided));
}

fn next_fence(fence: Fence) -> Fence {
    Fence { epoch: fence.epoch + 1, ..fence }
}

/// A decision about "b" that takes it from node 2.
fn moved(to: u64, fence: RouteFence) -> Frame {
    let route = Route {
        topic: "b".into(),
        owner: node(to),
        fence,
        handoff_from: Some(node(2)),
        state: RouteState::Assigned,
        subscribers: 1,
    };
    Frame::Assign { fence: fence.fence, routes: vec![route], dropped: Vec::new(), full: false }
}

/// A decision about "b" that waits for nobody.
fn taken(to: u64, fence: RouteFence) -> Frame {
    let Frame::Assign { fence, mut routes, dropped, full } = moved(to, fence) else {
        unreachable!("a decision is an Assign")
    };
    routes[0].handoff_from = None;
    Frame::Assign { fence, routes, dropped, full }
}

/// Four nodes of which 1 governs and 2 owns "b", and the decision by which it does.
fn second_owns_b() -> (World, RouteFence) {
    let mut world = World::new(4);
    world.subscribe(2, "a");
    world.subscribe(3, "b");
    assert_eq!((world.coordinator(), world.owner("b")), (vec![1], vec![2]));
    let fence = world.route(3, "b").fence;
    (world, fence)
}

#[test]
fn a_decision_that_comes_after_the_next_coordinators_first_word_still_takes_a_topic_away() {
    let (mut world, decided) = second_owns_b();
    let later = RouteFence { generation: decided.generation.next(), ..decided };
    let claim = Frame::Claim { fence: next_fence(decided.fence), rebuild: true };
    world.input(2, NodeInput::Announce(Packet::single(node(4), claim)));
    world.input(2, NodeInput::Announce(Packet::single(node(1), moved(3, later))));
    world.run();
    assert_eq!(world.owner("b"), [] as [u64; 0]);
    assert_eq!(world.released, [(node(3), later)]);
    let told = world.reports.iter().any(|(to, seen)| *to == node(4) && seen.contains(&later));
    assert!(told, "the next coordinator learns of it: {:?}", world.reports);
}

#[test]
fn a_late_decision_changes_nothing_in_a_handoff_that_the_next_coordinator_ordered() {
    let (mut world, decided) = second_owns_b();
    let late = RouteFence { generation: decided.generation.next(), ..decided };
    let fence = next_fence(decided.fence);
    let newer = RouteFence { fence, generation: Generation::FIRST };
    let claim = Frame::Claim { fence, rebuild: true };
    world.input(2, NodeInput::Announce(Packet::single(node(4), claim)));
    world.input(2, NodeInput::Announce(Packet::single(node(4), moved(4, newer))));
    world.input(2, NodeInput::Announce(Packet::single(node(1), moved(3, late))));
    world.run();
    assert_eq!(world.released, [(node(4), newer)]);
}

#[test]
fn an_owner_that_stands_keeps_its_topic_when_a_later_decision_has_come_to_nothing() {
    let (mut world, decided) = second_owns_b();
    let later = RouteFence { fence: next_fence(decided.fence), generation: Generation::FIRST };
    let claim = Frame::Claim { fence: later.fence, rebuild: false };
    // Only node 3 hears of a coordinator that is gone at once, and with it the owner it chose.
    world.input(3, NodeInput::Announce(Packet::single(node(9), claim)));
    world.input(3, NodeInput::Announce(Packet::single(node(9), moved(9, later))));
    world.run();
    world.kill(1);
    assert_eq!(world.owner("b"), [2]);
    assert!(world.route(3, "b").fence > later);
    let given_up = world
        .server_log
        .iter()
        .any(|(from, what, topic)| *from == node(2) && *what == "unsubscribe" && topic == "b");
    assert!(!given_up, "{:?}", world.server_log);
}

#[test]
fn a_node_that_has_left_lets_go_of_what_a_decision_gave_it_meanwhile() {
    let (mut world, decided) = second_owns_b();
    world.subscribe(4, "b");
    world.page(3, ToNode::Bye);
    world.run();
    let given = RouteFence { generation: decided.generation.next(), ..decided };
    world.input(3, NodeInput::Announce(Packet::single(node(1), taken(3, given))));
    world.run();
    assert_eq!(world.owner("b"), [2, 3]);
    world.advance(Duration::from_secs(2));
    assert_eq!(world.owner("b"), [2]);
}

#[test]
fn a_topic_that_is_wanted_again_keeps_the_owner_that_may_still_be_subscribed() {
    let mut world = World::new(4);
    ["a", "b", "c"].iter().for_each(|topic| world.subscribe(4, topic));
    assert_eq!(world.owner("c"), [3]);
    world.page(4, ToNode::Unsubscribe { topics: vec!["b".into(), "c".into()] });
    world.run();
    assert_eq!(world.owner("c"), [] as [u64; 0]);
    world.subscribe(4, "c");
    assert_eq!(world.owner("c"), [3]);
    world.page(4, ToNode::Unsubscribe { topics: vec!["c".into()] });
    world.run();
    world.advance(Duration::from_secs(8));
    world.subscribe(4, "c");
    assert_eq!(world.owner("c"), [2], "after a while the usual choice");
}

/// These nodes live under another coordinator for a while, and own topics there.
fn own_under_another_coordinator(world: &mut World, owned: &[(u64, &str)]) {
    let fence = next_fence(world.route(3, owned[0].1).fence.fence);
    for (n, topic) in owned {
        let claim = Frame::Claim { fence, rebuild: false };
        let route = Route {
            topic: (*topic).into(),
            owner: node(*n),
            fence: RouteFence { fence, generation: Generation::FIRST },
            handoff_from: None,
            state: RouteState::Assigned,
            subscribers: 1,
        };
        let routes = vec![route];
        let assign = Frame::Assign { fence, routes, dropped: Vec::new(), full: false };
        for frame in [claim, assign] {
            world.input(*n, NodeInput::Announce(Packet::single(node(9), frame)));
        }
    }
    world.run();
}

#[test]
fn an_owner_of_nothing_but_what_the_server_refused_keeps_no_surplus_owner_in_place() {
    let mut world = World::new(6);
    let topics = ["a", "b", "c", "d", "e"];
    topics.iter().chain(&["f"]).for_each(|topic| world.subscribe(1, topic));
    own_under_another_coordinator(&mut world, &[(4, "d"), (5, "e"), (6, "f")]);
    let error = Some(Error::new(ErrorCode::SubscribeRejected));
    let topic = "f".to_owned();
    let refused = TransportEvent::Unsubscribed { topic, error, terminal: true };
    world.input(6, NodeInput::Transport(refused));
    world.run();
    world.kill(2);
    world.advance(Duration::from_secs(6));
    let owners: BTreeSet<_> = topics.iter().flat_map(|topic| world.owner(topic)).collect();
    assert_eq!(owners.len(), 3, "{owners:?}");
}

#[test]
fn more_owners_than_allowed_hand_over_one_by_one_until_three_are_left() {
    let mut world = World::new(6);
    let topics = ["a", "b", "c", "d", "e"];
    topics.iter().for_each(|topic| world.subscribe(6, topic));
    own_under_another_coordinator(&mut world, &[(4, "d"), (5, "e")]);
    world.kill(1);
    let owners = |world: &World| {
        let owners: BTreeSet<_> = topics.iter().flat_map(|topic| world.owner(topic)).collect();
        owners.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(owners(&world), [2, 3, 4, 5], "what stands is kept at first");
    world.server_log.clear();
    world.advance(Duration::from_secs(6));
    assert_eq!(owners(&world), [2, 3, 4]);
    topics.iter().for_each(|topic| assert_eq!(world.owner(topic).len(), 1, "{topic}"));
    let log: Vec<_> = world.server_log.iter().map(|(n, what, _)| (n.bits(), *what)).collect();
    assert_eq!(log[0], (5, "unsubscribe"), "it lets go before the next one subscribes: {log:?}");
}

#[test]
fn a_connection_refused_for_good_stays_refused_until_a_page_asks_for_another_attempt() {
    let mut world = World::new(1);
    world.subscribe(1, "a");
    let error = Error::new(ErrorCode::ConnectRejected);
    let refused = TransportEvent::Disconnected { error, terminal: true };
    world.input(1, NodeInput::Transport(refused));
    world.page(1, ToNode::Unsubscribe { topics: vec!["a".into()] });
    world.run();
    world.advance(Duration::from_secs(60));
    assert_eq!(world.connections.len(), 1, "closing it would forget the refusal");
    world.page(1, ToNode::Retry);
    world.run();
    assert_eq!(world.connections.len(), 0, "the next one who needs it opens it anew");
}

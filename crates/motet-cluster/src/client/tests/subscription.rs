//! Handlers, intent, routes and the questions they lead to (B1, B18, B28, B29, B30, B31).

use super::*;

#[test]
fn b1_the_data_channel_is_open_before_the_node_hears_of_the_topic() {
    let mut rig = Rig::running();
    rig.subscribe(1, "t", 0);
    let opened = rig.out.iter().position(|output| matches!(output, ClientOutput::OpenShard(_)));
    let told = rig.out.iter().position(|output| matches!(output, ClientOutput::Port(_)));
    assert!(opened < told, "{:?}", rig.out);
    assert_eq!(rig.frames(), [ToNode::Subscribe { topics: vec!["t".into()] }]);
    rig.subscribe(2, "t", 0);
    assert_eq!(rig.frames(), [], "the second handler of a topic is the page's own business");
}

#[test]
fn b1_a_topic_lingers_and_then_is_given_up_with_its_channel() {
    let mut rig = Rig::live();
    rig.input(ClientInput::Unsubscribe { handler: 1 });
    rig.pass(249);
    assert_eq!(rig.frames(), []);
    rig.subscribe(2, "t", 0);
    rig.pass(1_000);
    assert_eq!(rig.frames(), [], "somebody came back in time");
    rig.data(OWNER, 1, "a", 11..=11);
    assert_eq!(rig.seen(), live(11..=11));
    rig.input(ClientInput::Unsubscribe { handler: 2 });
    rig.data(OWNER, 1, "a", 12..=12);
    assert_eq!(rig.seen(), [], "nobody listens");
    rig.pass(250);
    assert_eq!(rig.frames(), [ToNode::Unsubscribe { topics: vec!["t".into()] }]);
    assert!(rig.out.iter().any(|output| matches!(output, ClientOutput::CloseShard(_))));
    assert_eq!(rig.client.subscriptions().count(), 0);
    assert_eq!(rig.client.counters().ring_bytes, 0);
}

#[test]
fn b1_a_channel_stays_open_while_any_of_its_topics_is_wanted() {
    let mut rig = Rig::running();
    let names: Vec<String> = (0..200).map(|number| format!("topic.{number}")).collect();
    for (handler, name) in names.iter().enumerate() {
        rig.subscribe(handler as u32, name, 0);
    }
    let count = |rig: &Rig, open: bool| {
        let is_it = |output: &&ClientOutput<u64>| match output {
            ClientOutput::OpenShard(_) => open,
            ClientOutput::CloseShard(_) => !open,
            _ => false,
        };
        rig.out.iter().filter(is_it).count()
    };
    assert_eq!(count(&rig, true), 16);
    for handler in 0..200 {
        assert_eq!(count(&rig, false), 0);
        rig.input(ClientInput::Unsubscribe { handler });
    }
    rig.pass(250);
    assert_eq!(count(&rig, false), 16);
}

#[test]
fn five_hundred_subscriptions_of_one_drain_are_one_frame() {
    let mut rig = Rig::running();
    for number in 0..500 {
        let topic = format!("topic.{number}");
        let input = ClientInput::Subscribe { handler: number, topic, replay: 0 };
        rig.client.handle(rig.now, input);
    }
    rig.input(ClientInput::Tick);
    let frames = rig.frames();
    let [ToNode::Subscribe { topics }] = &frames[..] else { panic!("one frame") };
    assert_eq!(topics.len(), 500);
}

#[test]
fn a_question_is_asked_when_a_route_is_known_and_again_while_nobody_answers() {
    let mut rig = Rig::running();
    rig.subscribe(1, "t", 0);
    rig.pass_alive(3_000);
    assert_eq!(rig.joins(), [], "nobody to ask");
    rig.routes(&[route("t", OWNER, 1)]);
    let mut asked = Vec::new();
    let start = rig.now;
    for _ in 0..160 {
        asked.extend(rig.joins().iter().map(|_| (rig.now - start).as_millis()));
        rig.pass_alive(100);
    }
    assert_eq!(asked, [0, 500, 1_500, 3_500, 7_500, 11_500, 15_500]);
}

#[test]
fn a_question_by_an_older_route_is_superseded_and_its_answer_ignored() {
    let mut rig = Rig::running();
    rig.subscribe(1, "t", 0);
    rig.routes(&[route("t", OWNER, 1)]);
    let old = rig.join();
    rig.routes(&[route("t", OTHER, 2)]);
    let new = rig.join();
    assert_ne!(old.call, new.call);
    rig.joined(&old, 1, at("a", 5), 6..6);
    assert_eq!(rig.client.subscription("t").and_then(|view| view.position), None);
    rig.joined(&new, 2, at("a", 6), 7..7);
    assert_eq!(rig.client.subscription("t").and_then(|view| view.position), Some(&at("a", 6)));
}

#[test]
fn a_node_that_does_not_own_the_topic_yet_is_asked_again_soon() {
    let mut rig = Rig::running();
    rig.subscribe(1, "t", 0);
    rig.routes(&[route("t", OWNER, 1)]);
    for wait in [20, 40, 80] {
        let join = rig.join();
        rig.port(ToPage::NotOwner { topic: "t".into(), call: join.call });
        rig.pass(wait - 1);
        assert_eq!(rig.joins(), []);
        rig.pass(1);
    }
    let join = rig.join();
    rig.joined(&join, 1, at("a", 5), 6..6);
    assert_eq!(rig.states().last(), Some(&SubscriptionState::Ready(at("a", 5))));
}

#[test]
fn a_hole_stays_open_while_only_nodes_that_do_not_own_the_topic_have_answered() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "a", 15..=15);
    let join = rig.join();
    rig.port(ToPage::NotOwner { topic: "t".into(), call: join.call });
    // The timers of a hidden page are late: the next question and the end of the wait fall together.
    rig.sleep(600);
    rig.input(ClientInput::Tick);
    let join = rig.join();
    assert_eq!(rig.seen(), [], "given up before the owner was asked");
    rig.joined(&join, 1, at("a", 15), 11..16);
    assert_eq!(rig.seen(), live(11..=15));
}

#[test]
fn a_route_that_the_node_tells_of_is_asked_at_once_when_the_node_could_not_tell_before() {
    let mut rig = Rig::running();
    rig.subscribe(1, "t", 0);
    rig.routes(&[route("t", OWNER, 1)]);
    let join = rig.join();
    rig.port(ToPage::NotOwner { topic: "t".into(), call: join.call });
    rig.routes(&[route("t", OWNER, 1)]);
    assert_ne!(rig.join().call, join.call);
}

#[test]
fn b29_a_failed_route_reaches_the_subscriber_and_a_later_decision_revives_it() {
    let mut rig = Rig::live();
    let refused = Error::new(ErrorCode::SubscribeRejected).with_server_code(103);
    let failed = Route { state: RouteState::Failed(refused.clone()), ..route("t", OWNER, 2) };
    rig.routes(&[failed]);
    assert_eq!(rig.states(), [SubscriptionState::Failed(refused)]);
    rig.data(OWNER, 2, "a", 9..=10);
    assert_eq!(rig.states(), [], "a straggler revives nothing");
    rig.pass(10_000);
    assert_eq!(rig.joins(), [], "nobody to ask");
    rig.routes(&[route("t", OWNER, 3)]);
    let join = rig.join();
    assert_eq!(rig.states(), [SubscriptionState::Recovering]);
    rig.joined(&join, 3, at("a", 11), 11..12);
    assert_eq!(rig.seen(), live(11..=11));
    assert_eq!(rig.states(), [SubscriptionState::Ready(at("a", 11))]);
}

#[test]
fn b31_a_lost_connection_or_route_clears_neither_handlers_nor_intent() {
    let mut rig = Rig::live();
    rig.port(ToPage::Transport {
        status: TransportStatus::Errored,
        error: Some(ErrorCode::TransportUnavailable.into()),
        terminal: false,
    });
    rig.port(ToPage::Routes {
        fence: fence(1).fence,
        routes: Vec::new(),
        dropped: Vec::new(),
        full: true,
    });
    assert_eq!(rig.states(), [SubscriptionState::Recovering]);
    let view = rig.client.subscription("t").expect("still wanted");
    assert_eq!((view.handlers, view.position), (1, Some(&at("a", 10))));
    assert_eq!(rig.frames(), []);
    rig.routes(&[route("t", OTHER, 2)]);
    assert_eq!(rig.join().position, Some(at("a", 10)));
}

#[test]
fn b28_visibility_is_told_to_the_node_and_changes_nothing_else() {
    let mut rig = Rig::live();
    rig.page(PageEvent::Visible(false));
    assert_eq!(rig.frames(), [ToNode::Visible { visible: false }]);
    assert_eq!(rig.out, []);
}

#[test]
fn b18_topics_of_others_are_forgotten_first_come_first_and_own_ones_never() {
    let mut rig = Rig::live();
    rig.routes(&[route("owned", NODE, 1)]);
    for number in 0..2_000 {
        rig.routes(&[route(&format!("foreign.{number}"), OTHER, 1)]);
    }
    assert_eq!(rig.client.routes().count(), 502);
    for kept in ["t", "owned", "foreign.1999", "foreign.1500"] {
        assert!(rig.client.routes().any(|known| known.route.topic == kept), "{kept}");
    }
}

#[test]
fn b30_the_snapshot_names_self_members_routes_and_pending_and_changes_nothing() {
    let mut rig = Rig::live();
    rig.port(ToPage::Members {
        members: vec![member(OTHER), member(NODE), member(OWNER)],
        gone: Vec::new(),
        full: true,
    });
    rig.port(ToPage::Members { members: Vec::new(), gone: vec![OTHER], full: false });
    rig.publish(1, "t");
    rig.out.clear();
    let nodes: Vec<_> = rig.client.members().iter().map(|known| known.member.node).collect();
    assert_eq!(nodes, [NODE, OWNER]);
    assert_eq!(rig.client.identity().node, Some(NODE));
    assert_eq!(rig.client.coordinator(), Some(NODE));
    assert_eq!(rig.client.fence(), fence(1).fence);
    let known = rig.client.routes().next().expect("a route").clone();
    assert_eq!((known.route, known.confirmed), (route("t", OWNER, 1), Some(known.updated)));
    let pending = rig.client.pending_publishes();
    assert_eq!((pending.len(), pending[0].attempt, pending[0].remaining_ms), (1, 1, 10_000));
    assert_eq!(rig.client.handlers("t").collect::<Vec<_>>(), [1]);
    rig.input(ClientInput::Tick);
    assert_eq!(rig.out, []);
}

#[test]
fn b30_reading_asks_the_node_for_beats_once_a_second_and_the_next_reading_shows_them() {
    let mut rig = Rig::live();
    rig.port(ToPage::Members { members: vec![member(OWNER)], gone: Vec::new(), full: true });
    let silence = |rig: &Rig| rig.client.silence_of(&rig.client.members()[0], rig.now);
    rig.input(ClientInput::Inspect);
    rig.input(ClientInput::Inspect);
    assert_eq!(rig.frames(), [ToNode::Ping]);
    assert_eq!(silence(&rig), None);
    rig.port(ToPage::Pong { node: NODE, heard: vec![Heard { node: OWNER, ago_ms: 40 }] });
    rig.pass(100);
    assert_eq!(silence(&rig), Some(Duration::from_millis(140)));
    // What is older than what is known changes nothing.
    rig.port(ToPage::Pong { node: NODE, heard: vec![Heard { node: OWNER, ago_ms: 900 }] });
    assert_eq!(silence(&rig), Some(Duration::from_millis(140)));
    // It was silent for longer than this page has lived.
    rig.port(ToPage::Members { members: vec![member(OTHER)], gone: Vec::new(), full: true });
    rig.port(ToPage::Pong { node: NODE, heard: vec![Heard { node: OTHER, ago_ms: 3_600_000 }] });
    assert_eq!(silence(&rig), Some(Duration::from_secs(3_600)));
    rig.frames();
    rig.pass(1_000);
    rig.input(ClientInput::Inspect);
    assert_eq!(rig.frames(), [ToNode::Ping]);
}

//! Start, close, pages that come and go, nodes that die (B8, B9, B25, B26, B31, B35).

use super::*;
use crate::frame::PageFrame;

fn starts(rig: &mut Rig) -> Vec<u32> {
    let mut starts = Vec::new();
    rig.out.retain(|output| match output {
        ClientOutput::StartNode { start } => {
            starts.push(*start);
            false
        }
        _ => true,
    });
    starts
}

fn degraded(node: Option<NodeId>, error: impl Into<Error>) -> ClientStatus {
    ClientStatus::Degraded { node, error: error.into() }
}

fn gone(start: u32) -> ClientInput<u64> {
    ClientInput::NodeGone { start, error: ErrorCode::NodeUnavailable.into() }
}

#[test]
fn b25_a_start_runs_through_its_states_and_a_second_one_changes_nothing() {
    let mut rig = Rig::new();
    assert_eq!(rig.client.status(), &ClientStatus::Idle);
    assert_eq!(rig.client.next_timeout(), None);
    rig.input(ClientInput::Start);
    rig.input(ClientInput::Start);
    assert_eq!(starts(&mut rig), [1]);
    rig.node_up(1);
    let node = NODE;
    assert_eq!(rig.statuses(), [ClientStatus::Starting, ClientStatus::Running { node }]);
    rig.input(ClientInput::Start);
    assert_eq!(rig.out.len(), 1, "only the packet for the node: {:?}", rig.out);
}

#[test]
fn b25_subscriptions_made_before_the_start_reach_the_node_with_the_first_packet() {
    let mut rig = Rig::new();
    rig.subscribe(1, "t", 5);
    rig.subscribe(2, "u", 0);
    rig.publish(1, "t");
    assert!(rig.frames().is_empty());
    rig.input(ClientInput::Start);
    rig.input(ClientInput::NodeStarted { start: 1, shared: false });
    let frames = rig.frames();
    let [ToNode::Attach { client, .. }, ToNode::Subscribe { topics }] = &frames[..] else {
        panic!("{frames:?}")
    };
    assert_eq!(*client, rig.client.identity().client);
    assert_eq!(topics, &["t", "u"]);
}

#[test]
fn b25_running_means_connected_only_for_a_node_that_owns_topics() {
    let mut rig = Rig::live();
    let transport = |status, terminal: bool| ToPage::Transport {
        status,
        error: terminal.then(|| ErrorCode::ConnectRejected.into()),
        terminal,
    };
    rig.port(transport(TransportStatus::Errored, false));
    assert_eq!(rig.statuses(), [], "others own what this page subscribes");
    rig.routes(&[route("t", NODE, 2)]);
    rig.port(transport(TransportStatus::Errored, true));
    rig.port(transport(TransportStatus::Connected, false));
    assert_eq!(
        rig.statuses(),
        [
            ClientStatus::Recovering,
            degraded(Some(NODE), ErrorCode::ConnectRejected),
            ClientStatus::Running { node: NODE }
        ]
    );
    rig.port(ToPage::Coordinator { node: None, fence: fence(1).fence });
    assert_eq!(rig.statuses(), [ClientStatus::Recovering]);
}

#[test]
fn b8_a_hidden_page_announces_leaving_ends_its_node_and_keeps_nothing_open() {
    let mut rig = Rig::live();
    rig.publish(1, "t");
    rig.out.clear();
    rig.page(PageEvent::Hide);
    let shard = crate::name::shard_of("t");
    let leaving = PageFrame::Leaving { node: NODE, graceful: false };
    assert_eq!(rig.settled(), [(1, Some(ErrorCode::OutcomeUnknown))]);
    assert_eq!(rig.states(), [SubscriptionState::Recovering]);
    assert_eq!(
        rig.out,
        [
            ClientOutput::Announce(Packet::single(NODE, leaving)),
            ClientOutput::StopNode,
            ClientOutput::CloseShard(shard),
            ClientOutput::Status(ClientStatus::Suspended)
        ]
    );
    assert_eq!(rig.client.next_timeout(), None);
    rig.out.clear();
    rig.page(PageEvent::Freeze);
    rig.data(OWNER, 1, "a", 11..=11);
    rig.port(ToPage::Pong { node: NODE, heard: Vec::new() });
    rig.input(gone(1));
    rig.publish(2, "t");
    assert_eq!(rig.settled(), [(2, Some(ErrorCode::Suspended))]);
    assert_eq!(rig.out, []);
}

#[test]
fn b8_a_page_that_is_shown_again_is_a_new_client_that_asks_for_what_it_missed() {
    let mut rig = Rig::live();
    let before = rig.client.identity().client;
    rig.page(PageEvent::Hide);
    rig.sleep(3_600_000);
    rig.out.clear();
    rig.page(PageEvent::Show);
    let shard = crate::name::shard_of("t");
    assert_eq!(
        rig.out[..2],
        [ClientOutput::OpenShard(shard), ClientOutput::StartNode { start: 2 }]
    );
    assert_ne!(rig.client.identity().client, before);
    // Everybody else is gone, and nobody remembers the old fences: a lower one is the truth now.
    let mut fresh = route("t", NODE, 1);
    fresh.fence.fence.incarnation = 0;
    rig.node_up_under(2, fresh.fence.fence);
    rig.frames();
    rig.routes(&[fresh.clone()]);
    let join = rig.join();
    assert_eq!((join.position.clone(), join.replay), (Some(at("a", 10)), 0));
    let (mut frame, payloads) = Rig::answer(&join, 1, at("a", 13), 11..14);
    frame.fence = fresh.fence;
    rig.send_joined((frame, payloads));
    assert_eq!(rig.seen(), live(11..=13));
    assert_eq!(rig.states().last(), Some(&SubscriptionState::Ready(at("a", 13))));
}

#[test]
fn b8_a_page_hidden_while_it_starts_starts_again_when_it_is_shown() {
    let mut rig = Rig::new();
    rig.input(ClientInput::Start);
    rig.page(PageEvent::Hide);
    rig.input(ClientInput::NodeStarted { start: 1, shared: false });
    assert!(rig.frames().is_empty(), "a former node");
    rig.input(ClientInput::Start);
    assert_eq!(starts(&mut rig), [1], "not while it is hidden");
    rig.page(PageEvent::Show);
    assert_eq!(starts(&mut rig), [2]);
    rig.node_up(2);
    assert_eq!(rig.statuses().last(), Some(&ClientStatus::Running { node: NODE }));
}

#[test]
fn b8_an_idle_page_that_is_cached_and_shown_stays_idle() {
    let mut rig = Rig::new();
    rig.page(PageEvent::Hide);
    rig.subscribe(1, "t", 0);
    rig.input(ClientInput::Unsubscribe { handler: 1 });
    assert_eq!(rig.client.subscriptions().count(), 0);
    rig.page(PageEvent::Show);
    assert_eq!(rig.client.status(), &ClientStatus::Idle);
    assert_eq!((starts(&mut rig), rig.client.next_timeout()), (vec![], None));
}

#[test]
fn b9_a_page_that_slept_without_an_event_asks_for_what_passed_and_checks_its_node() {
    for explicit in [false, true] {
        let mut rig = Rig::live();
        if explicit {
            rig.page(PageEvent::Resume);
        } else {
            // A timer is set, and called a minute late.
            rig.input(ClientInput::Unsubscribe { handler: 1 });
            rig.subscribe(2, "t", 0);
            rig.sleep(60_000);
            rig.input(ClientInput::Tick);
        }
        let frames = rig.frames();
        assert!(frames.contains(&ToNode::Ping), "{frames:?}");
        let asked = frames.iter().any(|frame| match frame {
            ToNode::Join(join) => join.position == Some(at("a", 10)),
            _ => false,
        });
        assert!(asked, "{frames:?}");
    }
}

#[test]
fn b9_time_asleep_ends_no_wait() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "a", 12..=12);
    rig.publish(1, "t");
    rig.frames();
    rig.sleep(3_600_000);
    rig.input(ClientInput::Tick);
    assert_eq!((rig.seen(), rig.settled()), (vec![], vec![]));
    let joins = rig.joins();
    rig.joined(&joins[0], 1, at("a", 12), 11..13);
    assert_eq!(rig.seen(), live(11..=12));
    assert!(rig.client.pending_publishes()[0].remaining_ms > 9_000);
}

#[test]
fn b25_close_says_bye_waits_for_the_handover_and_leaves_no_timer() {
    let mut rig = Rig::live();
    rig.publish(1, "t");
    rig.out.clear();
    rig.input(ClientInput::Close);
    assert_eq!(rig.frames(), [ToNode::Bye]);
    assert_eq!(rig.settled(), [(1, Some(ErrorCode::OutcomeUnknown))]);
    assert_eq!(rig.statuses(), [ClientStatus::Closing]);
    rig.pass(1_000);
    rig.port(ToPage::Closed);
    assert_eq!(rig.statuses(), [ClientStatus::Closed]);
    assert_eq!(rig.out.last(), Some(&ClientOutput::StopNode));
    assert_eq!(rig.client.next_timeout(), None);
    rig.out.clear();
    rig.publish(2, "t");
    rig.subscribe(9, "t", 0);
    rig.input(ClientInput::Start);
    rig.input(ClientInput::Close);
    rig.page(PageEvent::Hide);
    rig.page(PageEvent::Show);
    assert_eq!(rig.settled(), [(2, Some(ErrorCode::Closed))]);
    assert_eq!(rig.states(), [SubscriptionState::Failed(ErrorCode::Closed.into())]);
    assert_eq!((rig.out.len(), rig.client.next_timeout()), (0, None));
}

#[test]
fn b25_a_node_that_does_not_hand_over_in_two_seconds_is_ended() {
    let mut rig = Rig::live();
    rig.input(ClientInput::Close);
    rig.pass(1_999);
    assert_eq!(rig.statuses(), [ClientStatus::Closing]);
    rig.pass(1);
    assert_eq!(rig.statuses(), [ClientStatus::Closed]);
    let leaving = PageFrame::Leaving { node: NODE, graceful: false };
    assert!(rig.out.contains(&ClientOutput::Announce(Packet::single(NODE, leaving))));
    assert_eq!(rig.out.last(), Some(&ClientOutput::StopNode));
    assert_eq!(rig.client.next_timeout(), None);
}

#[test]
fn b25_a_client_that_never_ran_closes_at_once() {
    for started in [false, true] {
        let mut rig = Rig::new();
        if started {
            rig.input(ClientInput::Start);
        }
        rig.publish(1, "t");
        rig.input(ClientInput::Close);
        assert_eq!(rig.client.status(), &ClientStatus::Closed);
        assert_eq!(rig.settled(), [(1, Some(ErrorCode::Closed))], "it was never sent");
        assert_eq!(rig.out.contains(&ClientOutput::StopNode), started);
        assert_eq!(rig.client.next_timeout(), None);
    }
}

#[test]
fn b35_a_node_that_dies_is_started_again_and_told_everything() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "a", 11..=11);
    rig.out.clear();
    rig.input(gone(1));
    assert_eq!(rig.statuses(), [ClientStatus::Recovering]);
    assert_eq!(rig.states(), [SubscriptionState::Recovering]);
    // The owner lives in another tab and goes on.
    rig.data(OWNER, 1, "a", 12..=12);
    assert_eq!(rig.seen(), live(12..=12));
    rig.pass(200);
    assert_eq!(starts(&mut rig), [2]);
    rig.input(gone(1));
    rig.node_up(2);
    let frames = rig.frames();
    assert!(frames.contains(&ToNode::Subscribe { topics: vec!["t".into()] }));
    rig.routes(&[route("t", OWNER, 1)]);
    let join = rig.join();
    assert_eq!(join.position, Some(at("a", 12)));
    rig.joined(&join, 1, at("a", 12), 13..13);
    assert_eq!(rig.states().last(), Some(&SubscriptionState::Ready(at("a", 12))));
    assert_eq!(rig.client.counters().node_restarts, 1);
}

#[test]
fn b35_a_node_that_keeps_dying_is_started_five_times_a_minute_at_most() {
    let mut rig = Rig::running();
    let begin = rig.now;
    let mut times = Vec::new();
    let mut start = 1;
    while rig.now - begin < Duration::from_secs(300) {
        rig.input(gone(start));
        while starts(&mut rig).is_empty() {
            rig.pass(50);
        }
        start += 1;
        times.push(rig.now);
    }
    for six in times.windows(6) {
        assert!(six[5] - six[0] >= Duration::from_millis(59_700), "{six:?}");
    }
    assert!(times.len() >= 20, "{}", times.len());
    assert!(rig.statuses().contains(&degraded(None, ErrorCode::NodeUnavailable)));
}

#[test]
fn b35_nodes_that_cannot_be_started_are_tried_after_longer_and_longer_waits() {
    let mut rig = Rig::new();
    rig.input(ClientInput::Start);
    let missing = Error::new(ErrorCode::NodeUnavailable).with_detail("404");
    let mut waits = Vec::new();
    for start in 1..=5 {
        rig.out.clear();
        let begin = rig.now;
        rig.input(ClientInput::NodeGone { start, error: missing.clone() });
        let told = rig.statuses();
        while starts(&mut rig).is_empty() {
            rig.pass(10);
        }
        waits.push((rig.now - begin).as_millis());
        let degraded = [degraded(None, missing.clone())];
        assert_eq!(told, if start == 1 { &[][..] } else { &degraded[..] }, "{start}");
    }
    assert!(waits[0] <= 100, "{waits:?}");
    assert!((1..5).all(|at| waits[at] >= 500 << (at - 1)), "{waits:?}");
    rig.node_up(6);
    rig.input(gone(6));
    rig.pass(300);
    assert_eq!(starts(&mut rig), [], "the minute's restarts are spent");
    rig.pass(60_000);
    let begin = rig.now;
    rig.node_up(7);
    rig.input(gone(7));
    while starts(&mut rig).is_empty() {
        rig.pass(10);
    }
    assert!((rig.now - begin).as_millis() <= 300, "one that ran is replaced at once");
}

#[test]
fn b25_when_the_bus_fails_subscriptions_are_told_and_a_start_revives_them() {
    let mut rig = Rig::new();
    rig.subscribe(1, "t", 0);
    rig.input(ClientInput::Start);
    rig.out.clear();
    let refused = Error::new(ErrorCode::LocksUnavailable);
    rig.input(ClientInput::NodeGone { start: 1, error: refused.clone() });
    assert_eq!(rig.states(), [SubscriptionState::Failed(refused.clone())]);
    rig.subscribe(2, "late", 0);
    assert_eq!(rig.states().last(), Some(&SubscriptionState::Failed(refused)));
    rig.input(ClientInput::Start);
    assert_eq!(rig.states(), [SubscriptionState::Pending, SubscriptionState::Pending]);
}

#[test]
fn b12_what_was_never_sent_is_told_so_when_the_bus_closes_or_the_page_goes_away() {
    for (input, code) in [
        (ClientInput::Close, ErrorCode::Closed),
        (ClientInput::Page(PageEvent::Hide), ErrorCode::Suspended),
    ] {
        let mut rig = Rig::live();
        rig.publish(1, "t");
        rig.publish(2, "t");
        rig.input(input);
        let told = [(1, Some(ErrorCode::OutcomeUnknown)), (2, Some(code))];
        assert_eq!(rig.settled(), told, "the first was on its way");
    }
}

#[test]
fn b12_before_the_start_publications_keep_their_limit_their_deadlines_and_can_be_given_up() {
    let mut rig = Rig::with(|config| config.publish_queue = 2);
    for call in 1..=3 {
        rig.publish(call, "t");
    }
    assert_eq!(rig.settled(), [(1, Some(ErrorCode::QueueOverflow))]);
    assert_eq!(rig.client.pending_publishes().len(), 2);
    rig.input(ClientInput::Abort { correlation: CorrelationId::from_bits(2) });
    assert_eq!(rig.settled(), [(2, Some(ErrorCode::Aborted))]);
    rig.pass(10_000);
    assert_eq!(rig.settled(), [(3, Some(ErrorCode::DeadlineExceeded))]);
}

#[test]
fn b25_an_error_that_a_restart_cannot_mend_fails_until_the_next_start() {
    let mut rig = Rig::new();
    rig.input(ClientInput::Start);
    rig.publish(1, "t");
    let blocked = Error::new(ErrorCode::WasmBlocked);
    rig.input(ClientInput::NodeGone { start: 1, error: blocked.clone() });
    assert_eq!(rig.client.status(), &ClientStatus::Failed(blocked.clone()));
    rig.publish(2, "t");
    let wasm = Some(ErrorCode::WasmBlocked);
    assert_eq!(rig.settled(), [(1, wasm), (2, wasm)]);
    rig.pass(600_000);
    assert_eq!(starts(&mut rig), [1]);
    rig.input(ClientInput::Start);
    assert_eq!(starts(&mut rig), [2]);
    rig.node_up(2);
    assert_eq!(rig.client.status(), &ClientStatus::Running { node: NODE });
}

#[test]
fn b35_a_silent_node_is_asked_after_a_second_and_replaced_two_seconds_later() {
    let mut rig = Rig::live();
    rig.publish(1, "t");
    rig.out.clear();
    rig.pass(999);
    assert_eq!(rig.frames(), []);
    rig.pass(1);
    assert_eq!(rig.frames(), [ToNode::Ping]);
    rig.pass(1_999);
    assert_eq!(rig.statuses(), []);
    rig.pass(1);
    assert_eq!(rig.statuses(), [ClientStatus::Recovering]);
    assert_eq!(rig.settled(), [(1, Some(ErrorCode::OutcomeUnknown))]);
    let leaving = PageFrame::Leaving { node: NODE, graceful: false };
    assert!(rig.out.contains(&ClientOutput::Announce(Packet::single(NODE, leaving))));
    assert!(rig.out.contains(&ClientOutput::StopNode));
}

#[test]
fn b35_a_node_that_answers_is_kept_however_long_a_publication_waits() {
    let mut rig = Rig::live();
    rig.publish(1, "t");
    rig.out.clear();
    let mut pings = 0;
    for _ in 0..9_000 {
        rig.pass(1);
        if rig.frames().contains(&ToNode::Ping) {
            pings += 1;
            rig.port(ToPage::Pong { node: NODE, heard: Vec::new() });
        }
    }
    assert_eq!(rig.statuses(), []);
    assert_eq!(pings, 3, "after 1, 3 and 7 s");
}

#[test]
fn b35_an_idle_client_asks_nothing_and_sets_no_timer() {
    let mut rig = Rig::live();
    rig.pass(600_000);
    assert_eq!((rig.out.len(), rig.client.next_timeout()), (0, None));
}

#[test]
fn b25_a_node_that_never_comes_up_is_given_up_in_bounded_time() {
    let mut rig = Rig::new();
    rig.input(ClientInput::Start);
    rig.pass(15_200);
    assert_eq!(starts(&mut rig), [1, 2]);
    rig.input(ClientInput::NodeStarted { start: 2, shared: false });
    rig.pass(3_200);
    assert_eq!(starts(&mut rig), [3], "attached to nobody");
}

#[test]
fn b26_a_page_leaves_a_shared_node_alive_and_says_bye() {
    let mut rig = Rig::live();
    rig.shared = true;
    rig.page(PageEvent::Hide);
    rig.page(PageEvent::Show);
    rig.node_up(2);
    rig.routes(&[route("t", OWNER, 1)]);
    rig.out.clear();
    rig.page(PageEvent::Hide);
    rig.states();
    let bye = Packet::single(NODE, ToNode::Bye);
    assert_eq!(rig.out[..2], [ClientOutput::Port(bye), ClientOutput::StopNode]);
    assert!(!rig.out.iter().any(|output| matches!(output, ClientOutput::Announce(_))));
    rig.page(PageEvent::Show);
    rig.node_up(3);
    assert!(rig.frames().contains(&ToNode::Nudge));
    rig.routes(&[route("t", OWNER, 1)]);
    assert_eq!(rig.join().position, Some(at("a", 10)));
}

#[test]
fn b26_a_shared_node_started_anew_behind_the_same_port_is_told_everything() {
    let mut rig = Rig::live();
    rig.publish(1, "t");
    rig.out.clear();
    let packet = Packet::single(OTHER, ToPage::Attached { node: OTHER, build: String::new() });
    rig.input(ClientInput::Port(packet));
    assert_eq!(rig.settled(), [(1, Some(ErrorCode::OutcomeUnknown))]);
    let frames = rig.frames();
    assert!(matches!(&frames[..], [ToNode::Attach { .. }, ToNode::Subscribe { .. }]), "{frames:?}");
    assert_eq!(rig.client.identity().node, Some(OTHER));
}

#[test]
fn b26_an_idle_shared_node_is_asked_every_30_seconds_and_replaced_when_it_hangs() {
    let mut rig = Rig::live();
    rig.shared = true;
    rig.page(PageEvent::Hide);
    rig.page(PageEvent::Show);
    rig.node_up(2);
    rig.routes(&[route("t", OWNER, 1)]);
    let call = rig.join();
    rig.joined(&call, 1, at("a", 10), 0..0);
    rig.out.clear();
    rig.pass(29_999);
    assert_eq!(rig.frames(), []);
    rig.pass(1);
    assert_eq!(rig.frames(), [ToNode::Ping]);
    rig.pass(2_000);
    assert!(rig.out.contains(&ClientOutput::StopNode));
}

#[test]
fn b33_tokens_pass_between_the_node_and_the_application() {
    let mut rig = Rig::running();
    rig.port(ToPage::TokenWanted { topic: None });
    assert_eq!(rig.frames(), [ToNode::Visible { visible: true }], "it runs");
    assert!(rig.out.contains(&ClientOutput::TokenWanted { topic: None }));
    rig.input(ClientInput::Token { topic: None, token: Some("secret".into()) });
    assert_eq!(rig.frames(), [ToNode::Token { topic: None, token: Some("secret".into()) }]);
    rig.input(ClientInput::Retry);
    rig.page(PageEvent::Online);
    assert_eq!(rig.frames(), [ToNode::Retry, ToNode::Nudge]);
}

#[test]
fn b32_an_error_names_the_part_it_concerns() {
    let mut rig = Rig::running();
    for (code, source) in [
        (ErrorCode::TokenUnavailable, ErrorSource::Transport),
        (ErrorCode::ConfigInvalid, ErrorSource::Config),
        (ErrorCode::BuildSkew, ErrorSource::Coordination),
    ] {
        rig.port(ToPage::Report { error: code.into() });
        assert_eq!(rig.out, [ClientOutput::Error { source, error: code.into() }]);
        rig.out.clear();
    }
}

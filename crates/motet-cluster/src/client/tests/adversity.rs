//! Frames that are forged, foreign or malformed (B18).

use super::*;

fn bad(rig: &Rig) -> u64 {
    rig.client.counters().bad_frames
}

#[test]
fn b18_data_of_the_present_decision_from_another_node_is_refused() {
    let mut rig = Rig::live();
    rig.data(OTHER, 1, "a", 11..=11);
    rig.head(OTHER, 1, at("a", 99));
    assert_eq!((rig.seen(), rig.joins(), bad(&rig)), (vec![], vec![], 2));
    rig.data(OWNER, 1, "a", 11..=11);
    assert_eq!(rig.seen(), live(11..=11));
}

#[test]
fn b18_frames_that_do_not_belong_on_a_data_channel_are_refused() {
    let mut rig = Rig::live();
    let mut packet = Packet::new(OWNER);
    packet.frames =
        vec![Frame::Leaving { node: NODE, graceful: false }, Frame::Beat { fence: fence(1).fence }];
    rig.input(ClientInput::Data(packet));
    assert_eq!((bad(&rig), rig.out.len()), (2, 0));
}

#[test]
fn b18_messages_out_of_order_or_without_a_payload_are_refused() {
    let mut rig = Rig::live();
    for offsets in [vec![11, 13], vec![12, 11], vec![0], vec![11, 11]] {
        let mut packet = Packet::new(OWNER);
        let messages = heads(&mut packet, offsets.into_iter());
        packet.frames.push(Frame::Data {
            topic: "t".into(),
            fence: fence(1),
            epoch: StreamEpoch::new("a"),
            messages,
        });
        rig.input(ClientInput::Data(packet.clone()));
        packet.payloads.clear();
        rig.input(ClientInput::Data(packet));
    }
    assert_eq!((rig.seen(), bad(&rig)), (vec![], 8));
}

#[test]
fn b18_topics_that_nobody_subscribes_leave_no_trace() {
    let mut rig = Rig::running();
    rig.data(OWNER, 1, "a", 1..=5);
    rig.port(ToPage::NotOwner { topic: "t".into(), call: CallId::from_bits(1) });
    assert_eq!((rig.client.subscriptions().count(), rig.out.len()), (0, 0));
}

#[test]
fn b18_an_answer_that_contradicts_itself_is_refused_and_asked_for_again() {
    let mut rig = Rig::live();
    rig.routes(&[route("t", OTHER, 2)]);
    for (position, offsets, replayed) in [(15, 11..13, 0), (12, 11..13, 3)] {
        let join = rig.joins().pop().expect("a question");
        let (mut frame, payloads) = Rig::answer(&join, 2, at("a", position), offsets);
        frame.replayed = replayed;
        rig.send_joined((frame, payloads));
        rig.pass(100);
    }
    assert_eq!((rig.seen(), bad(&rig)), (vec![], 2));
    let join = rig.joins().pop().expect("a question");
    rig.joined(&join, 2, at("a", 12), 11..13);
    assert_eq!(rig.seen(), live(11..=12));
}

#[test]
fn b18_messages_that_an_answer_calls_earlier_than_the_subscription_are_not_withheld() {
    let mut rig = Rig::live();
    rig.routes(&[route("t", OTHER, 2)]);
    let join = rig.join();
    let (mut frame, payloads) = Rig::answer(&join, 2, at("a", 12), 11..13);
    frame.replayed = 2;
    rig.send_joined((frame, payloads));
    assert_eq!(rig.seen(), live(11..=12));
}

#[test]
fn b18_answers_for_another_page_or_from_another_node_are_refused() {
    let mut rig = Rig::live();
    rig.routes(&[route("t", OTHER, 2)]);
    let mut join = rig.join();
    join.client = ClientId::from_bits(1);
    rig.joined(&join, 2, at("a", 12), 11..13);
    rig.input(ClientInput::Port(Packet::single(OTHER, ToPage::Closed)));
    assert_eq!((rig.seen(), bad(&rig)), (vec![], 2));
}

#[test]
fn b18_a_forged_decision_silences_a_topic_only_until_the_owner_has_answered_often_enough() {
    let mut rig = Rig::live();
    rig.data(OTHER, 999, "a", 500..=500);
    rig.data(OWNER, 1, "a", 11..=11);
    for _ in 0..200 {
        for join in rig.joins() {
            rig.joined(&join, 1, at("a", 11), 11..12);
        }
        rig.pass(10);
        rig.data(OWNER, 1, "a", 11..=11);
    }
    rig.data(OWNER, 1, "a", 501..=501);
    let seen = rig.seen();
    assert_eq!(seen.last(), Some(&Seen::Live("a".into(), 501)), "{seen:?}");
    rig.data(OTHER, 1, "a", 502..=502);
    assert_eq!(rig.seen(), [], "the owner is who the node says it is");
}

#[test]
fn b19_another_build_is_reported_and_a_refusal_ends_the_start() {
    let mut rig = Rig::new();
    rig.input(ClientInput::Start);
    rig.input(ClientInput::NodeStarted { start: 1, shared: false });
    rig.port(ToPage::Attached { node: NODE, build: "newer".into() });
    let skew = Error::new(ErrorCode::BuildSkew);
    let reported = |rig: &Rig| {
        rig.out.iter().any(|output| match output {
            ClientOutput::Error { error, .. } => error.code == ErrorCode::BuildSkew,
            _ => false,
        })
    };
    assert!(reported(&rig));
    let mut rig = Rig::new();
    rig.input(ClientInput::Start);
    rig.input(ClientInput::NodeStarted { start: 1, shared: false });
    rig.port(ToPage::Report { error: skew.clone() });
    assert_eq!(rig.client.status(), &ClientStatus::Failed(skew));
    assert!(rig.out.contains(&ClientOutput::StopNode) && reported(&rig));
}

#[test]
fn b18_what_the_node_has_dropped_is_shown_and_counts_anew_with_another_node() {
    let mut rig = Rig::live();
    rig.port(ToPage::BadFrames { count: 3 });
    rig.port(ToPage::BadFrames { count: 7 });
    assert_eq!(rig.client.counters().node_bad_frames, 7);
    assert_eq!(bad(&rig), 0, "they were not the page's");
    rig.port(ToPage::Attached { node: NODE, build: String::new() });
    assert_eq!(rig.client.counters().node_bad_frames, 0);
}

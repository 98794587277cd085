//! Order, repeats, holes, owner changes, stream resets (B10, B11, B14).

use super::*;

#[test]
fn b10_messages_after_the_ready_position_are_delivered_in_order_and_once() {
    let mut rig = Rig::running();
    rig.subscribe(1, "t", 0);
    rig.routes(&[route("t", OWNER, 1)]);
    let join = rig.join();
    assert_eq!(join.position, None);
    // Posted while the owner is being asked: one the answer covers, one it does not.
    rig.data(OWNER, 1, "a", 10..=11);
    assert_eq!(rig.seen(), []);
    rig.joined(&join, 1, at("a", 10), 11..11);
    assert_eq!(rig.seen(), live(11..=11));
    assert_eq!(rig.states(), [SubscriptionState::Pending, SubscriptionState::Ready(at("a", 10))]);
    rig.data(OWNER, 1, "a", 11..=13);
    rig.data(OWNER, 1, "a", 12..=14);
    assert_eq!(rig.seen(), live(12..=14));
    assert_eq!(rig.client.counters().repeats, 3);
}

#[test]
fn b10_a_hole_is_filled_before_anything_after_it_is_delivered() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "a", 13..=14);
    assert_eq!(rig.seen(), []);
    let join = rig.join();
    assert_eq!(join.position, Some(at("a", 10)));
    rig.data(OWNER, 1, "a", 15..=15);
    assert_eq!(rig.joins(), [], "one question at a time");
    rig.joined(&join, 1, at("a", 14), 11..15);
    assert_eq!(rig.seen(), live(11..=15));
    assert_eq!(rig.client.subscription("t").map(|view| view.phase), Some(TopicPhase::Live));
}

#[test]
fn b11_a_hole_that_nobody_fills_is_one_gap_after_half_a_second() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "a", 13..=14);
    rig.pass(499);
    assert_eq!(rig.seen(), []);
    rig.pass(1);
    let mut expected = vec![Seen::Gap(10, Some(12), GapReason::RepairTimeout)];
    expected.extend(live(13..=14));
    assert_eq!(rig.seen(), expected);
    rig.data(OWNER, 1, "a", 15..=15);
    assert_eq!(rig.seen(), live(15..=15));
}

#[test]
fn b11_a_late_answer_after_the_gap_repeats_nothing() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "a", 13..=14);
    let join = rig.join();
    rig.pass(500);
    rig.seen();
    rig.joined(&join, 1, at("a", 14), 11..15);
    assert_eq!(rig.seen(), []);
}

#[test]
fn b11_a_thousand_held_messages_end_the_wait_for_a_hole() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "a", 12..=1_011);
    assert_eq!(rig.seen(), []);
    rig.data(OWNER, 1, "a", 1_012..=1_012);
    let seen = rig.seen();
    assert_eq!(seen[0], Seen::Gap(10, Some(11), GapReason::RepairTimeout));
    assert_eq!(seen[1..], live(12..=1_012));
    assert_eq!(rig.client.subscription("t").map(|view| view.held), Some(0));
}

#[test]
fn b10_a_head_beyond_the_position_is_asked_for() {
    let mut rig = Rig::live();
    rig.head(OWNER, 1, at("a", 10));
    assert_eq!(rig.joins(), []);
    rig.head(OWNER, 1, at("a", 12));
    let join = rig.join();
    rig.joined(&join, 1, at("a", 12), 11..13);
    assert_eq!(rig.seen(), live(11..=12));
    rig.head(OWNER, 1, at("a", 14));
    rig.pass(500);
    assert_eq!(rig.seen(), [Seen::Gap(12, Some(14), GapReason::RepairTimeout)]);
}

#[test]
fn b10_a_new_owner_is_told_the_position_and_nothing_is_lost_or_repeated() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "a", 11..=12);
    rig.routes(&[route("t", OTHER, 2)]);
    let join = rig.join();
    assert_eq!(join.position, Some(at("a", 12)));
    assert_eq!(rig.states(), [SubscriptionState::Recovering]);
    // The old owner, late, says what the new one will say again.
    rig.data(OWNER, 1, "a", 13..=13);
    assert_eq!(rig.client.counters().stale_frames, 1);
    rig.data(OTHER, 2, "a", 13..=14);
    rig.joined(&join, 2, at("a", 14), 13..15);
    assert_eq!(rig.seen(), live(11..=14));
    assert_eq!(rig.states(), [SubscriptionState::Ready(at("a", 14))]);
}

#[test]
fn b10_a_higher_fence_is_adopted_from_data_that_overtakes_the_route() {
    let mut rig = Rig::live();
    rig.data(OTHER, 2, "a", 11..=12);
    assert_eq!(rig.seen(), live(11..=12));
    rig.data(OWNER, 1, "a", 13..=13);
    assert_eq!(rig.seen(), [], "the old owner counts no more");
    // The node still names the old owner: one of the two is not what it says it is.
    let join = rig.join();
    assert_eq!(join.position, Some(at("a", 12)));
    rig.routes(&[route("t", OTHER, 2)]);
    assert_eq!(rig.joins(), [], "asked already");
    rig.joined(&join, 2, at("a", 12), 13..13);
    assert_eq!(rig.seen(), []);
}

#[test]
fn b10_what_is_no_longer_retained_is_one_gap() {
    let mut rig = Rig::live();
    rig.routes(&[route("t", OTHER, 2)]);
    let join = rig.join();
    let (mut frame, payloads) = Rig::answer(&join, 2, at("a", 25), 21..26);
    frame.missing = Some(GapReason::NotRetained);
    rig.send_joined((frame, payloads));
    let mut expected = vec![Seen::Gap(10, Some(20), GapReason::NotRetained)];
    expected.extend(live(21..=25));
    assert_eq!(rig.seen(), expected);
}

#[test]
fn b10_a_stream_reset_is_exactly_one_gap_whichever_way_it_is_heard_of() {
    for head_first in [true, false] {
        let mut rig = Rig::live();
        if head_first {
            rig.head(OWNER, 1, at("b", 3));
        } else {
            rig.data(OWNER, 1, "b", 4..=4);
        }
        let join = rig.join();
        let (mut frame, payloads) = Rig::answer(&join, 1, at("b", 4), 2..5);
        frame.missing = Some(GapReason::StreamReset);
        rig.send_joined((frame, payloads));
        rig.data(OWNER, 1, "b", 5..=5);
        let mut expected = vec![Seen::Gap(10, None, GapReason::StreamReset)];
        expected.extend((2..=5).map(|offset| Seen::Live("b".into(), offset)));
        assert_eq!(rig.seen(), expected);
        assert_eq!(rig.client.counters().gaps, 1);
    }
}

#[test]
fn b10_a_reset_that_nobody_explains_is_one_gap_after_half_a_second() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "b", 4..=5);
    rig.pass(500);
    assert_eq!(
        rig.seen(),
        [
            Seen::Gap(10, None, GapReason::RepairTimeout),
            Seen::Live("b".into(), 4),
            Seen::Live("b".into(), 5)
        ]
    );
    // A straggler of the old stream is no news, but the owner is asked.
    rig.data(OWNER, 1, "a", 11..=11);
    assert_eq!(rig.seen(), []);
    let join = rig.joins().pop().expect("a question");
    rig.joined(&join, 1, at("b", 5), 6..6);
    assert_eq!(rig.seen(), []);
}

#[test]
fn b10_what_was_held_of_an_epoch_that_the_owner_has_left_is_forgotten() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "b", 9..=9);
    let join = rig.join();
    // The answer names a third epoch: the stream was reset once more before it was asked.
    let (mut frame, payloads) = Rig::answer(&join, 1, at("c", 1), 1..2);
    frame.missing = Some(GapReason::StreamReset);
    rig.send_joined((frame, payloads));
    rig.pass(5_000);
    assert_eq!(
        rig.seen(),
        [Seen::Gap(10, None, GapReason::StreamReset), Seen::Live("c".into(), 1)]
    );
}

#[test]
fn b11_a_long_catch_up_in_several_parts_arrives_in_order() {
    let mut rig = Rig::live();
    rig.routes(&[route("t", OTHER, 2)]);
    let join = rig.join();
    for (last, offsets) in [(15, 11..16), (20, 16..21), (22, 21..23)] {
        let (mut frame, payloads) = Rig::answer(&join, 2, at("a", last), offsets);
        frame.more = last != 22;
        rig.send_joined((frame, payloads));
    }
    assert_eq!(rig.seen(), live(11..=22));
    assert_eq!(rig.client.subscription("t").map(|view| view.phase), Some(TopicPhase::Live));
}

#[test]
fn b11_a_lost_part_is_asked_for_again_and_not_skipped() {
    let mut rig = Rig::live();
    rig.routes(&[route("t", OTHER, 2)]);
    let join = rig.join();
    let (mut frame, payloads) = Rig::answer(&join, 2, at("a", 12), 11..13);
    frame.more = true;
    rig.send_joined((frame, payloads));
    rig.joined(&join, 2, at("a", 20), 16..21);
    assert_eq!(rig.seen(), live(11..=12));
    rig.pass(20);
    let join = rig.join();
    assert_eq!(join.position, Some(at("a", 12)));
    rig.joined(&join, 2, at("a", 20), 13..21);
    assert_eq!(rig.seen(), live(13..=20));
}

#[test]
fn b11_a_first_subscriber_gets_the_replay_it_wants_and_others_what_they_want() {
    let mut rig = Rig::running();
    rig.subscribe(1, "t", 3);
    rig.subscribe(2, "t", 1);
    rig.subscribe(3, "t", 0);
    rig.routes(&[route("t", OWNER, 1)]);
    let join = rig.join();
    assert_eq!(join.replay, 3);
    let (mut frame, payloads) = Rig::answer(&join, 1, at("a", 9), 7..10);
    frame.replayed = 3;
    rig.send_joined((frame, payloads));
    assert_eq!(
        rig.seen(),
        [
            Seen::Old(Recipients::One(1), 7),
            Seen::Old(Recipients::One(1), 8),
            Seen::Old(Recipients::One(1), 9),
            Seen::Old(Recipients::One(2), 9),
        ]
    );
    rig.data(OWNER, 1, "a", 10..=10);
    assert_eq!(rig.seen(), live(10..=10));
}

#[test]
fn b11_a_late_handler_gets_the_last_messages_from_the_page_itself() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "a", 11..=20);
    rig.seen();
    rig.subscribe(2, "t", 3);
    let old = |offset| Seen::Old(Recipients::One(2), offset);
    assert_eq!(rig.seen(), [old(18), old(19), old(20)]);
    assert_eq!(rig.frames(), []);
}

#[test]
fn b11_kept_messages_are_bounded_per_topic_and_in_all() {
    let mut rig = Rig::live_with(|config| {
        config.ring_messages = 100;
        config.ring_bytes = 500;
        config.ring_bytes_total = 300;
    });
    rig.data(OWNER, 1, "a", 11..=400);
    assert!(rig.client.counters().ring_bytes <= 300);
    rig.seen();
    rig.subscribe(2, "t", 100);
    let seen = rig.seen();
    assert!(seen.len() >= 10 && seen.len() <= 30, "{}", seen.len());
    assert_eq!(seen.last(), Some(&Seen::Old(Recipients::One(2), 400)));
}

#[test]
fn b11_an_owner_without_history_gets_what_the_page_has_kept() {
    let mut rig = Rig::live();
    rig.data(OWNER, 1, "a", 11..=13);
    rig.frames();
    rig.port(ToPage::RingWanted { topic: "t".into(), fence: fence(2) });
    rig.port(ToPage::RingWanted { topic: "unknown".into(), fence: fence(2) });
    let frames = rig.frames();
    let [ToNode::Ring { topic, fence: asked, epoch, messages }] = &frames[..] else {
        panic!("one ring, not {frames:?}")
    };
    assert_eq!((topic.as_str(), *asked, epoch.as_str()), ("t", fence(2), "a"));
    let offsets: Vec<_> = messages.iter().map(|message| message.offset).collect();
    assert_eq!(offsets, [11, 12, 13]);
}

#[test]
fn b14_a_message_id_seen_before_is_dropped_when_that_is_asked_for() {
    for dedupe in [true, false] {
        let mut rig = Rig::live_with(|config| config.dedupe_by_id = dedupe);
        for offset in 11..=13 {
            let mut packet = Packet::new(OWNER);
            let mut messages = heads(&mut packet, offset..=offset);
            messages[0].message_id = Some(if offset == 13 { "new" } else { "same" }.into());
            packet.frames.push(Frame::Data {
                topic: "t".into(),
                fence: fence(1),
                epoch: StreamEpoch::new("a"),
                messages,
            });
            rig.input(ClientInput::Data(packet));
        }
        let expected = if dedupe { [live(11..=11), live(13..=13)].concat() } else { live(11..=13) };
        assert_eq!(rig.seen(), expected);
        assert_eq!(rig.client.counters().id_repeats, u64::from(dedupe));
    }
}

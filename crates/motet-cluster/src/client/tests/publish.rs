//! Publications: one outcome each, one in flight per topic (B12, `settles`).

use super::*;
use crate::frame::PublishFrame;

fn sent(rig: &mut Rig) -> Vec<PublishFrame> {
    let publish = |frame| match frame {
        ToNode::Publish(frame) => Some(frame),
        _ => None,
    };
    rig.frames().into_iter().filter_map(publish).collect()
}

#[test]
fn b12_one_is_in_flight_per_topic_and_the_next_follows_when_it_settles() {
    let mut rig = Rig::running();
    for (number, topic) in [(1, "t"), (2, "t"), (3, "u")] {
        rig.publish(number, topic);
    }
    let first = sent(&mut rig);
    let topics: Vec<_> = first.iter().map(|frame| frame.topic.as_str()).collect();
    assert_eq!(topics, ["t", "u"]);
    rig.published(first[0].call, None, false);
    assert_eq!(rig.settled(), [(1, None)]);
    let second = sent(&mut rig);
    assert_eq!(second.len(), 1);
    rig.published(second[0].call, Some(ErrorCode::PublishRejected), false);
    rig.published(first[1].call, Some(ErrorCode::OutcomeUnknown), false);
    assert_eq!(
        rig.settled(),
        [(2, Some(ErrorCode::PublishRejected)), (3, Some(ErrorCode::OutcomeUnknown))]
    );
    rig.published(first[1].call, None, false);
    assert_eq!((rig.settled(), rig.client.counters().late_publish_answers), (vec![], 1));
}

#[test]
fn b12_publications_of_one_drain_travel_in_one_packet_with_their_payloads() {
    let mut rig = Rig::running();
    for number in 1..=3 {
        rig.client.handle(
            rig.now,
            ClientInput::Publish {
                correlation: CorrelationId::from_bits(number),
                call: PublishCall {
                    topic: format!("topic.{number}"),
                    payload: number * 11,
                    size: 8,
                    message_id: Some("m".into()),
                    timestamp_ms: Some(5),
                    idempotency_key: Some("mine".into()),
                    deadline: Some(Duration::from_secs(3)),
                },
            },
        );
    }
    let Some(ClientOutput::Port(packet)) = rig.client.poll_output() else { panic!("a packet") };
    assert_eq!(packet.payloads, [11, 22, 33]);
    for (slot, frame) in packet.frames.iter().enumerate() {
        let ToNode::Publish(frame) = frame else { panic!("{frame:?}") };
        assert_eq!((frame.slot, frame.remaining_ms), (slot as u32, 3_000));
        assert_eq!(frame.idempotency_key.as_deref(), Some("mine"));
    }
}

#[test]
fn b12_what_was_not_done_is_sent_again_under_the_same_key() {
    for code in [ErrorCode::PeerGone, ErrorCode::TransportUnavailable, ErrorCode::ResourceBusy] {
        let mut rig = Rig::running();
        rig.publish(1, "t");
        rig.publish(2, "t");
        let first = sent(&mut rig);
        rig.published(first[0].call, Some(code), false);
        assert_eq!(rig.settled(), []);
        rig.pass(200);
        let again = sent(&mut rig);
        assert_eq!((again.len(), again[0].slot), (1, 0), "the second waits for the first");
        assert_eq!(again[0].idempotency_key, first[0].idempotency_key);
        assert_ne!(again[0].call, first[0].call);
        rig.published(again[0].call, None, false);
        assert_eq!(rig.settled(), [(1, None)]);
    }
}

/// A page whose one publication went out again, because nobody knows what became of it.
fn resent() -> (Rig, PublishFrame) {
    let mut rig = Rig::running();
    rig.publish(1, "t");
    let first = sent(&mut rig);
    rig.published(first[0].call, Some(ErrorCode::OutcomeUnknown), true);
    rig.pass(200);
    let again = sent(&mut rig);
    assert_eq!(again[0].idempotency_key, first[0].idempotency_key);
    (rig, again[0].clone())
}

#[test]
fn b12_an_unknown_outcome_is_resent_only_where_the_server_drops_repeats() {
    let (mut rig, again) = resent();
    rig.published(again.call, Some(ErrorCode::OutcomeUnknown), false);
    assert_eq!(rig.settled(), [(1, Some(ErrorCode::OutcomeUnknown))]);
    assert_eq!(sent(&mut rig), []);
}

#[test]
fn b12_a_refusal_after_an_attempt_that_may_have_arrived_leaves_the_outcome_unknown() {
    let (mut rig, again) = resent();
    rig.published(again.call, Some(ErrorCode::PublishRejected), true);
    assert_eq!(rig.settled(), [(1, Some(ErrorCode::OutcomeUnknown))]);
}

#[test]
fn b12_a_refuser_that_names_a_time_is_not_disturbed_before_it() {
    let mut rig = Rig::running();
    rig.publish(1, "t");
    let first = sent(&mut rig);
    let busy = Error { retry_after_ms: Some(3_000), ..ErrorCode::RateLimited.into() };
    rig.port(ToPage::Published { call: first[0].call, error: Some(busy), idempotent: false });
    rig.pass(2_999);
    assert_eq!(sent(&mut rig), []);
    rig.pass(201);
    assert_eq!(sent(&mut rig).len(), 1);
}

#[test]
fn b12_a_dead_node_leaves_what_was_sent_unknown_and_the_rest_waiting() {
    for idempotent in [false, true] {
        let mut rig = Rig::running();
        rig.publish(1, "u");
        let call = sent(&mut rig)[0].call;
        rig.published(call, None, idempotent);
        rig.publish(2, "t");
        rig.publish(3, "t");
        let key = sent(&mut rig)[0].idempotency_key.clone();
        rig.settled();
        rig.input(ClientInput::NodeGone { start: 1, error: ErrorCode::NodeUnavailable.into() });
        let unknown = (2, Some(ErrorCode::OutcomeUnknown));
        assert_eq!(rig.settled(), if idempotent { vec![] } else { vec![unknown] });
        rig.pass(200);
        rig.node_up(2);
        let again = sent(&mut rig);
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].idempotency_key == key, idempotent);
    }
}

#[test]
fn b12_the_deadline_tells_not_done_from_unknown() {
    let mut rig = Rig::running();
    rig.publish(1, "t");
    rig.publish(2, "t");
    rig.pass_alive(9_999);
    assert_eq!(rig.settled(), []);
    rig.pass(1);
    assert_eq!(
        rig.settled(),
        [(1, Some(ErrorCode::OutcomeUnknown)), (2, Some(ErrorCode::DeadlineExceeded))]
    );
}

#[test]
fn b12_a_repeat_that_comes_too_late_says_nothing_about_the_first_attempt() {
    for (outcome, told) in [
        (ErrorCode::OutcomeUnknown, ErrorCode::OutcomeUnknown),
        (ErrorCode::PeerGone, ErrorCode::DeadlineExceeded),
    ] {
        let mut rig = Rig::running();
        rig.publish(1, "t");
        let first = sent(&mut rig);
        rig.published(first[0].call, Some(outcome), true);
        rig.pass_alive(9_999);
        let again = sent(&mut rig);
        rig.published(again[0].call, Some(ErrorCode::DeadlineExceeded), true);
        assert_eq!((rig.settled(), sent(&mut rig)), (vec![], vec![]));
        rig.pass(1);
        assert_eq!(rig.settled(), [(1, Some(told))]);
    }
}

#[test]
fn b12_a_publication_made_before_the_start_waits_and_settles_in_time() {
    let mut rig = Rig::new();
    rig.publish(1, "t");
    rig.pass(10_000);
    assert_eq!(rig.settled(), [(1, Some(ErrorCode::DeadlineExceeded))]);
    rig.publish(2, "t");
    rig.input(ClientInput::Start);
    rig.node_up(1);
    assert_eq!(sent(&mut rig).len(), 1);
}

#[test]
fn b12_the_oldest_that_was_not_sent_makes_room_in_a_full_queue() {
    let mut rig = Rig::running_with(|config| config.publish_queue = 3);
    for number in 1..=5 {
        rig.publish(number, "t");
    }
    assert_eq!(
        rig.settled(),
        [(2, Some(ErrorCode::QueueOverflow)), (3, Some(ErrorCode::QueueOverflow))]
    );
    assert_eq!(rig.client.pending_publishes().len(), 3);
}

#[test]
fn b12_an_aborted_publication_settles_once_and_makes_way() {
    let mut rig = Rig::running();
    for number in 1..=3 {
        rig.publish(number, "t");
    }
    let first = sent(&mut rig);
    for number in [2, 1, 1] {
        rig.input(ClientInput::Abort { correlation: CorrelationId::from_bits(number) });
    }
    let aborted = Some(ErrorCode::Aborted);
    assert_eq!(rig.settled(), [(2, aborted), (1, aborted)]);
    assert_eq!(sent(&mut rig).len(), 1, "the third");
    rig.published(first[0].call, None, false);
    assert_eq!(rig.settled(), []);
}

#[test]
fn b13_publishing_to_a_pattern_is_an_error() {
    let mut rig = Rig::running();
    rig.publish(1, "chat.*");
    assert_eq!(rig.settled(), [(1, Some(ErrorCode::TopicInvalid))]);
}

/// Every planted fault of publishing is one that these tests see.
#[cfg(feature = "planted-faults")]
#[test]
fn planted_faults_of_publishing_do_not_go_unseen() {
    for (fault, test) in [
        (
            "publish-two-in-flight",
            b12_one_is_in_flight_per_topic_and_the_next_follows_when_it_settles as fn(),
        ),
        ("resend-without-key", b12_what_was_not_done_is_sent_again_under_the_same_key),
    ] {
        motet_protocol::fault::plant(Some(fault));
        let outcome = std::panic::catch_unwind(test);
        motet_protocol::fault::plant(None);
        assert!(outcome.is_err(), "{fault} was not seen");
    }
}

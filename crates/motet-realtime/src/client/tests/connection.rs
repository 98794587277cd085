use motet_protocol::ErrorCode;

use super::*;
use crate::message::{Disconnect, ServerErrorCode};

fn backing_off(mut rig: Rig) -> Rig {
    rig.clear();
    rig.closed(1006);
    assert_eq!(disconnected(&rig.events[0]), Some((1006, false)));
    rig.clear();
    rig
}

#[test]
fn connect_and_every_subscribe_travel_in_one_frame() {
    let mut rig = Rig::new();
    rig.subscribe("b");
    rig.op(TransportOp::Open);
    rig.subscribe("a");
    assert_eq!(rig.take_events(), [TransportEvent::Connecting]);
    assert!(rig.frames.is_empty(), "nothing is written before the socket is open");
    rig.open();
    assert_eq!(rig.frames.len(), 1);
    assert_eq!(rig.names(), ["connect", "subscribe a", "subscribe b"]);
    assert!(rig.sent().map(|command| command.id).eq(1..=3));
}

#[test]
fn features_are_those_that_both_sides_have() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.open();
    let Some(Request::Connect(request)) = rig.frames[0][0].request.clone() else { panic!() };
    assert_eq!((request.name.as_str(), request.version.as_str()), ("app", "1"));
    assert_eq!(request.motet, Some(Features::ALL));
    rig.accept(extension(Features { wildcards: true, ..Features::default() }));
    let Some(TransportEvent::Connected(features)) = rig.events.last() else { panic!() };
    assert!(features.wildcards && !features.idempotency && !features.ordered_publish);
}

#[test]
fn repeating_open_opens_no_second_socket() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        rig.op(TransportOp::Open);
    }
    rig.open();
    rig.op(TransportOp::Open);
    rig.accept(ConnectResult::default());
    rig.op(TransportOp::Open);
    assert_eq!(rig.sockets, [Socket::Open(1)]);
    assert_eq!(rig.frames.len(), 1);
}

#[test]
fn a_new_socket_opens_only_after_the_old_one_is_closed() {
    let mut rig = Rig::connected();
    rig.input(Input::Malformed { socket: rig.socket });
    assert_eq!(rig.sockets, [Socket::Close(1)]);
    rig.op(TransportOp::Nudge);
    rig.op(TransportOp::Retry);
    rig.op(TransportOp::Open);
    rig.wait(seconds(14));
    assert_eq!(rig.sockets, [Socket::Close(1)], "not before it is closed");
    rig.closed(1000);
    assert_eq!(rig.sockets, [Socket::Close(1), Socket::Open(2)], "and then at once");
}

#[test]
fn a_socket_that_never_reports_its_end_is_abandoned_in_time() {
    let mut rig = Rig::connected();
    rig.input(Input::Malformed { socket: rig.socket });
    rig.wait(seconds(15));
    assert_eq!(rig.sockets, [Socket::Close(1), Socket::Open(2)]);
    rig.input(Input::Closed { socket: SocketId(1), code: DisconnectCode(1006), reason: "".into() });
    rig.open();
    assert_eq!(rig.names(), ["connect"], "the late end of the old one changes nothing");
}

#[test]
fn what_a_stale_socket_says_is_ignored() {
    let mut rig = Rig::connected();
    rig.closed(1006);
    rig.wait(seconds(1));
    rig.open();
    rig.clear();
    let old = SocketId(1);
    let reply = Reply::new(1, ReplyBody::Connect(Box::default()));
    rig.input(Input::Opened { socket: old });
    rig.input(Input::Message { socket: old, reply, bytes: 1 });
    rig.input(Input::Malformed { socket: old });
    rig.input(Input::NotSent { socket: old, id: 1, error: ErrorCode::PayloadTooLarge.into() });
    rig.input(Input::Closed { socket: old, code: DisconnectCode(3500), reason: String::new() });
    assert!(rig.events.is_empty() && rig.frames.is_empty() && rig.sockets.is_empty());
}

#[test]
fn delays_grow_from_the_minimum_to_the_maximum_with_full_jitter() {
    let mut shortened = 0;
    for seed in 0..20 {
        let mut rig = Rig::with(config(), seed);
        rig.op(TransportOp::Open);
        for attempt in 0..14_u32 {
            let ceiling = Duration::from_millis(100 << attempt.min(20)).min(seconds(30));
            rig.closed(1006);
            let due = rig.client.next_timeout().expect("another attempt is planned");
            assert!(due - rig.now <= ceiling, "attempt {attempt}");
            shortened += u32::from(due - rig.now < ceiling / 2);
            rig.wait(due - rig.now);
            assert_eq!(rig.socket.0, u64::from(attempt) + 2);
        }
    }
    assert!((80..200).contains(&shortened), "{shortened} of 280 in the lower half");
}

#[test]
fn a_server_that_accepts_and_drops_is_not_called_at_the_shortest_delay_for_ever() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    let start = rig.now;
    for _ in 0..30 {
        rig.open();
        rig.accept(ConnectResult::default());
        rig.closed(3011);
        rig.wait_until_due();
    }
    assert!(rig.now - start > seconds(120), "30 attempts in {:?}", rig.now - start);
}

#[test]
fn after_a_stable_connection_the_first_retry_comes_soon() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    for _ in 0..10 {
        rig.closed(1006);
        rig.wait_until_due();
    }
    rig.open();
    rig.accept(ConnectResult::default());
    rig.wait(seconds(5));
    rig.closed(1006);
    assert!(rig.client.next_timeout().unwrap() - rig.now <= Duration::from_millis(100));
}

#[test]
fn a_nudge_tries_at_once_and_resets_the_backoff() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    for _ in 0..9 {
        rig.closed(1006);
        rig.wait_until_due();
    }
    let mut rig = backing_off(rig);
    rig.op(TransportOp::Nudge);
    assert_eq!(rig.sockets.len(), 1);
    rig.closed(1006);
    assert!(rig.client.next_timeout().unwrap() - rig.now <= Duration::from_millis(100));
}

#[test]
fn a_nudge_leaves_a_good_connection_alone() {
    let mut rig = Rig::connected();
    rig.op(TransportOp::Nudge);
    assert!(rig.events.is_empty() && rig.sockets.is_empty() && rig.frames.is_empty());
}

#[test]
fn each_close_code_has_its_verdict() {
    for (code, expected) in [
        (1000, false),
        (1001, false),
        (1006, false),
        (1009, false),
        (3001, false),
        (3008, false),
        (3011, false),
        (3012, false),
        (3499, false),
        (3500, true),
        (3501, true),
        (3503, true),
        (3999, true),
        (4000, false),
        (4499, false),
        (4500, true),
        (4999, true),
    ] {
        let mut rig = Rig::connected();
        rig.closed(code);
        let Some(TransportEvent::Disconnected { error, terminal }) = rig.events.last() else {
            panic!("{code}")
        };
        assert_eq!((error.server_code, *terminal), (Some(code), expected));
        let kind =
            if expected { ErrorCode::ConnectRejected } else { ErrorCode::TransportUnavailable };
        assert_eq!(error.code, kind, "{code}");
        rig.wait(seconds(600));
        assert_eq!(rig.sockets.is_empty(), expected, "{code}");
    }
}

#[test]
fn a_terminal_disconnect_is_retried_by_the_application_alone() {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.closed(3503);
    rig.clear();
    rig.op(TransportOp::Open);
    rig.op(TransportOp::Nudge);
    rig.subscribe("more");
    rig.token(None, None);
    rig.wait(seconds(3_600));
    assert!(rig.sockets.is_empty() && rig.events.is_empty());
    rig.op(TransportOp::Retry);
    rig.open();
    assert_eq!(rig.names(), ["connect", "subscribe more", "subscribe news"]);
}

#[test]
fn a_new_token_retries_a_terminal_disconnect() {
    let mut rig = Rig::connected();
    rig.closed(3500);
    rig.clear();
    rig.token(None, Some("fresh"));
    rig.open();
    assert_eq!(rig.names(), ["connect fresh"]);
}

#[test]
fn a_retry_during_the_last_throes_of_the_socket_waits_for_its_end() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.open();
    rig.say(Reply::error(1, ServerErrorCode::PERMISSION_DENIED));
    assert_eq!(disconnected(rig.events.last().unwrap()), Some((103, true)));
    rig.op(TransportOp::Retry);
    assert_eq!(rig.sockets, [Socket::Open(1), Socket::Close(1)]);
    rig.closed(1000);
    assert_eq!(rig.sockets.last(), Some(&Socket::Open(2)));
}

#[test]
fn a_refused_connect_is_sorted_into_retry_and_terminal() {
    for (code, expected) in [(100, false), (111, false), (101, true), (103, true), (106, true)] {
        let mut rig = Rig::new();
        rig.op(TransportOp::Open);
        rig.open();
        rig.say(Reply::error(1, ServerErrorCode(code)));
        assert_eq!(disconnected(rig.events.last().unwrap()), Some((code, expected)));
        assert_eq!(rig.sockets, [Socket::Open(1), Socket::Close(1)]);
        rig.closed(1000);
        rig.wait(seconds(1));
        assert_eq!(rig.sockets.len(), if expected { 2 } else { 3 }, "{code}");
    }
}

#[test]
fn no_event_follows_a_close() {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.stand("news", stream("e", 0));
    rig.clear();
    let old = rig.socket;
    let publication = Publication { offset: 1, ..Publication::new(1) };
    let reply = Reply::push(Push::publication("news", publication));
    // An event that was not polled yet counts as one that follows.
    rig.client.handle(rig.now, Input::Message { socket: old, reply, bytes: 1 });
    rig.op(TransportOp::Close);
    assert_eq!(rig.sockets, [Socket::Close(1)]);
    rig.live("news", 2);
    rig.closed(1000);
    rig.wait(seconds(600));
    assert!(rig.events.is_empty(), "{:?}", rig.events);
    assert!(rig.frames.is_empty());
    assert_eq!(rig.client.next_timeout(), None);
    rig.op(TransportOp::Open);
    rig.open();
    assert_eq!(rig.names(), ["connect"], "subscriptions were forgotten");
}

#[test]
fn an_open_right_after_a_close_waits_for_the_old_socket() {
    let mut rig = Rig::connected();
    rig.op(TransportOp::Close);
    rig.op(TransportOp::Open);
    rig.op(TransportOp::Close);
    rig.op(TransportOp::Open);
    assert_eq!(rig.sockets, [Socket::Close(1)]);
    rig.closed(1000);
    assert_eq!(rig.sockets, [Socket::Close(1), Socket::Open(2)]);
    assert_eq!(rig.events, [TransportEvent::Connecting]);
}

#[test]
fn a_close_while_the_socket_opens_closes_it() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.op(TransportOp::Close);
    assert_eq!(rig.sockets, [Socket::Open(1), Socket::Close(1)]);
    rig.open();
    assert!(rig.frames.is_empty(), "an opening that comes too late is nothing");
}

#[test]
fn a_socket_that_does_not_open_in_time_is_given_up() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.wait(seconds(10));
    assert_eq!(rig.sockets, [Socket::Open(1), Socket::Close(1)]);
    assert_eq!(disconnected(rig.events.last().unwrap()), Some((0, false)));
}

#[test]
fn a_connect_without_an_answer_is_given_up_after_the_command_timeout() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.open();
    rig.wait(seconds(5));
    assert_eq!(rig.sockets, [Socket::Open(1), Socket::Close(1)]);
    let Some(TransportEvent::Disconnected { error, terminal: false }) = rig.events.last() else {
        panic!()
    };
    assert_eq!(error.code, ErrorCode::RequestTimeout);
}

#[test]
fn a_disconnect_push_counts_like_its_close_code() {
    for (code, expected) in [(DisconnectCode::SHUTDOWN, false), (DisconnectCode::STALE, true)] {
        let mut rig = Rig::connected();
        let event = PushEvent::Disconnect(Disconnect::from(code));
        rig.say(Reply::push(Push { channel: String::new(), event }));
        assert_eq!(disconnected(rig.events.last().unwrap()), Some((code.0, expected)));
        assert_eq!(rig.sockets, [Socket::Close(1)]);
        rig.closed(1000);
        rig.wait(seconds(1));
        assert_eq!(rig.sockets.len(), if expected { 1 } else { 2 });
        assert_eq!(rig.events.iter().filter_map(disconnected).count(), 1, "told once");
    }
}

#[test]
fn every_attempt_is_one_connecting_and_ends_in_one_event() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    for _ in 0..5 {
        rig.closed(1006);
        rig.wait_until_due();
    }
    let events = rig.take_events();
    for pair in events.chunks(2).filter(|pair| pair.len() == 2) {
        assert_eq!(pair[0], TransportEvent::Connecting);
        assert_eq!(disconnected(&pair[1]), Some((1006, false)));
    }
    assert_eq!(events.len(), 11);
}

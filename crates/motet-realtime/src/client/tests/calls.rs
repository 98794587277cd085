use motet_protocol::transport::{HistoryPage, HistoryRequest, PublishRequest};
use motet_protocol::{CallId, Error, ErrorCode};

use super::*;
use crate::message::{HistoryResult, PublishExtension, ServerErrorCode, StreamPosition};

fn publish(number: u64) -> TransportOp<u64> {
    publish_within(number, seconds(10))
}

fn publish_within(number: u64, remaining: Duration) -> TransportOp<u64> {
    TransportOp::Publish(PublishRequest {
        call: CallId::from_bits(number),
        topic: "news".into(),
        payload: number,
        idempotency_key: Some("key".into()),
        message_id: Some("id".into()),
        timestamp_ms: Some(5),
        remaining,
    })
}

fn published(number: u64, result: Result<(), ErrorCode>) -> Event {
    let result = result.map_err(Error::new);
    TransportEvent::Published { call: CallId::from_bits(number), result }
}

fn history(number: u64, since: Option<Position>) -> TransportOp<u64> {
    TransportOp::History(HistoryRequest {
        call: CallId::from_bits(number),
        topic: "news".into(),
        since,
        limit: 50,
        reverse: true,
    })
}

#[test]
fn publications_of_one_drain_share_a_frame_and_keep_their_order() {
    let mut rig = Rig::connected();
    rig.client.handle(rig.now, Input::Op(publish(1)));
    rig.client.handle(rig.now, Input::Op(publish(2)));
    rig.op(publish(3));
    assert_eq!(rig.frames.len(), 1);
    assert_eq!(rig.names(), ["publish 1", "publish 2", "publish 3"]);
    let ids: Vec<_> = rig.sent().map(|command| command.id).collect();
    rig.answer(ids[0], ReplyBody::Publish);
    rig.answer(ids[2], ReplyBody::Publish);
    rig.say(Reply::error(ids[1], ServerErrorCode::PERMISSION_DENIED));
    assert_eq!(rig.events[..2], [published(1, Ok(())), published(3, Ok(()))]);
    let TransportEvent::Published { result: Err(error), .. } = &rig.events[2] else { panic!() };
    assert_eq!((error.code, error.server_code), (ErrorCode::PublishRejected, Some(103)));
}

#[test]
fn a_publication_waits_for_a_connection_that_is_about_to_stand() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.op(publish(1));
    rig.open();
    rig.op(publish(2));
    assert_eq!(rig.names(), ["connect"]);
    rig.accept(ConnectResult::default());
    assert_eq!(rig.names(), ["connect", "publish 1", "publish 2"]);
}

#[test]
fn without_a_connection_in_sight_a_publication_fails_at_once() {
    let unavailable = [published(1, Err(ErrorCode::TransportUnavailable))];
    let mut rig = Rig::new();
    rig.op(publish(1));
    assert_eq!(rig.events, unavailable);
    rig.op(TransportOp::Open);
    rig.closed(1006);
    rig.clear();
    rig.op(publish(1));
    assert_eq!(rig.events, unavailable);
}

#[test]
fn a_publication_is_told_that_the_server_refuses_the_connection_for_good() {
    let refusal = |event: &Event| match event {
        TransportEvent::Published { result: Err(error), .. } => (error.code, error.server_code),
        _ => panic!("{event:?}"),
    };
    let refused = (ErrorCode::ConnectRejected, Some(101));
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.op(publish(1));
    rig.open();
    rig.say(Reply::error(1, ServerErrorCode::UNAUTHORIZED));
    assert_eq!(refusal(rig.events.last().unwrap()), refused, "one that waited for it");
    for closed in [false, true] {
        if closed {
            rig.closed(1000);
        }
        rig.clear();
        rig.op(publish(2));
        assert_eq!(refusal(&rig.events[0]), refused, "one that comes later");
        assert!(rig.sockets.is_empty());
    }
    rig.op(TransportOp::Retry);
    rig.clear();
    rig.op(publish(3));
    assert!(rig.events.is_empty(), "a new attempt is under way");
}

#[test]
fn a_publication_for_which_the_server_closes_the_connection_fails_and_the_client_comes_back() {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.op(publish(1));
    let (socket, id) = (rig.socket, rig.last_id());
    rig.clear();
    rig.input(Input::NotSent { socket, id, error: ErrorCode::PayloadTooLarge.into() });
    rig.closed(1009);
    assert_eq!(rig.events[0], published(1, Err(ErrorCode::PayloadTooLarge)));
    assert_eq!(disconnected(&rig.events[1]), Some((1009, false)));
    rig.wait_until_due();
    rig.open();
    assert_eq!(rig.names(), ["connect", "subscribe news"]);
}

#[test]
fn a_lost_connection_tells_written_from_unwritten() {
    let mut rig = Rig::connected();
    rig.op(publish(1));
    rig.client.handle(rig.now, Input::Op(publish(2)));
    rig.closed(1006);
    assert_eq!(
        rig.events[1..],
        [
            published(1, Err(ErrorCode::OutcomeUnknown)),
            published(2, Err(ErrorCode::TransportUnavailable)),
        ]
    );
    assert!(rig.frames.len() == 1, "what was not written is not written later");
}

#[test]
fn a_failed_attempt_fails_what_waited_for_it() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.op(publish(1));
    rig.op(history(2, None));
    rig.closed(1006);
    let result = Err(ErrorCode::TransportUnavailable.into());
    assert_eq!(
        rig.events[2..],
        [
            published(1, Err(ErrorCode::TransportUnavailable)),
            TransportEvent::History { call: CallId::from_bits(2), result },
        ]
    );
}

#[test]
fn a_publication_held_beyond_its_callers_deadline_is_not_done_and_never_written() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.op(publish_within(1, seconds(2)));
    rig.op(publish_within(2, seconds(5)));
    rig.clear();
    rig.wait(seconds(3));
    assert_eq!(rig.events, [published(1, Err(ErrorCode::DeadlineExceeded))]);
    rig.open();
    rig.accept(ConnectResult::default());
    assert_eq!(rig.names(), ["connect", "publish 2"]);
}

#[test]
fn a_connection_that_stands_after_a_sleep_writes_nothing_that_is_late() {
    let mut rig = Rig::new();
    rig.op(TransportOp::Open);
    rig.open();
    rig.op(publish_within(1, seconds(2)));
    rig.clear();
    // The reply is read before the overdue timer fires.
    rig.now += seconds(3);
    let connect = 1;
    rig.answer(connect, ReplyBody::Connect(Box::default()));
    assert_eq!(rig.events[1..], [published(1, Err(ErrorCode::DeadlineExceeded))]);
    assert!(rig.frames.is_empty());
}

#[test]
fn a_written_publication_is_never_told_as_not_done() {
    let mut rig = Rig::connected();
    rig.op(publish_within(1, seconds(1)));
    rig.wait(seconds(4));
    assert!(rig.events.is_empty(), "its answer may still come");
    rig.wait(seconds(1));
    assert_eq!(rig.events[0], published(1, Err(ErrorCode::OutcomeUnknown)));
}

#[test]
fn the_extension_is_used_only_with_a_server_that_has_it() {
    let sent = |result: ConnectResult<u64>| {
        let mut rig = Rig::new();
        rig.connect(result);
        rig.op(publish(1));
        let Some(Request::Publish(request)) = rig.frames[0][0].request.clone() else { panic!() };
        request.motet
    };
    assert_eq!(sent(ConnectResult::default()), None);
    let tagged =
        PublishExtension { key: None, message_id: Some("id".into()), timestamp_ms: Some(5) };
    assert_eq!(sent(extension(Features::default())), Some(tagged.clone()));
    let keyed = PublishExtension { key: Some("key".into()), ..tagged };
    assert_eq!(sent(extension(Features::ALL)), Some(keyed));
}

#[test]
fn calls_beyond_the_limit_are_refused() {
    let mut rig = Rig::with(ClientConfig { calls_max: 2, ..config() }, 1);
    rig.op(TransportOp::Open);
    rig.clear();
    for number in 1..=3 {
        rig.op(publish(number));
    }
    assert_eq!(rig.events, [published(3, Err(ErrorCode::Backpressure))]);
}

#[test]
fn a_slow_down_of_the_server_is_told_as_such() {
    let mut rig = Rig::connected();
    rig.op(publish(1));
    rig.say(Reply::error(rig.last_id(), ServerErrorCode::TOO_MANY_REQUESTS));
    let [TransportEvent::Published { result: Err(error), .. }] = &rig.events[..] else { panic!() };
    assert_eq!(error.code, ErrorCode::RateLimited);
}

#[test]
fn history_is_asked_for_and_answered() {
    let mut rig = Rig::connected();
    rig.op(history(1, Some(position("e", 4))));
    let Some(Request::History(request)) = rig.frames[0][0].request.clone() else { panic!() };
    assert_eq!(request.since, Some(StreamPosition { offset: 4, epoch: "e".into() }));
    assert_eq!((request.limit, request.reverse), (50, true));
    let publications = vec![Publication { offset: 3, ..Publication::new(30) }];
    let result = HistoryResult { publications, epoch: "e".into(), offset: 9 };
    rig.answer(rig.last_id(), ReplyBody::History(result));
    let [TransportEvent::History { result: Ok(page), .. }] = &rig.events[..] else { panic!() };
    let HistoryPage { position: top, publications } = page;
    assert_eq!(*top, position("e", 9));
    assert_eq!((publications[0].offset, publications[0].payload), (3, 30));
}

#[test]
fn history_that_the_server_does_not_give_is_a_typed_error() {
    let mut rig = Rig::connected();
    rig.op(history(1, None));
    rig.say(Reply::error(rig.last_id(), ServerErrorCode::NOT_AVAILABLE));
    let [TransportEvent::History { result: Err(error), .. }] = &rig.events[..] else { panic!() };
    assert_eq!((error.code, error.server_code), (ErrorCode::HistoryUnavailable, Some(108)));
}

#[test]
fn a_command_that_could_not_be_encoded_fails_alone() {
    let mut rig = Rig::connected();
    rig.op(publish(1));
    let error: Error = ErrorCode::Uncloneable.into();
    let (socket, id) = (rig.socket, rig.last_id());
    rig.input(Input::NotSent { socket, id, error });
    assert_eq!(rig.events, [published(1, Err(ErrorCode::Uncloneable))]);
    assert!(rig.sockets.is_empty());
}

#[test]
fn an_answer_of_another_kind_ends_the_connection() {
    let mut rig = Rig::connected();
    rig.op(publish(1));
    rig.answer(rig.last_id(), ReplyBody::Unsubscribe);
    assert_eq!(rig.events[0], published(1, Err(ErrorCode::OutcomeUnknown)));
    assert_eq!(disconnected(&rig.events[1]), Some((0, false)));
    assert_eq!(rig.sockets, [Socket::Close(1)]);
}

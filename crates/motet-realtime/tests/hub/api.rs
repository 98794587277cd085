use std::collections::{BTreeMap, BTreeSet};

use motet_realtime::hub::{ApiErrorCode, ApiPublish, ApiRequest, ApiResult, ApiSubscribe};
use motet_realtime::message::{DisconnectCode, PushEvent, ReplyBody, StreamPosition};
use motet_realtime::server::ServerSubscription;

use crate::world::{World, options};

fn publication(data: u64) -> ApiPublish<u64> {
    ApiPublish {
        data,
        skip_history: false,
        tags: BTreeMap::new(),
        idempotency_key: String::new(),
        version: None,
    }
}

fn code(result: Result<ApiResult<u64>, motet_realtime::hub::ApiError>) -> ApiErrorCode {
    result.expect_err("an error").code
}

#[test]
fn an_api_publication_tells_its_place_and_carries_no_info() {
    let mut world = World::new(options());
    let session = world.client();
    world.subscribe(session, "a");
    let result = world.api(ApiRequest::Publish(publication(1), "a".to_owned()));
    let Ok(ApiResult::Published(Some(position))) = result else { panic!("a place") };
    assert_eq!(position.offset, 1);
    let pushed = world.pushed(session);
    assert!(pushed[0].info.is_none());
    let result = world.api(ApiRequest::Publish(publication(1), "nowhere:a".to_owned()));
    assert_eq!(code(result), ApiErrorCode::UnknownChannel);
}

#[test]
fn skip_history_leaves_no_trace_in_the_stream() {
    let mut world = World::new(options());
    let skip = ApiPublish { skip_history: true, ..publication(1) };
    let result = world.api(ApiRequest::Publish(skip, "a".to_owned()));
    assert!(matches!(result, Ok(ApiResult::Published(None))));
}

#[test]
fn an_idempotency_key_of_the_api_is_answered_with_the_first_outcome() {
    let mut world = World::new(options());
    let keyed = |data| ApiPublish { idempotency_key: "k".to_owned(), ..publication(data) };
    let offsets =
        [1, 2].map(|data| match world.api(ApiRequest::Publish(keyed(data), "a".to_owned())) {
            Ok(ApiResult::Published(Some(position))) => position.offset,
            result => panic!("expected a place, got {result:?}"),
        });
    assert_eq!(offsets, [1, 1]);
}

#[test]
fn an_idempotency_key_of_the_api_has_at_most_255_bytes() {
    let mut world = World::new(options());
    let keyed =
        |length| ApiPublish { idempotency_key: "k".repeat(length), ..publication(length as u64) };
    world.api(ApiRequest::Publish(keyed(255), "a".to_owned())).expect("published");
    for request in [
        ApiRequest::Publish(keyed(256), "a".to_owned()),
        ApiRequest::Broadcast(keyed(256), vec!["a".to_owned()]),
    ] {
        let error = world.api(request).expect_err("a key that is too long");
        assert_eq!(error.code, ApiErrorCode::BadRequest);
        assert!(error.message.contains("255 bytes"), "{error}");
    }
}

#[test]
fn a_broadcast_answers_for_each_channel() {
    let mut world = World::new(options());
    let channels = ["a", "nowhere:b", "plain:c"].map(str::to_owned).to_vec();
    let Ok(ApiResult::Broadcast(results)) =
        world.api(ApiRequest::Broadcast(publication(1), channels))
    else {
        panic!("a broadcast")
    };
    assert!(matches!(&results[0], Ok(Some(position)) if position.offset == 1));
    assert!(matches!(&results[1], Err(error) if error.code == ApiErrorCode::UnknownChannel));
    assert!(matches!(&results[2], Ok(None)));
    let empty = world.api(ApiRequest::Broadcast(publication(1), Vec::new()));
    assert_eq!(code(empty), ApiErrorCode::BadRequest);
}

#[test]
fn a_broadcast_takes_ten_thousand_channels_and_says_so_beyond() {
    let mut world = World::new(options());
    let channels = |count: u32| (0..count).map(|number| format!("plain:{number}")).collect();
    let full = world.api(ApiRequest::Broadcast(publication(1), channels(10_000)));
    let Ok(ApiResult::Broadcast(results)) = full else { panic!("a broadcast") };
    assert!(results.len() == 10_000 && results.iter().all(Result::is_ok));
    let error = world
        .api(ApiRequest::Broadcast(publication(1), channels(10_001)))
        .expect_err("too many channels");
    assert_eq!(error.code, ApiErrorCode::BadRequest);
    assert!(error.message.contains("1 to 10000 channels"), "{error}");
}

#[test]
fn the_server_subscribes_unsubscribes_and_disconnects_users() {
    let mut world = World::new(options());
    let (session, other) = (world.user("42"), world.user("43"));
    world.inbox(session);
    let subscribe = ApiSubscribe {
        user: "42".to_owned(),
        client: String::new(),
        channel: "closed:a".to_owned(),
        subscription: ServerSubscription { data: Some(5), ..ServerSubscription::default() },
        expires_in: None,
        recover_since: None,
    };
    world.api(ApiRequest::Subscribe(Box::new(subscribe))).expect("subscribed");
    world.api(ApiRequest::Publish(publication(1), "closed:a".to_owned())).expect("published");
    let unsubscribe = ApiRequest::Unsubscribe {
        user: "42".to_owned(),
        channel: "closed:a".to_owned(),
        client: String::new(),
    };
    world.api(unsubscribe).expect("unsubscribed");
    let kinds: Vec<_> = world
        .inbox(session)
        .into_iter()
        .map(|reply| match reply.body {
            ReplyBody::Push(push) => match push.event {
                PushEvent::Subscribe(push) if push.data == Some(5) => "subscribe",
                PushEvent::Publication(_) => "publication",
                PushEvent::Unsubscribe(end) if end.code.0 == 2000 => "unsubscribe",
                _ => "other",
            },
            _ => "reply",
        })
        .collect();
    assert_eq!(kinds, ["subscribe", "publication", "unsubscribe"]);
    let disconnect = ApiRequest::Disconnect {
        user: "42".to_owned(),
        client: String::new(),
        keep: BTreeSet::new(),
        disconnect: DisconnectCode::FORCE_DISCONNECT.into(),
    };
    world.api(disconnect).expect("disconnected");
    assert_eq!(world.closed.get(&session), Some(&3503));
    assert!(!world.closed.contains_key(&other));
}

#[test]
fn refresh_prolongs_or_expires_and_tells_the_client() {
    let mut world = World::new(options());
    let session = world.user("42");
    world.inbox(session);
    let refresh = |expired| ApiRequest::Refresh {
        user: "42".to_owned(),
        client: String::new(),
        expired,
        expires_in: Some(core::time::Duration::from_secs(90)),
    };
    world.api(refresh(false)).expect("refreshed");
    let told = world.inbox(session).into_iter().any(|reply| match reply.body {
        ReplyBody::Push(push) => {
            matches!(push.event, PushEvent::Refresh(push) if push.expires && push.ttl == 90)
        }
        _ => false,
    });
    assert!(told);
    world.api(refresh(true)).expect("expired");
    assert_eq!(world.closed.get(&session), Some(&3005));
}

#[test]
fn history_is_read_and_removed() {
    let mut world = World::new(options());
    world.api(ApiRequest::Publish(publication(1), "a".to_owned())).expect("published");
    let history = |epoch: &str| ApiRequest::History {
        channel: "a".to_owned(),
        limit: 10,
        since: Some(StreamPosition { offset: 0, epoch: epoch.to_owned() }),
        reverse: false,
    };
    let Ok(ApiResult::History(page)) = world.api(history("")) else { panic!("a page") };
    assert_eq!(page.publications.len(), 1);
    assert_eq!(code(world.api(history("another"))), ApiErrorCode::UnrecoverablePosition);
    world.api(ApiRequest::HistoryRemove("a".to_owned())).expect("removed");
    let Ok(ApiResult::History(page)) = world.api(history("")) else { panic!("a page") };
    assert_eq!((page.publications.len(), page.top.offset), (0, 1));
    let plain = world.api(ApiRequest::HistoryRemove("plain:a".to_owned()));
    assert_eq!(code(plain), ApiErrorCode::NotAvailable);
    let closed = world.api(ApiRequest::Presence("closed:a".to_owned()));
    assert_eq!(code(closed), ApiErrorCode::NotAvailable);
}

#[test]
fn channels_and_info_count_what_is_there() {
    let mut world = World::new(options());
    let (first, second) = (world.user("1"), world.user("1"));
    world.subscribe(first, "a");
    world.subscribe(second, "a");
    world.subscribe(second, "b");
    let Ok(ApiResult::Channels(channels)) = world.api(ApiRequest::Channels) else {
        panic!("channels")
    };
    assert_eq!(channels, BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]));
    let Ok(ApiResult::Info(stats)) = world.api(ApiRequest::Info) else { panic!("info") };
    assert_eq!((stats.clients, stats.users, stats.channels, stats.subscriptions), (2, 1, 2, 3));
}

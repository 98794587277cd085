//! Whatever is encoded is decoded to the same messages, in both encodings.

use std::collections::BTreeMap;

use bytes::Bytes;
use motet_realtime::codec::{Encoding, Limits};
use motet_realtime::message::{
    ClientInfo, Command, ConnectRequest, ConnectResult, Disconnect, DisconnectCode, ErrorReply,
    Features, HistoryRequest, HistoryResult, PresenceRequest, PresenceResult, PresenceStatsRequest,
    PresenceStatsResult, Publication, PublishExtension, PublishRequest, Push, PushEvent,
    RefreshPush, RefreshRequest, RefreshResult, Reply, ReplyBody, Request, RpcRequest, RpcResult,
    SendRequest, ServerErrorCode, StreamPosition, SubRefreshRequest, SubRefreshResult,
    SubscribePush, SubscribeRequest, SubscribeResult, Unsubscribe, UnsubscribeCode,
    UnsubscribeRequest,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::BoxedStrategy;

type Payloads = BoxedStrategy<Bytes>;

fn text() -> BoxedStrategy<String> {
    prop_oneof![Just(String::new()), any::<String>(), "[a-z:#]{1,8}"].boxed()
}

fn json_payload() -> Payloads {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<String>().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            vec((any::<String>(), inner), 0..4)
                .prop_map(|members| members.into_iter().collect::<serde_json::Value>()),
        ]
    })
    .prop_map(|value| Bytes::from(value.to_string()))
    .boxed()
}

fn binary_payload() -> Payloads {
    vec(any::<u8>(), 1..64).prop_map(Bytes::from).boxed()
}

fn client_info(payload: &Payloads) -> BoxedStrategy<ClientInfo<Bytes>> {
    (text(), text(), option::of(payload.clone()), option::of(payload.clone()))
        .prop_map(|(user, client, conn_info, chan_info)| ClientInfo {
            user,
            client,
            conn_info,
            chan_info,
        })
        .boxed()
}

fn publication(payload: &Payloads) -> BoxedStrategy<Publication<Bytes>> {
    let data = prop_oneof![Just(Bytes::new()), payload.clone()];
    let tags = btree_map(text(), text(), 0..3);
    (data, option::of(client_info(payload)), any::<u64>(), tags, any::<i64>(), text(), text())
        .prop_map(|(data, info, offset, tags, time, channel, epoch)| Publication {
            data,
            info,
            offset,
            tags,
            time,
            channel,
            epoch,
        })
        .boxed()
}

fn features() -> BoxedStrategy<Option<Features>> {
    option::of(any::<(bool, bool, bool)>().prop_map(|(idempotency, ordered_publish, wildcards)| {
        Features { idempotency, ordered_publish, wildcards }
    }))
    .boxed()
}

fn subscribe_request(payload: &Payloads) -> BoxedStrategy<SubscribeRequest<Bytes>> {
    let texts = (text(), text(), text(), text());
    let numbers = any::<(u64, i64, i32)>();
    (texts, any::<[bool; 5]>(), numbers, option::of(payload.clone()))
        .prop_map(|((channel, token, epoch, delta), bits, (offset, flag, kind), data)| {
            let [recover, positioned, recoverable, join_leave, tags_filter] = bits;
            SubscribeRequest {
                channel,
                token,
                recover,
                epoch,
                offset,
                data,
                positioned,
                recoverable,
                join_leave,
                delta,
                tags_filter,
                flag,
                kind,
            }
        })
        .boxed()
}

fn subscribe_result(payload: &Payloads) -> BoxedStrategy<SubscribeResult<Bytes>> {
    let publications = vec(publication(payload), 0..3);
    (any::<[bool; 5]>(), any::<(u32, u64)>(), text(), publications, option::of(payload.clone()))
        .prop_map(|(bits, (ttl, offset), epoch, publications, data)| {
            let [expires, recoverable, recovered, positioned, was_recovering] = bits;
            SubscribeResult {
                expires,
                ttl,
                recoverable,
                epoch,
                publications,
                recovered,
                offset,
                positioned,
                data,
                was_recovering,
            }
        })
        .boxed()
}

fn connect_request(payload: &Payloads) -> BoxedStrategy<ConnectRequest<Bytes>> {
    let subs = btree_map(text(), subscribe_request(payload), 0..3);
    let headers = btree_map(text(), text(), 0..3);
    let texts = (text(), text(), text());
    (texts, option::of(payload.clone()), subs, headers, any::<i64>(), features())
        .prop_map(|((token, name, version), data, subs, headers, flag, motet)| ConnectRequest {
            token,
            data,
            subs,
            name,
            version,
            headers,
            flag,
            motet,
        })
        .boxed()
}

fn connect_result(payload: &Payloads) -> BoxedStrategy<ConnectResult<Bytes>> {
    let subs = btree_map(text(), subscribe_result(payload), 0..2);
    let texts = (text(), text(), text(), text());
    let numbers = any::<(bool, u32, u32, bool, i64)>();
    (texts, numbers, option::of(payload.clone()), subs, features())
        .prop_map(|((client, version, session, node), numbers, data, subs, motet)| {
            let (expires, ttl, ping, pong, time) = numbers;
            ConnectResult {
                client,
                version,
                expires,
                ttl,
                data,
                subs,
                ping,
                pong,
                session,
                node,
                time,
                motet,
            }
        })
        .boxed()
}

fn publish_request(payload: &Payloads) -> BoxedStrategy<PublishRequest<Bytes>> {
    let extension = (option::of(text()), option::of(text()), option::of(any::<i64>())).prop_map(
        |(key, message_id, timestamp_ms)| PublishExtension { key, message_id, timestamp_ms },
    );
    (text(), payload.clone(), any::<i32>(), option::of(extension))
        .prop_map(|(channel, data, kind, motet)| PublishRequest { channel, data, kind, motet })
        .boxed()
}

fn history_request() -> BoxedStrategy<HistoryRequest> {
    let since = (any::<u64>(), text()).prop_map(|(offset, epoch)| StreamPosition { offset, epoch });
    (text(), any::<i32>(), option::of(since), any::<bool>())
        .prop_map(|(channel, limit, since, reverse)| HistoryRequest {
            channel,
            limit,
            since,
            reverse,
        })
        .boxed()
}

fn command(payload: &Payloads) -> BoxedStrategy<Command<Bytes>> {
    let request = prop_oneof![
        connect_request(payload).prop_map(|request| Request::Connect(Box::new(request))),
        subscribe_request(payload).prop_map(|request| Request::Subscribe(Box::new(request))),
        text().prop_map(|channel| Request::Unsubscribe(UnsubscribeRequest { channel })),
        publish_request(payload).prop_map(Request::Publish),
        text().prop_map(|channel| Request::Presence(PresenceRequest { channel })),
        text().prop_map(|channel| Request::PresenceStats(PresenceStatsRequest { channel })),
        history_request().prop_map(Request::History),
        Just(Request::Ping),
        payload.clone().prop_map(|data| Request::Send(SendRequest { data })),
        (payload.clone(), text())
            .prop_map(|(data, method)| Request::Rpc(RpcRequest { data, method })),
        text().prop_map(|token| Request::Refresh(RefreshRequest { token })),
        (text(), text(), any::<i32>()).prop_map(|(channel, token, kind)| {
            Request::SubRefresh(SubRefreshRequest { channel, token, kind })
        }),
    ];
    (any::<u32>(), option::weighted(0.95, request))
        .prop_map(|(id, request)| Command { id, request })
        .boxed()
}

fn push(payload: &Payloads) -> BoxedStrategy<Push<Bytes>> {
    let subscribe = (any::<(bool, u64, bool)>(), text(), option::of(payload.clone())).prop_map(
        |((recoverable, offset, positioned), epoch, data)| {
            PushEvent::Subscribe(SubscribePush { recoverable, epoch, offset, positioned, data })
        },
    );
    let event = prop_oneof![
        publication(payload).prop_map(|publication| PushEvent::Publication(Box::new(publication))),
        client_info(payload).prop_map(|info| PushEvent::Join(Box::new(info))),
        client_info(payload).prop_map(|info| PushEvent::Leave(Box::new(info))),
        (any::<u32>(), text()).prop_map(|(code, reason)| {
            PushEvent::Unsubscribe(Unsubscribe { code: UnsubscribeCode(code), reason })
        }),
        payload.clone().prop_map(PushEvent::Message),
        subscribe,
        (any::<u32>(), text()).prop_map(|(code, reason)| {
            PushEvent::Disconnect(Disconnect { code: DisconnectCode(code), reason })
        }),
        any::<(bool, u32)>()
            .prop_map(|(expires, ttl)| PushEvent::Refresh(RefreshPush { expires, ttl })),
        Just(PushEvent::Unknown),
    ];
    (text(), event).prop_map(|(channel, event)| Push { channel, event }).boxed()
}

fn reply(payload: &Payloads) -> BoxedStrategy<Reply<Bytes>> {
    let presence = btree_map(text(), client_info(payload), 0..3);
    let history = (vec(publication(payload), 0..3), text(), any::<u64>());
    let body = prop_oneof![
        Just(ReplyBody::Empty),
        (any::<u32>(), text(), any::<bool>()).prop_map(|(code, message, temporary)| {
            ReplyBody::Error(ErrorReply { code: ServerErrorCode(code), message, temporary })
        }),
        push(payload).prop_map(ReplyBody::Push),
        connect_result(payload).prop_map(|result| ReplyBody::Connect(Box::new(result))),
        subscribe_result(payload).prop_map(|result| ReplyBody::Subscribe(Box::new(result))),
        Just(ReplyBody::Unsubscribe),
        Just(ReplyBody::Publish),
        presence.prop_map(|presence: BTreeMap<_, _>| {
            ReplyBody::Presence(PresenceResult { presence })
        }),
        any::<(u32, u32)>().prop_map(|(num_clients, num_users)| {
            ReplyBody::PresenceStats(PresenceStatsResult { num_clients, num_users })
        }),
        history.prop_map(|(publications, epoch, offset)| {
            ReplyBody::History(HistoryResult { publications, epoch, offset })
        }),
        Just(ReplyBody::Ping),
        payload.clone().prop_map(|data| ReplyBody::Rpc(RpcResult { data })),
        (text(), text(), any::<(bool, u32)>()).prop_map(|(client, version, (expires, ttl))| {
            ReplyBody::Refresh(RefreshResult { client, version, expires, ttl })
        }),
        any::<(bool, u32)>().prop_map(|(expires, ttl)| {
            ReplyBody::SubRefresh(SubRefreshResult { expires, ttl })
        }),
    ];
    (any::<u32>(), body).prop_map(|(id, body)| Reply { id, body }).boxed()
}

fn commands_again(encoding: Encoding, commands: &[Command<Bytes>]) -> Vec<Command<Bytes>> {
    let mut frame = Vec::new();
    for command in commands {
        encoding.append_command(&mut frame, command).expect("what was encoded is decoded");
    }
    encoding
        .commands(frame.into(), Limits::REPLIES)
        .expect("what was encoded is decoded")
        .collect::<Result<_, _>>()
        .expect("what was encoded is decoded")
}

fn replies_again(encoding: Encoding, replies: &[Reply<Bytes>]) -> Vec<Reply<Bytes>> {
    let mut frame = Vec::new();
    for reply in replies {
        encoding.append_reply(&mut frame, reply).expect("what was encoded is decoded");
    }
    encoding
        .replies(frame.into(), Limits::REPLIES)
        .expect("what was encoded is decoded")
        .collect::<Result<_, _>>()
        .expect("what was encoded is decoded")
}

proptest! {
    #[test]
    fn commands_survive_json(commands in vec(command(&json_payload()), 1..5)) {
        prop_assert_eq!(commands_again(Encoding::Json, &commands), commands);
    }

    #[test]
    fn commands_survive_protobuf(commands in vec(command(&binary_payload()), 1..5)) {
        prop_assert_eq!(commands_again(Encoding::Protobuf, &commands), commands);
    }

    #[test]
    fn replies_survive_json(replies in vec(reply(&json_payload()), 0..5)) {
        prop_assert_eq!(replies_again(Encoding::Json, &replies), replies);
    }

    #[test]
    fn replies_survive_protobuf(replies in vec(reply(&binary_payload()), 0..5)) {
        prop_assert_eq!(replies_again(Encoding::Protobuf, &replies), replies);
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in vec(any::<u8>(), 0..200)) {
        let frame = Bytes::from(bytes);
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            if let Ok(commands) = encoding.commands(frame.clone(), Limits::COMMANDS) {
                commands.for_each(drop);
            }
            if let Ok(replies) = encoding.replies(frame.clone(), Limits::REPLIES) {
                replies.for_each(drop);
            }
        }
    }
}

//! Both codecs against one table of messages, derived by hand from the protocol's fields.

use std::collections::BTreeMap;

use bytes::Bytes;
use motet_realtime::codec::{Encoding, Limits};
use motet_realtime::message::{
    ClientInfo, Command, ConnectRequest, ConnectResult, Disconnect, DisconnectCode, Features,
    HistoryRequest, HistoryResult, PresenceRequest, PresenceResult, PresenceStatsRequest,
    PresenceStatsResult, Publication, PublishExtension, PublishRequest, Push, PushEvent,
    RefreshPush, RefreshRequest, RefreshResult, Reply, ReplyBody, Request, RpcRequest, RpcResult,
    SendRequest, ServerErrorCode, StreamPosition, SubRefreshRequest, SubRefreshResult,
    SubscribePush, SubscribeRequest, SubscribeResult, Unsubscribe, UnsubscribeCode,
    UnsubscribeRequest,
};

const COMMANDS: &str = include_str!("../vectors/commands.tsv");
const REPLIES: &str = include_str!("../vectors/replies.tsv");

struct Row {
    name: &'static str,
    json: &'static str,
    protobuf: Vec<u8>,
}

fn rows(table: &'static str) -> Vec<Row> {
    table
        .lines()
        .map(|line| {
            let mut columns = line.split('\t');
            let (name, json) = (
                columns.next().expect("the table is well formed"),
                columns.next().expect("the table is well formed"),
            );
            let hex = columns.next().expect("the table is well formed").as_bytes().chunks(2);
            let protobuf = hex
                .map(|pair| {
                    u8::from_str_radix(
                        std::str::from_utf8(pair).expect("the table is well formed"),
                        16,
                    )
                    .expect("the table is well formed")
                })
                .collect();
            Row { name, json, protobuf }
        })
        .collect()
}

fn json(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

fn command(name: &str) -> Command<Bytes> {
    let channel = || "news".to_owned();
    let (id, request) = match name {
        "connect with everything" => {
            let sub = SubscribeRequest {
                recover: true,
                epoch: "e1".into(),
                offset: 4,
                ..SubscribeRequest::default()
            };
            let request = ConnectRequest {
                token: "t".into(),
                data: Some(json(r#"{"a":1}"#)),
                subs: BTreeMap::from([("s:1".to_owned(), sub)]),
                name: "js".into(),
                version: "5.8.0".into(),
                headers: texts(&[("h", "v")]),
                flag: 1,
                motet: Some(Features { wildcards: false, ..Features::ALL }),
            };
            (1, Request::Connect(Box::new(request)))
        }
        "connect with nothing" => (1, Request::Connect(Box::default())),
        "subscribe with recovery" => {
            let request = SubscribeRequest {
                channel: channel(),
                token: "t".into(),
                recover: true,
                epoch: "ep".into(),
                offset: 300,
                data: Some(json("[]")),
                positioned: true,
                recoverable: true,
                join_leave: true,
                flag: 3,
                ..SubscribeRequest::default()
            };
            (2, Request::Subscribe(Box::new(request)))
        }
        "subscribe to what is not offered" => {
            let request = SubscribeRequest {
                channel: "m".into(),
                delta: "fossil".into(),
                tags_filter: true,
                kind: 1,
                ..SubscribeRequest::default()
            };
            (2, Request::Subscribe(Box::new(request)))
        }
        "unsubscribe" => (3, Request::Unsubscribe(UnsubscribeRequest { channel: channel() })),
        "publish" => {
            let data = json(r#""hi""#);
            (4, Request::Publish(PublishRequest { channel: channel(), data, kind: 0, motet: None }))
        }
        "publish with the extension" => {
            let motet = PublishExtension {
                key: Some("k".into()),
                message_id: Some("m1".into()),
                timestamp_ms: Some(0),
            };
            let channel = "n".into();
            let motet = Some(motet);
            (4, Request::Publish(PublishRequest { channel, data: json("null"), kind: 0, motet }))
        }
        "presence" => (5, Request::Presence(PresenceRequest { channel: channel() })),
        "presence stats" => {
            (6, Request::PresenceStats(PresenceStatsRequest { channel: channel() }))
        }
        "history" => {
            let since = Some(StreamPosition { offset: 5, epoch: "ep".into() });
            let request = HistoryRequest { channel: channel(), limit: -1, since, reverse: true };
            (7, Request::History(request))
        }
        "ping of a client" => (8, Request::Ping),
        "send" => (0, Request::Send(SendRequest { data: json("{}") })),
        "rpc" => (9, Request::Rpc(RpcRequest { data: json("7"), method: "sum".into() })),
        "refresh" => (10, Request::Refresh(RefreshRequest { token: "t2".into() })),
        "sub refresh" => {
            let request = SubRefreshRequest { channel: channel(), token: "t3".into(), kind: 1 };
            (11, Request::SubRefresh(request))
        }
        "pong" => return Command::pong(),
        other => panic!("the table names {other}, which has no typed form here"),
    };
    Command::new(id, request)
}

fn reply(name: &str) -> Reply<Bytes> {
    let info = || ClientInfo::new("u".into(), "c1".into());
    let (id, body) = match name {
        "ping" => return Reply::ping(),
        "error" => return Reply::error(2, ServerErrorCode::INTERNAL),
        "connect" => {
            let sub = SubscribeResult {
                recoverable: true,
                epoch: "ep".into(),
                offset: 2,
                positioned: true,
                ..SubscribeResult::default()
            };
            let result = ConnectResult {
                client: "c1".into(),
                version: "0.1.0".into(),
                expires: true,
                ttl: 3600,
                data: Some(json("{}")),
                subs: BTreeMap::from([("#u".to_owned(), sub)]),
                ping: 25,
                pong: true,
                session: "s".into(),
                node: "n".into(),
                time: 1_700_000_000_000,
                motet: Some(Features::ALL),
            };
            (1, ReplyBody::Connect(Box::new(result)))
        }
        "subscribe" => {
            let full =
                ClientInfo { conn_info: Some(json("{}")), chan_info: Some(json("[]")), ..info() };
            let second = Publication {
                info: Some(full),
                offset: 302,
                tags: texts(&[("motet_id", "m1")]),
                time: 5,
                ..Publication::new(json("2"))
            };
            let result = SubscribeResult {
                expires: true,
                ttl: 60,
                recoverable: true,
                epoch: "ep".into(),
                publications: vec![
                    Publication { offset: 301, ..Publication::new(json("1")) },
                    second,
                ],
                recovered: true,
                offset: 300,
                positioned: true,
                data: Some(json("0")),
                was_recovering: true,
            };
            (2, ReplyBody::Subscribe(Box::new(result)))
        }
        "unsubscribe" => (3, ReplyBody::Unsubscribe),
        "publish" => (4, ReplyBody::Publish),
        "presence" => {
            let presence = BTreeMap::from([("c1".to_owned(), info())]);
            (5, ReplyBody::Presence(PresenceResult { presence }))
        }
        "presence stats" => {
            (6, ReplyBody::PresenceStats(PresenceStatsResult { num_clients: 3, num_users: 2 }))
        }
        "history" => {
            let first =
                Publication { offset: 1, epoch: "ep".into(), ..Publication::new(json("1")) };
            let result = HistoryResult { publications: vec![first], epoch: "ep".into(), offset: 1 };
            (7, ReplyBody::History(result))
        }
        "rpc" => (9, ReplyBody::Rpc(RpcResult { data: json("42") })),
        "refresh" => {
            let result = RefreshResult {
                client: "c1".into(),
                version: "0.1.0".into(),
                expires: true,
                ttl: 60,
            };
            (10, ReplyBody::Refresh(result))
        }
        "sub refresh" => (11, ReplyBody::SubRefresh(SubRefreshResult { expires: true, ttl: 60 })),
        push => return Reply::push(push_of(push)),
    };
    Reply::new(id, body)
}

fn push_of(name: &str) -> Push<Bytes> {
    let (channel, event) = match name {
        "push publication" => {
            let publication = Publication { offset: 7, ..Publication::new(json(r#"{"x":1}"#)) };
            return Push::publication("news", publication);
        }
        "push publication of a pattern" => {
            let publication = Publication {
                offset: 2,
                channel: "n:a".into(),
                epoch: "ep".into(),
                ..Publication::new(json("1"))
            };
            return Push::publication("n:*", publication);
        }
        "push join" => {
            ("news", PushEvent::Join(Box::new(ClientInfo::new("u".into(), "c1".into()))))
        }
        "push leave" => {
            ("news", PushEvent::Leave(Box::new(ClientInfo::new(String::new(), "c1".into()))))
        }
        "push unsubscribe" => {
            ("news", PushEvent::Unsubscribe(Unsubscribe::from(UnsubscribeCode::INSUFFICIENT_STATE)))
        }
        "push message" => ("", PushEvent::Message(json("1"))),
        "push subscribe" => {
            let push = SubscribePush {
                recoverable: true,
                epoch: "ep".into(),
                offset: 9,
                positioned: true,
                data: Some(json("{}")),
            };
            ("#u", PushEvent::Subscribe(push))
        }
        "push disconnect" => {
            ("", PushEvent::Disconnect(Disconnect::from(DisconnectCode::SHUTDOWN)))
        }
        "push refresh" => ("", PushEvent::Refresh(RefreshPush { expires: true, ttl: 30 })),
        "push unknown" => ("x", PushEvent::Unknown),
        other => panic!("the table names {other}, which has no typed form here"),
    };
    Push { channel: channel.into(), event }
}

fn same_json(encoded: &[u8], expected: &str) -> bool {
    let parsed: serde_json::Value =
        serde_json::from_slice(encoded).expect("the table is well formed");
    parsed == serde_json::from_str::<serde_json::Value>(expected).expect("the table is well formed")
        && encoded.len() == expected.len()
}

#[test]
fn commands_match_the_table_in_both_encodings_and_directions() {
    for row in rows(COMMANDS) {
        let typed = command(row.name);
        let mut frame = Vec::new();
        Encoding::Json.append_command(&mut frame, &typed).unwrap();
        assert!(same_json(&frame, row.json), "{}: {}", row.name, String::from_utf8_lossy(&frame));
        let mut frame = Vec::new();
        Encoding::Protobuf.append_command(&mut frame, &typed).unwrap();
        assert_eq!(frame, row.protobuf, "{}", row.name);
        for (encoding, frame) in
            [(Encoding::Json, json(row.json)), (Encoding::Protobuf, row.protobuf.into())]
        {
            let decoded: Result<Vec<_>, _> =
                encoding.commands(frame, Limits::COMMANDS).unwrap().collect();
            assert_eq!(decoded.unwrap(), std::slice::from_ref(&typed), "{} {encoding:?}", row.name);
        }
    }
}

#[test]
fn replies_match_the_table_in_both_encodings_and_directions() {
    for row in rows(REPLIES) {
        let typed = reply(row.name);
        let mut frame = Vec::new();
        Encoding::Json.append_reply(&mut frame, &typed).unwrap();
        assert!(same_json(&frame, row.json), "{}: {}", row.name, String::from_utf8_lossy(&frame));
        let mut frame = Vec::new();
        Encoding::Protobuf.append_reply(&mut frame, &typed).unwrap();
        assert_eq!(frame, row.protobuf, "{}", row.name);
        for (encoding, frame) in
            [(Encoding::Json, json(row.json)), (Encoding::Protobuf, row.protobuf.into())]
        {
            let decoded: Result<Vec<_>, _> =
                encoding.replies(frame, Limits::REPLIES).unwrap().collect();
            assert_eq!(decoded.unwrap(), std::slice::from_ref(&typed), "{} {encoding:?}", row.name);
        }
    }
}

#[test]
fn a_frame_of_all_messages_gives_them_back_in_order() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let typed: Vec<_> = rows(REPLIES).iter().map(|row| reply(row.name)).collect();
        let mut frame = Vec::new();
        let mut shared = Vec::new();
        for reply in &typed {
            encoding.append_reply(&mut frame, reply).unwrap();
            let mut alone = Vec::new();
            encoding.append_reply(&mut alone, reply).unwrap();
            encoding.append_encoded(&mut shared, &alone);
        }
        assert_eq!(frame, shared, "appending an encoded message is encoding it in place");
        let decoded: Result<Vec<_>, _> =
            encoding.replies(frame.into(), Limits::REPLIES).unwrap().collect();
        assert_eq!(decoded.unwrap(), typed);
    }
}

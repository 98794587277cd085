//! The messages as Protobuf. Field numbers are the protocol's.

use std::collections::BTreeMap;

use bytes::Bytes;

macro_rules! messages {
    ($($name:ident { $($field:ident: $field_type:ty [$($attribute:tt)+],)* })*) => {$(
        #[derive(Clone, PartialEq, prost::Message)]
        pub(super) struct $name {
            $(#[prost($($attribute)+)] pub(super) $field: $field_type,)*
        }
    )*};
}

messages! {
    Command {
        id: u32 [uint32, tag = "1"],
        connect: Option<ConnectRequest> [message, optional, tag = "4"],
        subscribe: Option<SubscribeRequest> [message, optional, tag = "5"],
        unsubscribe: Option<Channel> [message, optional, tag = "6"],
        publish: Option<PublishRequest> [message, optional, tag = "7"],
        presence: Option<Channel> [message, optional, tag = "8"],
        presence_stats: Option<Channel> [message, optional, tag = "9"],
        history: Option<HistoryRequest> [message, optional, tag = "10"],
        ping: Option<Empty> [message, optional, tag = "11"],
        send: Option<Data> [message, optional, tag = "12"],
        rpc: Option<RpcRequest> [message, optional, tag = "13"],
        refresh: Option<RefreshRequest> [message, optional, tag = "14"],
        sub_refresh: Option<SubRefreshRequest> [message, optional, tag = "15"],
    }
    Reply {
        id: u32 [uint32, tag = "1"],
        error: Option<Error> [message, optional, tag = "2"],
        push: Option<Push> [message, optional, tag = "4"],
        connect: Option<ConnectResult> [message, optional, tag = "5"],
        subscribe: Option<SubscribeResult> [message, optional, tag = "6"],
        unsubscribe: Option<Empty> [message, optional, tag = "7"],
        publish: Option<Empty> [message, optional, tag = "8"],
        presence: Option<PresenceResult> [message, optional, tag = "9"],
        presence_stats: Option<PresenceStats> [message, optional, tag = "10"],
        history: Option<HistoryResult> [message, optional, tag = "11"],
        ping: Option<Empty> [message, optional, tag = "12"],
        rpc: Option<Data> [message, optional, tag = "13"],
        refresh: Option<RefreshResult> [message, optional, tag = "14"],
        sub_refresh: Option<Expiry> [message, optional, tag = "15"],
    }
    Push {
        channel: String [string, tag = "2"],
        publication: Option<Publication> [message, optional, tag = "4"],
        join: Option<Info> [message, optional, tag = "5"],
        leave: Option<Info> [message, optional, tag = "6"],
        unsubscribe: Option<Unsubscribe> [message, optional, tag = "7"],
        message: Option<Data> [message, optional, tag = "8"],
        subscribe: Option<SubscribePush> [message, optional, tag = "9"],
        disconnect: Option<Disconnect> [message, optional, tag = "11"],
        refresh: Option<Expiry> [message, optional, tag = "12"],
    }
    Publication {
        data: Bytes [bytes = "bytes", tag = "4"],
        info: Option<ClientInfo> [message, optional, tag = "5"],
        offset: u64 [uint64, tag = "6"],
        tags: BTreeMap<String, String> [btree_map = "string, string", tag = "7"],
        time: i64 [int64, tag = "9"],
        channel: String [string, tag = "10"],
        epoch: String [string, tag = "14"],
    }
    ClientInfo {
        user: String [string, tag = "1"],
        client: String [string, tag = "2"],
        conn_info: Bytes [bytes = "bytes", tag = "3"],
        chan_info: Bytes [bytes = "bytes", tag = "4"],
    }
    Info {
        info: Option<ClientInfo> [message, optional, tag = "1"],
    }
    Data {
        data: Bytes [bytes = "bytes", tag = "1"],
    }
    RpcRequest {
        data: Bytes [bytes = "bytes", tag = "1"],
        method: String [string, tag = "2"],
    }
    Channel {
        channel: String [string, tag = "1"],
    }
    Error {
        code: u32 [uint32, tag = "1"],
        message: String [string, tag = "2"],
        temporary: bool [bool, tag = "3"],
    }
    Unsubscribe {
        code: u32 [uint32, tag = "2"],
        reason: String [string, tag = "3"],
    }
    Disconnect {
        code: u32 [uint32, tag = "1"],
        reason: String [string, tag = "2"],
    }
    ConnectRequest {
        token: String [string, tag = "1"],
        data: Bytes [bytes = "bytes", tag = "2"],
        subs: BTreeMap<String, SubscribeRequest> [btree_map = "string, message", tag = "3"],
        name: String [string, tag = "4"],
        version: String [string, tag = "5"],
        headers: BTreeMap<String, String> [btree_map = "string, string", tag = "6"],
        flag: i64 [int64, tag = "7"],
        motet: Option<Features> [message, optional, tag = "1000"],
    }
    ConnectResult {
        client: String [string, tag = "1"],
        version: String [string, tag = "2"],
        expires: bool [bool, tag = "3"],
        ttl: u32 [uint32, tag = "4"],
        data: Bytes [bytes = "bytes", tag = "5"],
        subs: BTreeMap<String, SubscribeResult> [btree_map = "string, message", tag = "6"],
        ping: u32 [uint32, tag = "7"],
        pong: bool [bool, tag = "8"],
        session: String [string, tag = "9"],
        node: String [string, tag = "10"],
        time: i64 [int64, tag = "11"],
        motet: Option<Features> [message, optional, tag = "1000"],
    }
    SubscribeRequest {
        channel: String [string, tag = "1"],
        token: String [string, tag = "2"],
        recover: bool [bool, tag = "3"],
        epoch: String [string, tag = "6"],
        offset: u64 [uint64, tag = "7"],
        data: Bytes [bytes = "bytes", tag = "8"],
        positioned: bool [bool, tag = "9"],
        recoverable: bool [bool, tag = "10"],
        join_leave: bool [bool, tag = "11"],
        delta: String [string, tag = "12"],
        tags_filter: Option<Empty> [message, optional, tag = "13"],
        flag: i64 [int64, tag = "14"],
        kind: i32 [int32, tag = "15"],
    }
    SubscribeResult {
        expires: bool [bool, tag = "1"],
        ttl: u32 [uint32, tag = "2"],
        recoverable: bool [bool, tag = "3"],
        epoch: String [string, tag = "6"],
        publications: Vec<Publication> [message, repeated, tag = "7"],
        recovered: bool [bool, tag = "8"],
        offset: u64 [uint64, tag = "9"],
        positioned: bool [bool, tag = "10"],
        data: Bytes [bytes = "bytes", tag = "11"],
        was_recovering: bool [bool, tag = "12"],
    }
    SubscribePush {
        recoverable: bool [bool, tag = "1"],
        epoch: String [string, tag = "4"],
        offset: u64 [uint64, tag = "5"],
        positioned: bool [bool, tag = "6"],
        data: Bytes [bytes = "bytes", tag = "7"],
    }
    PublishRequest {
        channel: String [string, tag = "1"],
        data: Bytes [bytes = "bytes", tag = "2"],
        kind: i32 [int32, tag = "3"],
        motet: Option<PublishExtension> [message, optional, tag = "1000"],
    }
    PublishExtension {
        key: Option<String> [string, optional, tag = "1"],
        message_id: Option<String> [string, optional, tag = "2"],
        timestamp_ms: Option<i64> [int64, optional, tag = "3"],
    }
    Features {
        idempotency: bool [bool, tag = "1"],
        ordered_publish: bool [bool, tag = "2"],
        wildcards: bool [bool, tag = "3"],
    }
    PresenceResult {
        presence: BTreeMap<String, ClientInfo> [btree_map = "string, message", tag = "1"],
    }
    PresenceStats {
        num_clients: u32 [uint32, tag = "1"],
        num_users: u32 [uint32, tag = "2"],
    }
    HistoryRequest {
        channel: String [string, tag = "1"],
        limit: i32 [int32, tag = "7"],
        since: Option<StreamPosition> [message, optional, tag = "8"],
        reverse: bool [bool, tag = "9"],
    }
    HistoryResult {
        publications: Vec<Publication> [message, repeated, tag = "1"],
        epoch: String [string, tag = "2"],
        offset: u64 [uint64, tag = "3"],
    }
    StreamPosition {
        offset: u64 [uint64, tag = "1"],
        epoch: String [string, tag = "2"],
    }
    RefreshRequest {
        token: String [string, tag = "1"],
    }
    RefreshResult {
        client: String [string, tag = "1"],
        version: String [string, tag = "2"],
        expires: bool [bool, tag = "3"],
        ttl: u32 [uint32, tag = "4"],
    }
    SubRefreshRequest {
        channel: String [string, tag = "1"],
        token: String [string, tag = "2"],
        kind: i32 [int32, tag = "3"],
    }
    Expiry {
        expires: bool [bool, tag = "1"],
        ttl: u32 [uint32, tag = "2"],
    }
    Empty {}
}

//! The messages as JSON objects. Member names are the protocol's; every member is optional.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

pub(super) type Text<'a> = Cow<'a, str>;

/// Takes a payload as it stands, `null` included, which an `Option` alone would swallow.
fn payload<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

macro_rules! objects {
    ($($name:ident {
        $(payload $($payload:ident),+;)?
        $(object $($object:ident: $object_type:ty),+;)?
        $(plain $($plain:ident: $plain_type:ty),+;)?
    })*) => {$(
        #[derive(Default, Serialize, Deserialize)]
        pub(super) struct $name<'a> {
            $($(#[serde(skip_serializing_if = "Option::is_none")]
            pub(super) $plain: Option<$plain_type>,)+)?
            $($(#[serde(default, deserialize_with = "payload", borrow, skip_serializing_if = "Option::is_none")]
            pub(super) $payload: Option<&'a RawValue>,)+)?
            $($(#[serde(borrow, skip_serializing_if = "Option::is_none")]
            pub(super) $object: Option<$object_type>,)+)?
        }
    )*};
}

macro_rules! values {
    ($($name:ident { $($field:ident: $field_type:ty),* })*) => {$(
        #[derive(Clone, Copy, Default, Serialize, Deserialize)]
        pub(super) struct $name {
            $(#[serde(skip_serializing_if = "Option::is_none")]
            pub(super) $field: Option<$field_type>,)*
        }
    )*};
}

objects! {
    Command {
        object
            connect: ConnectRequest<'a>,
            subscribe: SubscribeRequest<'a>,
            publish: PublishRequest<'a>,
            send: Data<'a>,
            rpc: RpcRequest<'a>;
        plain
            id: u32,
            unsubscribe: Channel<'a>,
            presence: Channel<'a>,
            presence_stats: Channel<'a>,
            history: HistoryRequest<'a>,
            ping: Empty,
            refresh: RefreshRequest<'a>,
            sub_refresh: SubRefreshRequest<'a>;
    }
    Reply {
        object
            push: Push<'a>,
            connect: ConnectResult<'a>,
            subscribe: SubscribeResult<'a>,
            presence: PresenceResult<'a>,
            history: HistoryResult<'a>,
            rpc: Data<'a>;
        plain
            id: u32,
            error: Error<'a>,
            unsubscribe: Empty,
            publish: Empty,
            presence_stats: PresenceStats,
            ping: Empty,
            refresh: RefreshResult<'a>,
            sub_refresh: Expiry;
    }
    Push {
        object
            r#pub: Publication<'a>,
            join: Info<'a>,
            leave: Info<'a>,
            message: Data<'a>,
            subscribe: SubscribePush<'a>;
        plain
            channel: Text<'a>,
            unsubscribe: Coded<'a>,
            disconnect: Coded<'a>,
            refresh: Expiry;
    }
    Publication {
        payload data;
        object info: ClientInfo<'a>;
        plain
            offset: u64,
            tags: BTreeMap<Text<'a>, Text<'a>>,
            time: i64,
            channel: Text<'a>,
            epoch: Text<'a>;
    }
    ClientInfo {
        payload conn_info, chan_info;
        plain user: Text<'a>, client: Text<'a>;
    }
    Info { object info: ClientInfo<'a>; }
    Data { payload data; }
    RpcRequest {
        payload data;
        plain method: Text<'a>;
    }
    Channel { plain channel: Text<'a>; }
    Error { plain code: u32, message: Text<'a>, temporary: bool; }
    Coded { plain code: u32, reason: Text<'a>; }
    ConnectRequest {
        payload data;
        object subs: BTreeMap<Text<'a>, SubscribeRequest<'a>>;
        plain
            token: Text<'a>,
            name: Text<'a>,
            version: Text<'a>,
            headers: BTreeMap<Text<'a>, Text<'a>>,
            flag: i64,
            motet: Features;
    }
    ConnectResult {
        payload data;
        object subs: BTreeMap<Text<'a>, SubscribeResult<'a>>;
        plain
            client: Text<'a>,
            version: Text<'a>,
            expires: bool,
            ttl: u32,
            ping: u32,
            pong: bool,
            session: Text<'a>,
            node: Text<'a>,
            time: i64,
            motet: Features;
    }
    SubscribeRequest {
        payload data;
        plain
            channel: Text<'a>,
            token: Text<'a>,
            recover: bool,
            epoch: Text<'a>,
            offset: u64,
            positioned: bool,
            recoverable: bool,
            join_leave: bool,
            delta: Text<'a>,
            tf: Empty,
            flag: i64,
            r#type: i32;
    }
    SubscribeResult {
        payload data;
        object publications: Vec<Publication<'a>>;
        plain
            expires: bool,
            ttl: u32,
            recoverable: bool,
            epoch: Text<'a>,
            recovered: bool,
            offset: u64,
            positioned: bool,
            was_recovering: bool;
    }
    SubscribePush {
        payload data;
        plain recoverable: bool, epoch: Text<'a>, offset: u64, positioned: bool;
    }
    PublishRequest {
        payload data;
        plain channel: Text<'a>, r#type: i32, motet: PublishExtension<'a>;
    }
    PublishExtension { plain key: Text<'a>, message_id: Text<'a>, timestamp_ms: i64; }
    PresenceResult { object presence: BTreeMap<Text<'a>, ClientInfo<'a>>; }
    HistoryRequest {
        plain channel: Text<'a>, limit: i32, since: StreamPosition<'a>, reverse: bool;
    }
    HistoryResult {
        object publications: Vec<Publication<'a>>;
        plain epoch: Text<'a>, offset: u64;
    }
    StreamPosition { plain offset: u64, epoch: Text<'a>; }
    RefreshRequest { plain token: Text<'a>; }
    RefreshResult { plain client: Text<'a>, version: Text<'a>, expires: bool, ttl: u32; }
    SubRefreshRequest { plain channel: Text<'a>, token: Text<'a>, r#type: i32; }
}

values! {
    Empty {}
    PresenceStats { num_clients: u32, num_users: u32 }
    Expiry { expires: bool, ttl: u32 }
    Features { idempotency: bool, ordered_publish: bool, wildcards: bool }
}

/// Text, unless it is empty.
pub(super) fn text(text: &str) -> Option<Text<'_>> {
    (!text.is_empty()).then_some(Cow::Borrowed(text))
}

/// A value, unless it is zero.
pub(super) fn nonzero<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

/// A table, unless it is empty.
pub(super) fn nonzero_map<K, V>(map: BTreeMap<K, V>) -> Option<BTreeMap<K, V>> {
    (!map.is_empty()).then_some(map)
}

/// Text, empty when absent.
pub(super) fn owned(text: Option<Text<'_>>) -> String {
    text.map_or_else(String::new, Cow::into_owned)
}

/// A table of texts, unless it is empty.
pub(super) fn texts(map: &BTreeMap<String, String>) -> Option<BTreeMap<Text<'_>, Text<'_>>> {
    (!map.is_empty()).then(|| {
        map.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
    })
}

/// A table of texts, empty when absent.
pub(super) fn owned_texts(map: Option<BTreeMap<Text<'_>, Text<'_>>>) -> BTreeMap<String, String> {
    map.unwrap_or_default()
        .into_iter()
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect()
}

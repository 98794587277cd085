//! The methods of the API: from a JSON body to a call of the hub.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use motet_realtime::broker::Version;
use motet_realtime::hub::{ApiError, ApiErrorCode, ApiPublish, ApiRequest, ApiSubscribe};
use motet_realtime::message::{Disconnect, DisconnectCode, StreamPosition};
use motet_realtime::server::{ServerSubscription, SubscriptionOverride};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// A call that was understood.
pub struct Call {
    /// Its name in the path.
    pub method: &'static str,
    /// What the hub is asked.
    pub request: ApiRequest<Bytes>,
    /// Names of channels to list; `*` stands for any text.
    pub pattern: Option<String>,
}

#[derive(Deserialize)]
struct Publish {
    #[serde(default)]
    channel: String,
    #[serde(default)]
    channels: Vec<String>,
    data: Option<Box<RawValue>>,
    b64data: Option<String>,
    #[serde(default)]
    skip_history: bool,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    idempotency_key: String,
    #[serde(default)]
    version: u64,
    #[serde(default)]
    version_epoch: String,
}

#[derive(Deserialize)]
struct Target {
    #[serde(default)]
    user: String,
    #[serde(default)]
    client: String,
    #[serde(default)]
    channel: String,
    #[serde(default)]
    whitelist: BTreeSet<String>,
    disconnect: Option<DisconnectForm>,
    #[serde(default)]
    expired: bool,
    #[serde(default)]
    expire_at: u64,
}

#[derive(Deserialize)]
struct DisconnectForm {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct Subscribe {
    #[serde(default)]
    user: String,
    #[serde(default)]
    client: String,
    #[serde(default)]
    channel: String,
    info: Option<Box<RawValue>>,
    b64info: Option<String>,
    data: Option<Box<RawValue>>,
    b64data: Option<String>,
    #[serde(default)]
    expire_at: u64,
    recover_since: Option<Position>,
    r#override: Option<Overrides>,
}

#[derive(Deserialize)]
struct Position {
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    epoch: String,
}

#[derive(Default, Deserialize)]
struct Overrides {
    presence: Option<Switch>,
    join_leave: Option<Switch>,
    force_push_join_leave: Option<Switch>,
    force_recovery: Option<Switch>,
    force_positioning: Option<Switch>,
}

#[derive(Deserialize)]
struct Switch {
    #[serde(default)]
    value: bool,
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    channel: String,
    #[serde(default)]
    limit: i32,
    since: Option<Position>,
    #[serde(default)]
    reverse: bool,
    pattern: Option<String>,
}

impl Call {
    /// The names of all methods.
    pub const METHODS: [&'static str; 12] = [
        "publish",
        "broadcast",
        "subscribe",
        "unsubscribe",
        "disconnect",
        "refresh",
        "presence",
        "presence_stats",
        "history",
        "history_remove",
        "channels",
        "info",
    ];

    /// Reads a call.
    ///
    /// # Errors
    /// 104 for a method that is not one of [`METHODS`](Self::METHODS), 107 for a body that lacks something.
    pub fn parse(method: &str, body: &[u8]) -> Result<Self, ApiError> {
        let call = |method, request| Ok(Self { method, request, pattern: None });
        match method {
            "publish" => {
                let form: Publish = form(body)?;
                let channel = required(form.channel.clone(), "channel")?;
                call("publish", ApiRequest::Publish(form.publication()?, channel))
            }
            "broadcast" => {
                let form: Publish = form(body)?;
                let channels = form.channels.clone();
                call("broadcast", ApiRequest::Broadcast(form.publication()?, channels))
            }
            "subscribe" => call("subscribe", ApiRequest::Subscribe(Box::new(subscribe(body)?))),
            "unsubscribe" => {
                let Target { user, client, channel, .. } = target(body)?;
                call("unsubscribe", ApiRequest::Unsubscribe { user, channel, client })
            }
            "disconnect" => call("disconnect", disconnect(target(body)?)?),
            "refresh" => {
                let Target { user, client, expired, expire_at, .. } = target(body)?;
                let expires_in = time_until(expire_at);
                call("refresh", ApiRequest::Refresh { user, client, expired, expires_in })
            }
            "presence" => call("presence", ApiRequest::Presence(channel(body)?)),
            "presence_stats" => call("presence_stats", ApiRequest::PresenceStats(channel(body)?)),
            "history" => {
                let Read { channel, limit, since, reverse, .. } = form(body)?;
                let channel = required(channel, "channel")?;
                let since = since.map(Position::into_stream_position);
                call("history", ApiRequest::History { channel, limit, since, reverse })
            }
            "history_remove" => call("history_remove", ApiRequest::HistoryRemove(channel(body)?)),
            "channels" => {
                let Read { pattern, .. } = form(body)?;
                let pattern = pattern.filter(|pattern| !pattern.is_empty());
                Ok(Self { method: "channels", request: ApiRequest::Channels, pattern })
            }
            "info" => {
                // It takes nothing, but a caller whose body is broken is told here as elsewhere.
                let _: BTreeMap<String, IgnoredAny> = form(body)?;
                call("info", ApiRequest::Info)
            }
            _ => Err(ApiErrorCode::MethodNotFound.into()),
        }
    }
}

fn form<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, ApiError> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|cause| ApiError::bad_request(&cause.to_string()))
}

fn required(value: String, name: &str) -> Result<String, ApiError> {
    if value.is_empty() {
        Err(ApiError::bad_request(&format!("{name} is required")))
    } else {
        Ok(value)
    }
}

fn channel(body: &[u8]) -> Result<String, ApiError> {
    let Read { channel, .. } = form(body)?;
    required(channel, "channel")
}

fn target(body: &[u8]) -> Result<Target, ApiError> {
    let target: Target = form(body)?;
    if target.user.is_empty() { Err(ApiError::bad_request("user is required")) } else { Ok(target) }
}

/// A close frame takes no other codes of applications, and no more text (RFC 6455, 5.5 and 7.4.2).
fn disconnect(target: Target) -> Result<ApiRequest<Bytes>, ApiError> {
    let disconnect = match target.disconnect {
        Some(form) if form.code > 0 => {
            if !(3_000..=4_999).contains(&form.code) {
                return Err(ApiError::bad_request("disconnect.code must be from 3000 to 4999"));
            }
            if form.reason.len() > CLOSE_REASON_BYTES_MAX {
                return Err(ApiError::bad_request("disconnect.reason must not exceed 123 bytes"));
            }
            Disconnect { code: DisconnectCode(form.code), reason: form.reason }
        }
        _ => DisconnectCode::FORCE_DISCONNECT.into(),
    };
    let Target { user, client, whitelist: keep, .. } = target;
    Ok(ApiRequest::Disconnect { user, client, keep, disconnect })
}

/// Room for text in a close frame.
const CLOSE_REASON_BYTES_MAX: usize = 123;

fn subscribe(body: &[u8]) -> Result<ApiSubscribe<Bytes>, ApiError> {
    let form: Subscribe = form(body)?;
    let overrides = form.r#override.unwrap_or_default();
    let value = |switch: Option<Switch>| switch.map(|switch| switch.value);
    Ok(ApiSubscribe {
        user: required(form.user, "user")?,
        client: form.client,
        channel: required(form.channel, "channel")?,
        subscription: ServerSubscription {
            info: payload(form.info, form.b64info)?,
            data: payload(form.data, form.b64data)?,
            overrides: SubscriptionOverride {
                presence: value(overrides.presence),
                join_leave: value(overrides.join_leave),
                force_push_join_leave: value(overrides.force_push_join_leave),
                force_recovery: value(overrides.force_recovery),
                force_positioning: value(overrides.force_positioning),
            },
        },
        expires_in: time_until(form.expire_at),
        recover_since: form.recover_since.map(Position::into_stream_position),
    })
}

/// Time from now until a number of seconds since 1970; 0 stands for no end.
fn time_until(expire_at: u64) -> Option<Duration> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    (expire_at > 0).then(|| Duration::from_secs(expire_at).saturating_sub(now))
}

/// A payload given as embedded JSON or in base64. Of two the caller would lose one without a word.
fn payload(json: Option<Box<RawValue>>, base64: Option<String>) -> Result<Option<Bytes>, ApiError> {
    if let Some(base64) = base64.filter(|text| !text.is_empty()) {
        if json.is_some() {
            let text = "a payload is given as JSON or in base64 (b64data, b64info), not as both";
            return Err(ApiError::bad_request(text));
        }
        let bytes = STANDARD.decode(base64);
        let bytes = bytes.map_err(|cause| ApiError::bad_request(&format!("base64: {cause}")))?;
        return Ok(Some(Bytes::from(bytes)));
    }
    Ok(json.map(|json| Bytes::from(json.get().as_bytes().to_vec())))
}

impl Publish {
    fn publication(self) -> Result<ApiPublish<Bytes>, ApiError> {
        let data = payload(self.data, self.b64data)?;
        let version = Version { number: self.version, epoch: self.version_epoch };
        Ok(ApiPublish {
            data: data.ok_or_else(|| ApiError::bad_request("data is required"))?,
            skip_history: self.skip_history,
            tags: self.tags,
            idempotency_key: self.idempotency_key,
            version: (version.number > 0).then_some(version),
        })
    }
}

impl Position {
    fn into_stream_position(self) -> StreamPosition {
        StreamPosition { offset: self.offset, epoch: self.epoch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(method: &str, body: &str) -> ApiErrorCode {
        Call::parse(method, body.as_bytes()).err().expect("an error").code
    }

    #[test]
    fn a_call_that_lacks_something_or_contradicts_itself_is_a_bad_request() {
        for (method, body) in [
            ("publish", "{"),
            ("publish", r#"{"data":1}"#),
            ("publish", r#"{"channel":"a"}"#),
            ("publish", r#"{"channel":"a","b64data":"?"}"#),
            ("publish", r#"{"channel":"a","data":1,"b64data":"MQ=="}"#),
            ("broadcast", r#"{"channels":["a"],"data":1,"b64data":"MQ=="}"#),
            ("subscribe", r#"{"user":"1"}"#),
            ("subscribe", r#"{"user":"1","channel":"a","info":1,"b64info":"MQ=="}"#),
            ("disconnect", "{}"),
            ("history", ""),
            ("info", "{"),
            ("info", "[]"),
        ] {
            assert_eq!(code(method, body), ApiErrorCode::BadRequest, "{method} {body}");
        }
        let either = [
            r#"{"channel":"a","data":1,"b64data":""}"#,
            r#"{"channel":"a","data":null,"b64data":"MQ=="}"#,
        ];
        assert!(either.iter().all(|body| Call::parse("publish", body.as_bytes()).is_ok()));
        assert!(["", "{}"].iter().all(|body| Call::parse("info", body.as_bytes()).is_ok()));
        assert_eq!(code("nothing", "{}"), ApiErrorCode::MethodNotFound);
    }

    #[test]
    fn a_disconnect_that_no_close_frame_can_carry_is_a_bad_request() {
        let body = |code: u32, reason: &str| {
            format!(r#"{{"user":"1","disconnect":{{"code":{code},"reason":"{reason}"}}}}"#)
        };
        for body in [body(1, ""), body(2_999, ""), body(5_000, ""), body(4_000, &"x".repeat(124))] {
            assert_eq!(code("disconnect", &body), ApiErrorCode::BadRequest, "{body}");
        }
        for body in [body(0, ""), body(3_000, ""), body(4_999, &"x".repeat(123))] {
            assert!(Call::parse("disconnect", body.as_bytes()).is_ok(), "{body}");
        }
    }

    #[test]
    fn a_payload_passes_through_as_it_was_written() {
        let body = br#"{"channel":"a","data":{ "n" : 1.50 }}"#;
        let call = Call::parse("publish", body).unwrap_or_else(|error| panic!("{error}"));
        let ApiRequest::Publish(publish, _) = call.request else { panic!("a publication") };
        assert_eq!(publish.data, br#"{ "n" : 1.50 }"#.as_slice());
    }
}

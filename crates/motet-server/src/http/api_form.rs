//! What API calls return, in JSON. Payloads pass through as they are, to the last digit.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use motet_realtime::broker::HistoryPage;
use motet_realtime::hub::{ApiError, ApiResult, HubStats};
use motet_realtime::message::{ClientInfo, Publication, StreamPosition};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::glob;

/// The result of a call. `pattern` selects channels; `uptime` is the server's, in seconds.
pub(super) fn result(
    result: ApiResult<Bytes>,
    pattern: Option<&str>,
    uptime: u64,
) -> Box<RawValue> {
    match result {
        ApiResult::Done => raw(&json!({})),
        ApiResult::Published(position) => raw(&place(position)),
        ApiResult::Broadcast(results) => {
            let response = |one: Result<_, ApiError>| match one {
                Ok(position) => json!({ "result": place(position) }),
                Err(refusal) => json!({ "error": error(&refusal) }),
            };
            raw(&json!({ "responses": results.into_iter().map(response).collect::<Vec<_>>() }))
        }
        ApiResult::Presence(presence) => {
            let presence = presence.iter().map(|(client, info)| (client.as_str(), info.into()));
            raw(&PresenceForm { presence: presence.collect() })
        }
        ApiResult::PresenceStats { num_clients, num_users } => {
            raw(&json!({ "num_clients": num_clients, "num_users": num_users }))
        }
        ApiResult::History(page) => raw(&HistoryForm::from(&page)),
        ApiResult::Channels(channels) => {
            let wanted = |name: &String| pattern.is_none_or(|p| glob::matches(p, name));
            let channels: BTreeMap<_, _> = channels
                .into_iter()
                .filter(|(name, _)| wanted(name))
                .map(|(name, clients)| (name, json!({ "num_clients": clients })))
                .collect();
            raw(&json!({ "channels": channels }))
        }
        ApiResult::Info(stats) => raw(&node(&stats, uptime)),
    }
}

/// An error as it stands in an answer.
pub(super) fn error(error: &ApiError) -> Value {
    json!({ "code": error.code.number(), "message": error.message })
}

fn raw(form: &impl Serialize) -> Box<RawValue> {
    to_raw_value(form).expect("answers have string keys")
}

fn place(position: Option<StreamPosition>) -> Value {
    position.map_or_else(|| json!({}), |p| json!({ "offset": p.offset, "epoch": p.epoch }))
}

#[derive(Serialize)]
struct HistoryForm<'a> {
    publications: Vec<PublicationForm<'a>>,
    offset: u64,
    epoch: &'a str,
}

#[derive(Serialize)]
struct PublicationForm<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b64data: Option<String>,
    offset: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<InfoForm<'a>>,
}

#[derive(Serialize)]
struct PresenceForm<'a> {
    presence: BTreeMap<&'a str, InfoForm<'a>>,
}

#[derive(Serialize)]
struct InfoForm<'a> {
    user: &'a str,
    client: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    conn_info: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b64conn_info: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chan_info: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b64chan_info: Option<String>,
}

impl<'a> From<&'a HistoryPage<Bytes>> for HistoryForm<'a> {
    fn from(page: &'a HistoryPage<Bytes>) -> Self {
        let publications = page.publications.iter().map(PublicationForm::from).collect();
        Self { publications, offset: page.top.offset, epoch: &page.top.epoch }
    }
}

impl<'a> From<&'a Publication<Bytes>> for PublicationForm<'a> {
    fn from(publication: &'a Publication<Bytes>) -> Self {
        let (data, b64data) = payload(Some(&publication.data));
        let info = publication.info.as_ref().map(InfoForm::from);
        Self { data, b64data, offset: publication.offset, tags: &publication.tags, info }
    }
}

impl<'a> From<&'a ClientInfo<Bytes>> for InfoForm<'a> {
    fn from(info: &'a ClientInfo<Bytes>) -> Self {
        let (conn_info, b64conn_info) = payload(info.conn_info.as_ref());
        let (chan_info, b64chan_info) = payload(info.chan_info.as_ref());
        let (user, client) = (&info.user, &info.client);
        Self { user, client, conn_info, b64conn_info, chan_info, b64chan_info }
    }
}

/// A payload that is JSON stands as it is, any other in base64.
fn payload(bytes: Option<&Bytes>) -> (Option<&RawValue>, Option<String>) {
    let Some(bytes) = bytes else { return (None, None) };
    match serde_json::from_slice(bytes) {
        Ok(json) => (Some(json), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}

fn node(stats: &HubStats, uptime: u64) -> Value {
    json!({ "nodes": [{
        "uid": "motet",
        "name": "motet",
        "version": env!("CARGO_PKG_VERSION"),
        "num_clients": stats.clients,
        "num_users": stats.users,
        "num_channels": stats.channels,
        "num_subs": stats.subscriptions,
        "uptime": uptime,
    }] })
}

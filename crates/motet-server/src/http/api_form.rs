//! What API calls return, in JSON.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use motet_realtime::broker::HistoryPage;
use motet_realtime::hub::{ApiError, ApiResult, HubStats};
use motet_realtime::message::{ClientInfo, Publication, StreamPosition};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::glob;

/// The result of a call. `pattern` selects channels; `uptime` is the server's, in seconds.
pub(super) fn result(result: ApiResult<Bytes>, pattern: Option<&str>, uptime: u64) -> Value {
    match result {
        ApiResult::Done => json!({}),
        ApiResult::Published(position) => place(position),
        ApiResult::Broadcast(results) => {
            let response = |one: Result<_, ApiError>| match one {
                Ok(position) => json!({ "result": place(position) }),
                Err(refusal) => json!({ "error": error(&refusal) }),
            };
            json!({ "responses": results.into_iter().map(response).collect::<Vec<_>>() })
        }
        ApiResult::Presence(presence) => {
            let clients: BTreeMap<_, _> =
                presence.iter().map(|(client, one)| (client, info(one))).collect();
            json!({ "presence": clients })
        }
        ApiResult::PresenceStats { num_clients, num_users } => {
            json!({ "num_clients": num_clients, "num_users": num_users })
        }
        ApiResult::History(page) => history(&page),
        ApiResult::Channels(channels) => {
            let wanted = |name: &String| pattern.is_none_or(|p| glob::matches(p, name));
            let channels: BTreeMap<_, _> = channels
                .into_iter()
                .filter(|(name, _)| wanted(name))
                .map(|(name, clients)| (name, json!({ "num_clients": clients })))
                .collect();
            json!({ "channels": channels })
        }
        ApiResult::Info(stats) => node(&stats, uptime),
    }
}

/// An error as it stands in an answer.
pub(super) fn error(error: &ApiError) -> Value {
    json!({ "code": error.code.number(), "message": error.message })
}

fn place(position: Option<StreamPosition>) -> Value {
    position.map_or_else(|| json!({}), |p| json!({ "offset": p.offset, "epoch": p.epoch }))
}

fn history(page: &HistoryPage<Bytes>) -> Value {
    let publications: Vec<_> = page.publications.iter().map(publication).collect();
    json!({ "publications": publications, "offset": page.top.offset, "epoch": page.top.epoch })
}

fn publication(publication: &Publication<Bytes>) -> Value {
    let mut form = Map::new();
    payload(&mut form, "data", "b64data", &publication.data);
    form.insert("offset".to_owned(), json!(publication.offset));
    if !publication.tags.is_empty() {
        form.insert("tags".to_owned(), json!(publication.tags));
    }
    if let Some(publisher) = &publication.info {
        form.insert("info".to_owned(), info(publisher));
    }
    Value::Object(form)
}

fn info(info: &ClientInfo<Bytes>) -> Value {
    let mut form = Map::new();
    form.insert("user".to_owned(), json!(info.user));
    form.insert("client".to_owned(), json!(info.client));
    if let Some(conn_info) = &info.conn_info {
        payload(&mut form, "conn_info", "b64conn_info", conn_info);
    }
    if let Some(chan_info) = &info.chan_info {
        payload(&mut form, "chan_info", "b64chan_info", chan_info);
    }
    Value::Object(form)
}

/// A payload that is JSON stands as it is, any other in base64.
fn payload(form: &mut Map<String, Value>, name: &str, base64_name: &str, bytes: &Bytes) {
    let json = serde_json::from_slice::<&RawValue>(bytes)
        .ok()
        .and_then(|raw| serde_json::from_str(raw.get()).ok());
    match json {
        Some(json) => form.insert(name.to_owned(), json),
        None => form.insert(base64_name.to_owned(), json!(STANDARD.encode(bytes))),
    };
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

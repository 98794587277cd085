//! The change log: its changes, and how much of it is kept.

use core::ops::ControlFlow;
use core::time::Duration;

use axum::Json;
use motet_store::{ChangeHeader, Clock, Env, Op, Position};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::answer::raw;
use super::body::{JsonBody, Object};
use super::call::{Administers, Call, Reads};
use super::document::Nothing;
use super::failure::Failure;
use super::index::Done;
use super::params::Parameters;
use super::query::{LIMIT_DEFAULT, LIMIT_MAX};

/// Which changes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Stretch {
    after: Option<u64>,
    compacted_to: Option<u64>,
    limit: Option<usize>,
}

/// Changes in their order, fewer than the limit where they are large. There are more while the last
/// one's clock, which is the next page's `after`, is below `head`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Changes {
    changes: Vec<ChangeForm>,
    /// The clock of the environment's last change.
    head: u64,
    /// Up to this clock the log has of each document whose last change is not after it that change and
    /// no other; 0 if it is not compacted. The next page's `compactedTo`.
    compacted_to: u64,
}

/// One change of one document.
#[derive(Serialize, ToSchema)]
#[schema(as = Change)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeForm {
    /// Its place in the log, and the version that it gave the document.
    clock: u64,
    #[serde(rename = "type")]
    type_name: String,
    key: String,
    op: OpForm,
    /// The document's version before; absent if there was no document, or if the change was made again
    /// from its document, which does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    previous: Option<u64>,
    /// When, in milliseconds since 1970, by the writing process's clock; 0 if the change was made again
    /// from its document.
    time_ms: u64,
    /// The process instance that wrote it, as 16 hex digits.
    origin: String,
    /// The clock of the first change of its transaction.
    transaction: u64,
    /// The value that it gave the document, where the log keeps values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    value: Option<Box<RawValue>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Op)]
#[serde(rename_all = "lowercase")]
enum OpForm {
    Put,
    Remove,
    Expire,
}

/// How much of the log is kept. An `ageMs` or `bytes` that is absent sets no bound; anything else that
/// is absent stays as it is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Retention)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RetentionForm {
    /// Entries older than this are trimmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    age_ms: Option<u64>,
    /// The oldest entries are trimmed while all together take more than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    bytes: Option<u64>,
    /// Pins keep at most so many bytes. Absent, it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pin_bytes: Option<u64>,
    /// Whether of what would be trimmed the latest change of each document that is there is kept.
    /// Absent, it stays as it is; `false` lets go of those that are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest: Option<bool>,
}

/// How an environment is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Status {
    /// The clock of the environment's last change.
    head: u64,
    /// When that was, in milliseconds since 1970; 0 if there was none.
    time_ms: u64,
    /// Why the work in the background failed the last time; absent while it succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    maintenance_error: Option<String>,
}

pub(super) async fn read(
    call: Call<Reads>,
    Parameters(stretch): Parameters<Stretch>,
) -> Result<Json<Changes>, Failure> {
    let limit = stretch.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Failure::invalid("limit", format!("expected 1 to {LIMIT_MAX}")));
    }
    let [after, compacted_to] =
        [stretch.after, stretch.compacted_to].map(|clock| Clock::new(clock.unwrap_or_default()));
    let after = Position::new(after, compacted_to);
    let bytes_max = call.api().keys.answer_bytes_max;
    call.read(move |env| changes(env, after, limit, bytes_max)).await.map(Json)
}

fn changes(env: &Env, after: Position, limit: usize, bytes_max: usize) -> Result<Changes, Failure> {
    let head = env.log().head()?.clock.number();
    // If it is compacted further before it is read, the next page is refused, and nothing is missed.
    let compacted_to = env.log().compacted_to()?.number();
    let (mut changes, mut room, mut failed) = (Vec::new(), bytes_max, None);
    env.log().visit(after, |header| {
        let bytes = header.json.map_or(0, <[u8]>::len);
        if bytes > room && !changes.is_empty() {
            return ControlFlow::Break(());
        }
        room = room.saturating_sub(bytes);
        match ChangeForm::of(header) {
            Ok(change) => changes.push(change),
            Err(failure) => failed = Some(failure),
        }
        let ends = changes.len() == limit || failed.is_some();
        if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match failed {
        Some(failure) => Err(failure),
        None => Ok(Changes { changes, head, compacted_to }),
    }
}

pub(super) async fn retention(
    call: Call<Reads>,
    _: Parameters<Nothing>,
) -> Result<Json<RetentionForm>, Failure> {
    let kept = call.read(|env| Ok(env.retention()?)).await?;
    let age_ms = kept.age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    Ok(Json(RetentionForm {
        age_ms,
        bytes: kept.bytes,
        pin_bytes: Some(kept.pin_bytes),
        latest: Some(kept.latest),
    }))
}

pub(super) async fn set_retention(
    call: Call<Administers>,
    _: Parameters<Nothing>,
    JsonBody(Object(form)): JsonBody<Object<RetentionForm>>,
) -> Result<Json<Done>, Failure> {
    for (value, at) in [(form.age_ms, "ageMs"), (form.bytes, "bytes"), (form.pin_bytes, "pinBytes")]
    {
        if value.is_some_and(|value| value > NUMBER_MAX) {
            return Err(Failure::invalid(at, format!("expected up to {NUMBER_MAX}")));
        }
    }
    call.change(move |env| {
        let mut retention = env.retention()?;
        retention.age = form.age_ms.map(Duration::from_millis);
        retention.bytes = form.bytes;
        retention.pin_bytes = form.pin_bytes.unwrap_or(retention.pin_bytes);
        retention.latest = form.latest.unwrap_or(retention.latest);
        env.set_retention(retention)
    })
    .await?;
    Ok(Json(Done {}))
}

pub(super) async fn status(
    call: Call<Reads>,
    _: Parameters<Nothing>,
) -> Result<Json<Status>, Failure> {
    let status = call.read(|env| {
        let head = env.log().head()?;
        Ok(Status {
            head: head.clock.number(),
            time_ms: head.time.unix_ms(),
            maintenance_error: env.maintenance_error().map(|error| error.to_string()),
        })
    });
    status.await.map(Json)
}

impl ChangeForm {
    fn of(header: ChangeHeader<'_>) -> Result<Self, Failure> {
        Ok(Self {
            clock: header.clock.number(),
            type_name: header.type_name.to_owned(),
            key: header.key.to_owned(),
            op: match header.op {
                Op::Remove => OpForm::Remove,
                Op::Expire => OpForm::Expire,
                _ => OpForm::Put,
            },
            previous: header.previous.map(Clock::number),
            time_ms: header.time.unix_ms(),
            origin: format!("{:016x}", header.origin),
            transaction: header.transaction.number(),
            value: header.json.map(|json| raw(json.to_vec())).transpose()?,
        })
    }
}

/// The greatest whole number that JavaScript holds exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;

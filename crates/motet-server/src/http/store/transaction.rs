//! Transactions: several writes, all or none.

use axum::Json;
use motet_store::{Clock, Patch, Write};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::answer::Versions;
use super::body::JsonBody;
use super::call::{Call, Writes};
use super::document::{Nothing, limit};
use super::failure::Failure;
use super::params::Parameters;

/// Writes that are done in their order, all or none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename = "Transaction", deny_unknown_fields)]
pub(super) struct TransactionForm {
    writes: Vec<WriteForm>,
}

/// One write.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "op", rename_all = "lowercase", rename = "Write")]
enum WriteForm {
    Put(WithValue),
    Create(WithValue),
    Update(WithValue),
    Patch(WithPatch),
    Remove(Removal),
}

/// A write of a whole value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WithValue {
    #[serde(rename = "type")]
    type_name: String,
    key: String,
    value: Value,
    /// Only if the document has this version; 0 for none.
    #[serde(default)]
    #[schema(nullable = false)]
    if_version: Option<u64>,
    /// The document ends after so many milliseconds.
    #[serde(default)]
    #[schema(minimum = 1, nullable = false)]
    ttl_ms: Option<u64>,
}

/// A change of parts of a value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WithPatch {
    #[serde(rename = "type")]
    type_name: String,
    key: String,
    #[schema(value_type = Object)]
    patch: Value,
    /// Only if the document has this version; 0 for none.
    #[serde(default)]
    #[schema(nullable = false)]
    if_version: Option<u64>,
    /// The document ends after so many milliseconds.
    #[serde(default)]
    #[schema(minimum = 1, nullable = false)]
    ttl_ms: Option<u64>,
}

/// The removal of a document.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Removal {
    #[serde(rename = "type")]
    type_name: String,
    key: String,
    /// Only if the document has this version.
    #[serde(default)]
    #[schema(nullable = false)]
    if_version: Option<u64>,
}

pub(super) async fn commit(
    call: Call<Writes>,
    _: Parameters<Nothing>,
    JsonBody(form): JsonBody<TransactionForm>,
) -> Result<Json<Versions>, Failure> {
    let writes = form.writes.into_iter().map(WriteForm::write).collect::<Result<Vec<_>, _>>()?;
    let versions = call.write(|env| env.write_all(writes)).await?;
    Ok(Json(Versions { versions: versions.into_iter().map(Clock::number).collect() }))
}

impl WriteForm {
    fn write(self) -> Result<Write, Failure> {
        match self {
            Self::Put(form) => form.write(Write::put),
            Self::Create(form) => form.write(Write::create),
            Self::Update(form) => form.write(Write::update),
            Self::Patch(form) => {
                let write = Write::patch(form.type_name, form.key, Patch::parse(&form.patch)?);
                limit(conditional(write, form.if_version), form.ttl_ms)
            }
            Self::Remove(form) => {
                Ok(conditional(Write::remove(form.type_name, form.key), form.if_version))
            }
        }
    }
}

impl WithValue {
    fn write(self, kind: impl FnOnce(String, String, Value) -> Write) -> Result<Write, Failure> {
        let write = kind(self.type_name, self.key, self.value);
        limit(conditional(write, self.if_version), self.ttl_ms)
    }
}

fn conditional(write: Write, version: Option<u64>) -> Write {
    match version {
        None => write,
        Some(version) => write.if_version(Clock::new(version)),
    }
}

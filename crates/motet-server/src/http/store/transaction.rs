//! Transactions: several writes, all or none.

use std::borrow::Cow;

use axum::Json;
use motet_store::{Clock, Patch, Write};
use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::answer::Versions;
use super::body::Object;
use super::call::{Call, Writes};
use super::document::{Nothing, limit};
use super::failure::Failure;
use super::idempotency::OnceBody;
use super::params::Parameters;

/// Writes that are done in their order, all or none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Transaction)]
pub(super) struct TransactionForm {
    #[schema(value_type = Vec<WriteForm>)]
    writes: Vec<Object<WriteForm>>,
}

/// One write.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum WriteForm {
    Put(WithValue),
    Create(WithValue),
    Update(WithValue),
    Patch(WithPatch),
    Remove(Removal),
}

impl ToSchema for WriteForm {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Write")
    }
}

impl PartialSchema for WriteForm {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(with_op(WithValue::schema(), &["put", "create", "update"]))
            .item(with_op(WithPatch::schema(), &["patch"]))
            .item(with_op(Removal::schema(), &["remove"]))
            .into()
    }
}

/// The schema of a write, with the field that says what is done.
fn with_op(schema: RefOr<Schema>, ops: &[&str]) -> RefOr<Schema> {
    let RefOr::T(Schema::Object(mut object)) = schema else { return schema };
    let op = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(ops.to_vec()));
    object.properties.insert("op".into(), op.into());
    object.required.push("op".into());
    object.into()
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
    if_version: Option<u64>,
    /// The document ends after so many milliseconds.
    #[serde(default)]
    #[schema(minimum = 1)]
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
    if_version: Option<u64>,
    /// The document ends after so many milliseconds.
    #[serde(default)]
    #[schema(minimum = 1)]
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
    if_version: Option<u64>,
}

pub(super) async fn commit(
    call: Call<Writes>,
    _: Parameters<Nothing>,
    OnceBody { once, value: Object(form) }: OnceBody<Object<TransactionForm>>,
) -> Result<Json<Versions>, Failure> {
    let writes =
        form.writes.into_iter().map(|Object(form)| form.write()).collect::<Result<Vec<_>, _>>()?;
    let versions = call.write(once, writes).await?;
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

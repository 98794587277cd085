//! What a type asks of its documents: schema, references, time to live.

use std::time::Duration;

use axum::Json;
use motet_store::{OnDelete, TypeSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::body::{JsonBody, Object};
use super::call::{Administers, Call, Reads};
use super::document::{Nothing, TTL_MS_MAX};
use super::failure::Failure;
use super::index::Done;
use super::params::{Parameters, TypeName};
use super::query::{LIMIT_DEFAULT, LIMIT_MAX};

/// What a type asks of its documents. What is absent asks nothing.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Definition)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DefinitionForm {
    /// How long a new document lives unless its write says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_556_952_000_000_u64)]
    ttl_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SchemaForm>)]
    schema: Option<Object<SchemaForm>>,
    /// Fields that hold keys of other documents.
    #[serde(default)]
    #[schema(value_type = Vec<ReferenceForm>, max_items = 64)]
    references: Vec<Object<ReferenceForm>>,
}

/// What the values of documents look like.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = DocumentSchema)]
#[serde(deny_unknown_fields)]
struct SchemaForm {
    /// A JSON Schema, without references to other files.
    json: Value,
    /// Whether what does not fit is refused; otherwise it is written, and listed as a violation.
    #[serde(default = "enforced")]
    #[schema(default = true)]
    enforced: bool,
}

/// A field that holds the key of a document, several in an array, or null.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Reference)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReferenceForm {
    /// Where the field is.
    path: String,
    /// The type of the documents that it names.
    to: String,
    #[serde(default)]
    on_delete: OnDeleteForm,
}

/// What the removal of a document does to those that refer to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = OnDelete)]
#[serde(rename_all = "snake_case")]
enum OnDeleteForm {
    /// Nothing.
    #[default]
    NoAction,
    /// It is refused while there are any.
    Restrict,
    /// They are removed too.
    Cascade,
    /// Their reference becomes null; an element of an array is taken out.
    SetNull,
}

/// Documents that did not fit the recorded schema when they were written, by their keys.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Violations {
    violations: Vec<Violation>,
}

/// Which violations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stretch {
    #[serde(default)]
    after: String,
    limit: Option<usize>,
}

/// A document that did not fit.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Violation {
    key: String,
    /// Where, and what does not fit.
    why: String,
}

pub(super) async fn read(
    call: Call<Reads>,
    TypeName(type_name): TypeName,
    _: Parameters<Nothing>,
) -> Result<Json<DefinitionForm>, Failure> {
    let spec = call.read(move |env| Ok(env.definition(&type_name)?)).await?;
    Ok(Json(DefinitionForm::of(&spec)))
}

pub(super) async fn define(
    call: Call<Administers>,
    TypeName(type_name): TypeName,
    _: Parameters<Nothing>,
    JsonBody(Object(form)): JsonBody<Object<DefinitionForm>>,
) -> Result<Json<Done>, Failure> {
    let spec = form.spec()?;
    call.change(move |env| env.define(&type_name, &spec)).await?;
    Ok(Json(Done {}))
}

pub(super) async fn violations(
    call: Call<Reads>,
    TypeName(type_name): TypeName,
    Parameters(Stretch { after, limit }): Parameters<Stretch>,
) -> Result<Json<Violations>, Failure> {
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Failure::invalid("limit", format!("expected 1 to {LIMIT_MAX}")));
    }
    let violations =
        call.read(move |env| Ok(env.violations_after(&type_name, &after, limit)?)).await?;
    let violations = violations.into_iter().map(|(key, why)| Violation { key, why }).collect();
    Ok(Json(Violations { violations }))
}

impl DefinitionForm {
    fn spec(self) -> Result<TypeSpec, Failure> {
        let mut spec = TypeSpec::new();
        if let Some(ttl_ms) = self.ttl_ms {
            if !(1..=TTL_MS_MAX).contains(&ttl_ms) {
                return Err(Failure::invalid("ttlMs", format!("expected 1 to {TTL_MS_MAX}")));
            }
            spec = spec.expires_in(Duration::from_millis(ttl_ms));
        }
        if let Some(Object(schema)) = self.schema {
            spec = match schema.enforced {
                true => spec.schema(schema.json),
                false => spec.recorded_schema(schema.json),
            };
        }
        if self.references.len() > REFERENCES_MAX {
            return Err(Failure::invalid("references", format!("expected up to {REFERENCES_MAX}")));
        }
        Ok(self.references.into_iter().fold(spec, |spec, Object(reference)| {
            spec.reference(reference.path, reference.to, reference.on_delete.into())
        }))
    }

    fn of(spec: &TypeSpec) -> Self {
        let references = spec.references().map(|(path, to, on_delete)| {
            let (path, to) = (path.to_owned(), to.to_owned());
            Object(ReferenceForm { path, to, on_delete: on_delete.into() })
        });
        Self {
            ttl_ms: spec.time_to_live().map(|time| {
                u64::try_from(time.as_millis()).expect("it was given as milliseconds of 64 bits")
            }),
            schema: spec
                .schema_of_documents()
                .map(|(json, enforced)| Object(SchemaForm { json: json.clone(), enforced })),
            references: references.collect(),
        }
    }
}

impl From<OnDeleteForm> for OnDelete {
    fn from(form: OnDeleteForm) -> Self {
        match form {
            OnDeleteForm::NoAction => Self::NoAction,
            OnDeleteForm::Restrict => Self::Restrict,
            OnDeleteForm::Cascade => Self::Cascade,
            OnDeleteForm::SetNull => Self::SetNull,
        }
    }
}

impl From<OnDelete> for OnDeleteForm {
    fn from(on_delete: OnDelete) -> Self {
        match on_delete {
            OnDelete::NoAction => Self::NoAction,
            OnDelete::Restrict => Self::Restrict,
            OnDelete::Cascade => Self::Cascade,
            OnDelete::SetNull => Self::SetNull,
        }
    }
}

const fn enforced() -> bool {
    true
}

/// The most references of a type: each has an index.
const REFERENCES_MAX: usize = 64;

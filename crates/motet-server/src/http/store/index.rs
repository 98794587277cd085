//! Indexes of a type.

use axum::Json;
use motet_store::{IndexSpec, IndexState, IndexStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::body::{JsonBody, Object};
use super::call::{Administers, Call, Reads};
use super::document::Nothing;
use super::failure::Failure;
use super::params::{IndexName, Parameters, TypeName};

/// What an index holds.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = IndexSpec)]
pub(super) struct SpecForm {
    /// Its fields in order.
    #[schema(min_items = 1, max_items = 8)]
    #[schema(value_type = Vec<FieldForm>)]
    fields: Vec<Object<FieldForm>>,
    /// Whether no two documents may have the same values.
    #[serde(default)]
    unique: bool,
    /// The filter of a partial index.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    only: Option<Value>,
}

/// A field of an index.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = IndexField)]
struct FieldForm {
    path: String,
    /// Whether great values come first.
    #[serde(default)]
    descending: bool,
}

/// The indexes of a type.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Indexes {
    indexes: Vec<IndexForm>,
}

/// An index and how far it is.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Index)]
struct IndexForm {
    name: String,
    spec: SpecForm,
    state: StateForm,
    /// Why it could not be built.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
    /// How many documents have been added, while it is being built.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    scanned: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = IndexState)]
enum StateForm {
    Building,
    Ready,
    Failed,
}

/// Nothing more to say.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Done {}

pub(super) async fn list(
    call: Call<Reads>,
    TypeName(type_name): TypeName,
    _: Parameters<Nothing>,
) -> Result<Json<Indexes>, Failure> {
    let indexes = call
        .read(move |env| {
            let indexes = env.indexes(&type_name)?;
            Ok(indexes.into_iter().map(IndexForm::from).collect())
        })
        .await?;
    Ok(Json(Indexes { indexes }))
}

pub(super) async fn create(
    call: Call<Administers>,
    name: IndexName,
    _: Parameters<Nothing>,
    JsonBody(Object(form)): JsonBody<Object<SpecForm>>,
) -> Result<Json<Done>, Failure> {
    let spec = form.spec();
    call.change(move |env| env.create_index(&name.type_name, &name.name, &spec)).await?;
    Ok(Json(Done {}))
}

pub(super) async fn drop_index(
    call: Call<Administers>,
    name: IndexName,
    _: Parameters<Nothing>,
) -> Result<Json<Done>, Failure> {
    call.with_existing(move |_, env| Ok(env.drop_index(&name.type_name, &name.name)?)).await?;
    Ok(Json(Done {}))
}

impl SpecForm {
    fn spec(self) -> IndexSpec {
        let fields = self.fields.into_iter().fold(IndexSpec::new(), |spec, Object(field)| {
            if field.descending { spec.descending(field.path) } else { spec.field(field.path) }
        });
        let spec = if self.unique { fields.unique() } else { fields };
        match self.only {
            None => spec,
            Some(filter) => spec.matching(filter),
        }
    }

    fn of(spec: &IndexSpec) -> Self {
        let fields = spec
            .fields()
            .map(|(path, descending)| Object(FieldForm { path: path.to_owned(), descending }));
        Self { fields: fields.collect(), unique: spec.is_unique(), only: spec.filter().cloned() }
    }
}

impl From<IndexStatus> for IndexForm {
    fn from(status: IndexStatus) -> Self {
        let (state, reason) = match status.state {
            IndexState::Ready => (StateForm::Ready, None),
            IndexState::Failed { reason } => (StateForm::Failed, Some(reason)),
            // What a later build of the store knows beside these is not ready.
            _ => (StateForm::Building, None),
        };
        let spec = SpecForm::of(&status.spec);
        Self { name: status.name, spec, state, reason, scanned: status.scanned }
    }
}

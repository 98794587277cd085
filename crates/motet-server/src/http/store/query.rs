//! Queries: `POST` to `query`, `count` and `explain` of a type.

use axum::Json;
use motet_store::{Env, Query};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ArrayBuilder, ArrayItems, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::answer::Item;
use super::body::{JsonBody, Object};
use super::call::{Call, Reads};
use super::document::Nothing;
use super::failure::Failure;
use super::params::{Parameters, TypeName};

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Query)]
pub(super) struct QueryForm {
    /// Which documents; without it, all of the type.
    #[serde(default)]
    #[schema(value_type = Object)]
    filter: Map<String, Value>,
    /// In which order.
    #[serde(default)]
    sort: Option<Sort>,
    /// How many documents at most.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000, default = 100)]
    limit: Option<usize>,
    /// `next` of the page before this.
    #[serde(default)]
    after: Option<String>,
    /// Only these fields of the documents.
    #[serde(default)]
    project: Option<Vec<String>>,
}

/// Which documents are counted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Count)]
pub(super) struct CountForm {
    /// Which documents; without it, all of the type.
    #[serde(default)]
    #[schema(value_type = Object)]
    filter: Map<String, Value>,
}

/// A path, `-` in front of it for great values first, or a list of them and of pairs of path and
/// direction.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a path, or a list of paths and of [path, direction]")]
enum Sort {
    Path(String),
    Fields(Vec<SortField>),
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
enum SortField {
    Path(String),
    Pair(SortPair),
}

/// A path and its direction.
#[derive(Debug, Deserialize)]
struct SortPair(String, SortDirection);

impl ToSchema for SortPair {}

impl PartialSchema for SortPair {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new()
            .items(ArrayItems::False)
            .prefix_items([
                ObjectBuilder::new().schema_type(Type::String),
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["asc", "desc"])),
            ])
            .min_items(Some(2))
            .max_items(Some(2))
            .into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SortDirection {
    Asc,
    Desc,
}

/// A page of documents. It has fewer than its limit where they are large.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Page)]
pub(super) struct PageForm {
    items: Vec<Item>,
    /// What to send as `after` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// How many documents there are.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Counted {
    count: usize,
}

/// How a query is answered, and what that cost.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Explained {
    /// The index that is used; null if all documents of the type are read.
    #[schema(required)]
    index: Option<String>,
    /// How many ranges of the index are read.
    ranges: usize,
    /// Whether documents have to be sorted after they were read.
    sorts: bool,
    /// How many entries of the index were read.
    entries_examined: usize,
    /// How many documents were read.
    documents_examined: usize,
    /// How many documents the query gives.
    returned: usize,
}

pub(super) async fn query(
    call: Call<Reads>,
    TypeName(type_name): TypeName,
    _: Parameters<Nothing>,
    JsonBody(Object(form)): JsonBody<Object<QueryForm>>,
) -> Result<Json<PageForm>, Failure> {
    let bytes_max = call.api().keys.answer_bytes_max;
    let page = call.read(move |env| {
        let page = form.query(env, &type_name)?.bytes_max(bytes_max).raw_page()?;
        let items = page.rows.into_iter().map(|(key, document)| Item::new(key, document));
        Ok(PageForm { items: items.collect::<Result<_, _>>()?, next: page.next })
    });
    page.await.map(Json)
}

pub(super) async fn count(
    call: Call<Reads>,
    TypeName(type_name): TypeName,
    _: Parameters<Nothing>,
    JsonBody(Object(form)): JsonBody<Object<CountForm>>,
) -> Result<Json<Counted>, Failure> {
    let filter = Value::Object(form.filter);
    let count = call.read(move |env| Ok(env.query(&type_name).filter(filter).count()?)).await?;
    Ok(Json(Counted { count }))
}

pub(super) async fn explain(
    call: Call<Reads>,
    TypeName(type_name): TypeName,
    _: Parameters<Nothing>,
    JsonBody(Object(form)): JsonBody<Object<QueryForm>>,
) -> Result<Json<Explained>, Failure> {
    let bytes_max = call.api().keys.answer_bytes_max;
    let explain = call
        .read(move |env| Ok(form.query(env, &type_name)?.bytes_max(bytes_max).explain()?))
        .await?;
    Ok(Json(Explained {
        index: explain.index,
        ranges: explain.ranges,
        sorts: explain.sorts,
        entries_examined: explain.entries_examined,
        documents_examined: explain.documents_examined,
        returned: explain.returned,
    }))
}

impl QueryForm {
    fn query(self, env: &Env, type_name: &str) -> Result<Query, Failure> {
        let limit = self.limit.unwrap_or(LIMIT_DEFAULT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(Failure::invalid("limit", format!("expected 1 to {LIMIT_MAX}")));
        }
        let mut query = env.query(type_name).filter(Value::Object(self.filter)).limit(limit);
        if let Some(sort) = self.sort {
            query = sort.apply(query);
        }
        if let Some(after) = self.after {
            query = query.after(after);
        }
        if let Some(project) = self.project {
            query = query.project(project);
        }
        Ok(query)
    }
}

impl Sort {
    fn apply(self, query: Query) -> Query {
        match self {
            Self::Path(path) => sort_by(query, &path),
            Self::Fields(fields) => fields.into_iter().fold(query, |query, field| match field {
                SortField::Path(path) => sort_by(query, &path),
                SortField::Pair(SortPair(path, SortDirection::Asc)) => query.sort(path),
                SortField::Pair(SortPair(path, SortDirection::Desc)) => query.sort_descending(path),
            }),
        }
    }
}

fn sort_by(query: Query, path: &str) -> Query {
    match path.strip_prefix('-') {
        Some(path) => query.sort_descending(path),
        None => query.sort(path),
    }
}

/// How many documents or changes a page has unless it is said.
pub(super) const LIMIT_DEFAULT: usize = 100;
/// The most documents or changes of a page.
pub(super) const LIMIT_MAX: usize = 1_000;

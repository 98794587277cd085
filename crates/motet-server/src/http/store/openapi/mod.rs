//! The description of the store's API, as OpenAPI 3.1, at `/api/openapi.json`.
//!
//! Bodies are described by the types that they are read into and written from; [`operations`] says
//! which route takes and gives which.

mod operations;
mod parameters;

use std::sync::{Arc, LazyLock};

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::{OperationBuilder, PathItemBuilder, PathsBuilder};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ComponentsBuilder, ObjectBuilder, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required,
    ResponseBuilder, ResponsesBuilder, Schema,
};
use utoipa::{PartialSchema, ToSchema};

use self::operations::Operation;
use super::StoreApi;
use super::access::Permission;
use super::failure::{Failure, FailureForm};

static DOCUMENT: LazyLock<String> =
    LazyLock::new(|| document().to_json().expect("a description can be written as JSON"));

/// Answers the description to whoever may use the store at all.
pub(super) async fn openapi(
    State(api): State<Arc<StoreApi>>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    api.admit(&headers, None, Permission::Read)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response())
}

/// A body that is described: its schema's name, and how to add it to the document.
#[derive(Clone, Copy)]
struct Body {
    name: fn() -> std::borrow::Cow<'static, str>,
    schema: fn() -> RefOr<Schema>,
    parts: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Body {
    const fn of<T: ToSchema + PartialSchema>() -> Self {
        Self { name: T::name, schema: T::schema, parts: T::schemas }
    }

    fn reference(self) -> Ref {
        Ref::from_schema_name((self.name)())
    }
}

fn document() -> OpenApi {
    let operations = operations::all();
    let mut components = ComponentsBuilder::new()
        .security_scheme(TOKEN, SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    let bodies = operations.iter().flat_map(|operation| [operation.takes, Some(operation.gives)]);
    for body in bodies.flatten().chain([Body::of::<FailureForm>()]) {
        let mut parts = Vec::new();
        (body.parts)(&mut parts);
        components = components.schema((body.name)(), (body.schema)()).schemas_from_iter(parts);
    }
    let mut paths = PathsBuilder::new();
    for path in operations::paths(&operations) {
        let here = operations.iter().filter(|operation| operation.path == path);
        let item = here.fold(PathItemBuilder::new(), |item, operation| {
            item.operation(operation.method.clone(), describe(operation))
        });
        paths = paths.path(path, item.build());
    }
    let info = InfoBuilder::new()
        .title("Motet store")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .build();
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components.build())).build()
}

fn describe(operation: &Operation) -> utoipa::openapi::path::Operation {
    let anybody = SecurityRequirement::default();
    let with_token = SecurityRequirement::new::<_, [&str; 0], &str>(TOKEN, []);
    let mut builder = OperationBuilder::new()
        .operation_id(Some(operation.id))
        .summary(Some(operation.summary))
        .securities(Some([anybody, with_token]))
        .responses(responses(operation));
    for parameter in parameters::of(operation) {
        builder = builder.parameter(parameter);
    }
    if let Some(takes) = operation.takes {
        let content = ContentBuilder::new().schema(Some(takes.reference())).build();
        let body = RequestBodyBuilder::new()
            .content("application/json", content)
            .required(Some(Required::True))
            .build();
        builder = builder.request_body(Some(body));
    }
    builder.build()
}

fn responses(operation: &Operation) -> ResponsesBuilder {
    let json = |schema: Ref| ContentBuilder::new().schema(Some(schema)).build();
    let text = || HeaderBuilder::new().schema(Some(string())).build();
    let mut done = ResponseBuilder::new()
        .description("Done.")
        .header("X-Request-Id", text())
        .content("application/json", json(operation.gives.reference()));
    if operation.tagged {
        done = done.header("ETag", text());
    }
    let mut all = ResponsesBuilder::new().response("200", done.build());
    for (status, description) in operation.failures() {
        let mut failed = ResponseBuilder::new()
            .description(description)
            .header("X-Request-Id", text())
            .content("application/json", json(Body::of::<FailureForm>().reference()));
        if ["429", "503", "507"].contains(&status) {
            failed = failed.header("Retry-After", text());
        }
        all = all.response(status, failed.build());
    }
    all
}

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// The name of the way in which a caller shows who it is.
const TOKEN: &str = "token";

const ABOUT: &str = "Typed JSON documents with versions, a log of every change, transactions, \
indexes and queries. Every error has the same form and a stable code; those that say they are \
retryable may be tried again unchanged. A server with API tokens wants one in Authorization.";

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn parsed() -> Value {
        serde_json::from_str(&DOCUMENT).expect("JSON")
    }

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let mut routes: Vec<_> = super::super::routes().iter().map(|(path, _)| *path).collect();
        let document = parsed();
        let mut described: Vec<_> =
            document["paths"].as_object().expect("paths").keys().map(String::as_str).collect();
        routes.sort_unstable();
        described.sort_unstable();
        assert_eq!(routes, described);
    }

    #[test]
    fn every_object_that_is_answered_is_closed_and_every_reference_leads_somewhere() {
        let document = parsed();
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        for (name, schema) in schemas {
            if schema["type"] == "object" && name != "Description" {
                assert_eq!(schema["additionalProperties"], false, "{name}");
            }
        }
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schemas.contains_key(name), "{name}");
        }
    }
}

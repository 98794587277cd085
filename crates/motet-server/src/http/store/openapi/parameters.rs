//! The parameters of operations: what stands in paths, queries and heads.

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{HttpMethod, Required};

use super::operations::Operation;
use super::string;

/// The parameters of an operation, as its path and kind have them.
pub(super) fn of(operation: &Operation) -> Vec<Parameter> {
    let mut parameters: Vec<_> = PATH_PARAMETERS
        .iter()
        .filter(|(name, ..)| operation.path.contains(&format!("{{{name}}}")))
        .map(|(name, about, example)| in_path(name, about, example))
        .collect();
    if operation.is_of_document() && operation.changes() {
        let tag = string().pattern(Some("^(\\*|\"[0-9]{1,19}\")$"));
        let about = "Only if the document has this version, in quotes; * for any.";
        parameters.push(optional("If-Match", ParameterIn::Header, tag, about));
        if operation.method == HttpMethod::Put {
            let star = string().enum_values(Some(["*"]));
            let about = "Only if there is no such document.";
            parameters.push(optional("If-None-Match", ParameterIn::Header, star, about));
        }
        if operation.method != HttpMethod::Delete {
            let about = "The document ends after so many milliseconds.";
            let time = integer(1.0, Some(31_556_952_000_000.0));
            parameters.push(optional("ttlMs", ParameterIn::Query, time, about));
        }
    }
    if operation.is_once() {
        let key = string().pattern(Some("^[!-~]{1,255}$"));
        let about = "A name of the caller's for this request. The same request under the same key \
                     is done once within 24 hours, however often it is sent, and answered alike.";
        parameters.push(optional("Idempotency-Key", ParameterIn::Header, key, about));
    }
    let follows_clocks = operation.path.ends_with("/log");
    let follows_keys = operation.path.ends_with("/violations");
    if follows_clocks {
        let about = "Only changes after this clock.";
        parameters.push(optional("after", ParameterIn::Query, integer(0.0, None), about));
        let about = "The `compactedTo` of the page before.";
        parameters.push(optional("compactedTo", ParameterIn::Query, integer(0.0, None), about));
    }
    if follows_keys {
        let about = "Only documents with keys after this one.";
        parameters.push(optional("after", ParameterIn::Query, string(), about));
    }
    if follows_clocks || follows_keys {
        let about = "How many at most; 100 unless it is said.";
        let limit = integer(1.0, Some(1_000.0));
        parameters.push(optional("limit", ParameterIn::Query, limit, about));
    }
    parameters
}

fn in_path(name: &str, about: &str, example: &str) -> Parameter {
    let schema = match name {
        "key" => string().min_length(Some(1)).max_length(Some(480)),
        _ => string().pattern(Some("^[A-Za-z][A-Za-z0-9._-]{0,63}$")),
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(about))
        .schema(Some(schema))
        .example(Some(example.into()))
        .build()
}

fn optional(name: &str, place: ParameterIn, schema: ObjectBuilder, about: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(about))
        .schema(Some(schema))
        .build()
}

fn integer(minimum: f64, maximum: Option<f64>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(minimum)).maximum(maximum)
}

/// Name, what it is, and an example.
const PATH_PARAMETERS: [(&str, &str, &str); 5] = [
    ("env", "The environment.", "default"),
    ("type", "The documents' type.", "Order"),
    ("key", "The document's key, 1 to 480 bytes.", "o-1"),
    ("name", "The index's name.", "by_total"),
    ("pin", "The name of a reader that comes back later.", "mirror"),
];

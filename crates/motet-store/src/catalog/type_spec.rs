//! What a type asks of its documents.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::clock::millis;
use crate::value::Path;

/// What a type asks of its documents: a schema, references, a time to live. A type that was never
/// described asks nothing.
///
/// ```
/// use motet_store::{OnDelete, Store, TypeSpec};
/// use serde_json::json;
///
/// let env = Store::in_memory().env("default")?;
/// let schema = json!({"type": "object", "required": ["customer"]});
/// let spec = TypeSpec::new().schema(schema).reference("customer", "Customer", OnDelete::Cascade);
/// env.define("Order", &spec)?;
///
/// assert!(env.put("Order", "o-1", json!({"customer": "c-1"})).is_err(), "there is no c-1");
/// env.put("Customer", "c-1", json!({}))?;
/// env.put("Order", "o-1", json!({"customer": "c-1"}))?;
/// env.remove("Customer", "c-1")?;
/// assert_eq!(env.get("Order", "o-1")?, None);
/// # Ok::<(), motet_store::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeSpec {
    /// How long a new document lives, unless its write says otherwise, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<SchemaSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) references: Vec<Reference>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchemaSpec {
    pub(crate) json: Value,
    /// Whether what does not fit is refused, or written and recorded.
    pub(crate) enforced: bool,
}

/// A field that holds the key of a document of another type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reference {
    pub(crate) path: String,
    pub(crate) to: String,
    pub(crate) on_delete: OnDelete,
}

/// What the removal of a document does to those that refer to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDelete {
    /// Nothing: they go on naming what is no more.
    #[default]
    NoAction,
    /// It is refused while there are any.
    Restrict,
    /// They are removed too, and those that refer to them.
    Cascade,
    /// Their reference becomes null; an element of an array is taken out.
    SetNull,
}

impl TypeSpec {
    /// A type that asks nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// New documents expire after this time, unless their write says otherwise.
    #[must_use]
    pub fn expires_in(mut self, time: Duration) -> Self {
        self.ttl_ms = Some(millis(time));
        self
    }

    /// Documents that do not fit this JSON Schema are refused with `SCHEMA_VIOLATION`. Those that are
    /// there already are left alone until they are written to.
    #[must_use]
    pub fn schema(mut self, json: Value) -> Self {
        self.schema = Some(SchemaSpec { json, enforced: true });
        self
    }

    /// Documents that do not fit this JSON Schema are written, and recorded:
    /// [`Env::violations`](crate::Env::violations) lists them.
    #[must_use]
    pub fn recorded_schema(mut self, json: Value) -> Self {
        self.schema = Some(SchemaSpec { json, enforced: false });
        self
    }

    /// The field at this path holds the key of a document of another type, or several in an array,
    /// or null. A write that names a document that is not there is refused with
    /// `REFERENCE_MISSING`; what the removal of one does is `on_delete`.
    #[must_use]
    pub fn reference(
        mut self,
        path: impl Into<String>,
        to: impl Into<String>,
        on_delete: OnDelete,
    ) -> Self {
        self.references.push(Reference { path: path.into(), to: to.into(), on_delete });
        self
    }

    /// How long a new document lives, unless its write says otherwise.
    #[must_use]
    pub fn time_to_live(&self) -> Option<Duration> {
        self.ttl_ms.map(Duration::from_millis)
    }

    /// The JSON Schema of its documents, and whether what does not fit is refused.
    #[must_use]
    pub fn schema_of_documents(&self) -> Option<(&Value, bool)> {
        self.schema.as_ref().map(|schema| (&schema.json, schema.enforced))
    }

    /// Its references: the field's path, the type that it leads to, and what a removal does.
    pub fn references(&self) -> impl ExactSizeIterator<Item = (&str, &str, OnDelete)> {
        let references = self.references.iter();
        references.map(|one| (one.path.as_str(), one.to.as_str(), one.on_delete))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        for reference in &self.references {
            Path::parse(&reference.path)?;
            crate::document::check_name(&reference.to)?;
        }
        Schema::compile(self.schema.as_ref()).map(|_| ())
    }
}

/// A schema, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    validator: jsonschema::Validator,
    pub(crate) enforced: bool,
}

impl Schema {
    pub(crate) fn compile(spec: Option<&SchemaSpec>) -> Result<Option<Self>, Error> {
        let Some(spec) = spec else { return Ok(None) };
        // Patterns run in linear time, as those of filters do.
        let options =
            jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
        let validator = options.build(&spec.json);
        let validator =
            validator.map_err(|error| Error::SchemaInvalid { why: error.to_string() })?;
        Ok(Some(Self { validator, enforced: spec.enforced }))
    }

    /// What does not fit, if anything does not.
    pub(crate) fn violations(&self, value: &Value) -> Option<String> {
        if self.validator.is_valid(value) {
            return None;
        }
        let errors = self.validator.iter_errors(value).take(VIOLATIONS_SHOWN_MAX);
        let texts: Vec<_> =
            errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
        Some(texts.join("; "))
    }
}

const VIOLATIONS_SHOWN_MAX: usize = 5;

//! What the simulated types ask of their documents, as the model keeps it.

use std::time::Duration;

use motet_store::{IndexSpec, OnDelete, TypeSpec};
use serde_json::{Value, json};

use super::body::{Body, Link};

/// The types, in the order of their names.
pub(crate) const TYPES: [&str; 3] = ["Item", "Node", "Note"];

/// A field that refers to documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    To,
    Refs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) field: Field,
    /// The type that it leads to.
    pub(crate) to: u8,
    pub(crate) on_delete: OnDelete,
}

/// A rule that a document's value keeps or breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    NeedsN,
    NAtMost4,
    ToIsText,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) ttl_ms: Option<u64>,
    /// The rule, and whether it is enforced.
    pub(crate) schema: Option<(Schema, bool)>,
    pub(crate) references: Vec<Reference>,
}

/// What an index holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    N,
    UniqueU,
    Tags,
    NThenUDescending,
    UniqueUOfOpen,
    NOfOpen,
    TagsThenN,
    To,
    Refs,
}

impl Field {
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::To => "to",
            Self::Refs => "refs",
        }
    }

    pub(crate) fn leads_to(self, body: &Body, key: u8) -> bool {
        match self {
            Self::To => body.to == Link::To(key),
            Self::Refs => body.refs.as_ref().is_some_and(|refs| refs.contains(&key)),
        }
    }

    /// The keys that a document refers to.
    pub(crate) fn targets(self, body: &Body) -> Vec<u8> {
        match (self, body.to) {
            (Self::To, Link::To(key)) => vec![key],
            (Self::To, _) => Vec::new(),
            (Self::Refs, _) => body.refs.clone().unwrap_or_default(),
        }
    }

    /// The document without its references to a key.
    pub(crate) fn cleared(self, body: &Body, key: u8) -> Body {
        let mut body = body.clone();
        match self {
            Self::To if body.to == Link::To(key) => body.to = Link::Null,
            Self::To => {}
            Self::Refs => {
                if let Some(refs) = &mut body.refs {
                    refs.retain(|other| *other != key);
                }
            }
        }
        body
    }

    /// The name of the index that the store keeps for it.
    pub(crate) const fn index_name(self) -> &'static str {
        match self {
            Self::To => "~reference.to",
            Self::Refs => "~reference.refs",
        }
    }
}

impl Schema {
    pub(crate) const fn holds(self, body: &Body) -> bool {
        match self {
            Self::NeedsN => body.n.is_some(),
            Self::NAtMost4 => matches!(body.n, None | Some(..=4)),
            Self::ToIsText => !matches!(body.to, Link::Null),
        }
    }

    fn to_json(self) -> Value {
        match self {
            Self::NeedsN => json!({"type": "object", "required": ["n"]}),
            Self::NAtMost4 => json!({"properties": {"n": {"maximum": 4}}}),
            Self::ToIsText => json!({"properties": {"to": {"type": "string"}}}),
        }
    }
}

impl Spec {
    pub(crate) fn to_store(&self) -> TypeSpec {
        let mut spec = TypeSpec::new();
        if let Some(ttl_ms) = self.ttl_ms {
            spec = spec.expires_in(Duration::from_millis(ttl_ms));
        }
        spec = match self.schema {
            Some((schema, true)) => spec.schema(schema.to_json()),
            Some((schema, false)) => spec.recorded_schema(schema.to_json()),
            None => spec,
        };
        for reference in &self.references {
            let to = TYPES[usize::from(reference.to)];
            spec = spec.reference(reference.field.path(), to, reference.on_delete);
        }
        spec
    }
}

impl Shape {
    /// Those of users' indexes.
    pub(crate) const ALL: [Self; 7] = [
        Self::N,
        Self::UniqueU,
        Self::Tags,
        Self::NThenUDescending,
        Self::UniqueUOfOpen,
        Self::NOfOpen,
        Self::TagsThenN,
    ];

    pub(crate) const fn is_unique(self) -> bool {
        matches!(self, Self::UniqueU | Self::UniqueUOfOpen)
    }

    pub(crate) fn to_store(self) -> IndexSpec {
        let spec = IndexSpec::new();
        let open = json!({"open": true});
        match self {
            Self::N => spec.field("n"),
            Self::UniqueU => spec.field("u").unique(),
            Self::Tags => spec.field("tags"),
            Self::NThenUDescending => spec.field("n").descending("u"),
            Self::UniqueUOfOpen => spec.field("u").unique().matching(open),
            Self::NOfOpen => spec.field("n").matching(open),
            Self::TagsThenN => spec.field("tags").field("n"),
            Self::To => spec.field("to"),
            Self::Refs => spec.field("refs"),
        }
    }

    /// Whether a document is in the index at all.
    pub(crate) fn holds(self, body: &Body) -> bool {
        !matches!(self, Self::UniqueUOfOpen | Self::NOfOpen) || body.open == Some(true)
    }

    /// What a unique index keeps from coming twice.
    pub(crate) fn unique(self, body: &Body) -> Option<u8> {
        if self.is_unique() && self.holds(body) { body.u } else { None }
    }
}

//! Documents of the simulated types, as the model keeps them.

use motet_store::Patch;
use serde_json::{Map, Value, json};

/// The keys that documents have, in the order of their bytes.
pub(crate) const KEYS: [&str; 8] = ["a", "b", "c", "e/1", "e/2", "e/3", "x\0", "\u{e4}"];

/// A key that no document has.
pub(crate) const MISSING: u8 = KEYS.len() as u8;

/// What a reference may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Link {
    #[default]
    Absent,
    Null,
    /// The key with this number.
    To(u8),
}

/// A document's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) n: Option<i64>,
    pub(crate) u: Option<u8>,
    pub(crate) tags: Option<Vec<u8>>,
    pub(crate) open: Option<bool>,
    pub(crate) to: Link,
    pub(crate) refs: Option<Vec<u8>>,
}

/// One change to a part of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    SetN(i64),
    IncN(i64),
    AppendTag(u8),
    PullTag(u8),
    UnsetU,
    SetU(u8),
    SetTo(u8),
}

pub(crate) fn key_text(key: u8) -> &'static str {
    KEYS.get(usize::from(key)).copied().unwrap_or("missing")
}

pub(crate) fn unique_text(u: u8) -> String {
    format!("u{u}")
}

pub(crate) fn tag_text(tag: u8) -> &'static str {
    ["red", "green", "blue", "grey"][usize::from(tag) % 4]
}

impl Body {
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let mut add = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        let texts = |keys: &Vec<u8>| keys.iter().map(|key| json!(key_text(*key))).collect();
        add("n", self.n.map(Value::from));
        add("u", self.u.map(|u| json!(unique_text(u))));
        add("tags", self.tags_json());
        add("open", self.open.map(Value::from));
        add(
            "to",
            match self.to {
                Link::Absent => None,
                Link::Null => Some(Value::Null),
                Link::To(key) => Some(json!(key_text(key))),
            },
        );
        add("refs", self.refs.as_ref().map(texts));
        Value::Object(fields)
    }

    pub(crate) fn tags_json(&self) -> Option<Value> {
        let texts = |tags: &Vec<u8>| tags.iter().map(|tag| json!(tag_text(*tag))).collect();
        self.tags.as_ref().map(texts)
    }

    pub(crate) fn patched(&self, part: Part) -> Self {
        let mut body = self.clone();
        match part {
            Part::SetN(n) => body.n = Some(n),
            Part::IncN(by) => body.n = Some(body.n.unwrap_or(0) + by),
            Part::AppendTag(tag) => body.tags.get_or_insert_default().push(tag),
            Part::PullTag(tag) => {
                if let Some(tags) = &mut body.tags {
                    tags.retain(|other| *other != tag);
                }
            }
            Part::UnsetU => body.u = None,
            Part::SetU(u) => body.u = Some(u),
            Part::SetTo(key) => body.to = Link::To(key),
        }
        body
    }
}

impl Part {
    pub(crate) fn to_patch(self) -> Patch {
        let patch = Patch::new();
        let patch = match self {
            Self::SetN(n) => patch.set("n", json!(n)),
            Self::IncN(by) => patch.inc("n", json!(by)),
            Self::AppendTag(tag) => patch.append("tags", vec![json!(tag_text(tag))]),
            Self::PullTag(tag) => patch.pull("tags", json!(tag_text(tag))),
            Self::UnsetU => patch.unset("u"),
            Self::SetU(u) => patch.set("u", json!(unique_text(u))),
            Self::SetTo(key) => patch.set("to", json!(key_text(key))),
        };
        patch.expect("every path of the model is a path")
    }
}

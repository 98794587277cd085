//! Which environments an API token is good for: a list of names, or `"*"`.

use core::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The environments that an API token is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenEnvironments {
    /// All that there are and will be, written as `"*"`.
    All,
    /// These.
    Listed(Vec<String>),
}

impl TokenEnvironments {
    /// Whether this environment is one of them.
    #[must_use]
    pub fn contain(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(names) => names.iter().any(|listed| listed == name),
        }
    }
}

impl Default for TokenEnvironments {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl Serialize for TokenEnvironments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("*"),
            Self::Listed(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for TokenEnvironments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamesOrStar)
    }
}

struct NamesOrStar;

impl<'de> Visitor<'de> for NamesOrStar {
    type Value = TokenEnvironments;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of environments, or \"*\" for all")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        if text == "*" {
            return Ok(TokenEnvironments::All);
        }
        Err(E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Self::Value, A::Error> {
        let mut listed = Vec::new();
        while let Some(name) = names.next_element()? {
            listed.push(name);
        }
        Ok(TokenEnvironments::Listed(listed))
    }
}

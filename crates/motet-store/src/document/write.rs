//! One thing to do to one document.

use std::time::Duration;

use serde_json::Value;

use super::{check_key, check_name};
use crate::clock::millis;
use crate::{Clock, Error, Patch};

/// One thing to do to one document, with its conditions.
///
/// ```
/// use motet_store::{Clock, Write};
/// use serde_json::json;
///
/// let first = Write::create("Order", "o-1", json!({"total": 10}));
/// let then = Write::update("Order", "o-1", json!({"total": 12})).if_version(Clock::new(1));
/// ```
#[derive(Clone, Debug)]
pub struct Write {
    pub(crate) type_name: String,
    pub(crate) key: String,
    pub(crate) kind: Kind,
    pub(crate) if_version: Option<Clock>,
    pub(crate) expiry: Expiry,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Put(Value),
    Create(Value),
    Update(Value),
    Patch(Patch),
    Remove,
}

/// When the document ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// As the kind of write has it: put and create take the type's default, the others keep what
    /// the document has.
    #[default]
    Unchanged,
    Never,
    AfterMs(u64),
}

impl Write {
    /// Creates the document or replaces it.
    pub fn put(type_name: impl Into<String>, key: impl Into<String>, value: Value) -> Self {
        Self::new(type_name.into(), key.into(), Kind::Put(value))
    }

    /// Creates the document; fails with `ALREADY_EXISTS` where there is one.
    pub fn create(type_name: impl Into<String>, key: impl Into<String>, value: Value) -> Self {
        Self::new(type_name.into(), key.into(), Kind::Create(value))
    }

    /// Replaces the document; fails with `NOT_FOUND` where there is none.
    pub fn update(type_name: impl Into<String>, key: impl Into<String>, value: Value) -> Self {
        Self::new(type_name.into(), key.into(), Kind::Update(value))
    }

    /// Changes parts of the document; fails with `NOT_FOUND` where there is none. A patch that
    /// leaves the document as it is makes no change and keeps its version.
    pub fn patch(type_name: impl Into<String>, key: impl Into<String>, patch: Patch) -> Self {
        Self::new(type_name.into(), key.into(), Kind::Patch(patch))
    }

    /// Removes the document; fails with `NOT_FOUND` where there is none.
    pub fn remove(type_name: impl Into<String>, key: impl Into<String>) -> Self {
        Self::new(type_name.into(), key.into(), Kind::Remove)
    }

    /// Only if the document's version is this; [`Clock::ZERO`] means that there is none.
    #[must_use]
    pub const fn if_version(mut self, version: Clock) -> Self {
        self.if_version = Some(version);
        self
    }

    /// The document counts as absent after this time, counted from the commit.
    #[must_use]
    pub fn expires_in(mut self, time: Duration) -> Self {
        self.expiry = Expiry::AfterMs(millis(time));
        self
    }

    /// The document stays until it is removed, whatever it or its type had.
    #[must_use]
    pub const fn never_expires(mut self) -> Self {
        self.expiry = Expiry::Never;
        self
    }

    const fn new(type_name: String, key: String, kind: Kind) -> Self {
        Self { type_name, key, kind, if_version: None, expiry: Expiry::Unchanged }
    }

    /// Whether it is well formed, whatever the store holds.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_name(&self.type_name)?;
        check_key(&self.key)
    }
}

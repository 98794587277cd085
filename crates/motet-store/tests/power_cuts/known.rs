//! The whole log of the recorded process, and the documents that it makes at any clock.

use std::collections::BTreeMap;

use motet_store::Change;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A change as the recorded process saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) clock: u64,
    pub(crate) type_name: String,
    pub(crate) key: String,
    op: String,
    previous: Option<u64>,
    pub(crate) transaction: u64,
    pub(crate) time: u64,
    pub(crate) value: Option<Value>,
}

impl From<&Change> for Known {
    fn from(change: &Change) -> Self {
        Self {
            clock: change.clock.number(),
            type_name: change.type_name.clone(),
            key: change.key.clone(),
            op: format!("{:?}", change.op),
            previous: change.previous.map(motet_store::Clock::number),
            transaction: change.transaction.number(),
            time: change.time.number(),
            value: change.value.clone(),
        }
    }
}

impl Known {
    /// What it made of which document.
    pub(crate) fn made(&self) -> (u64, &str, &str, Option<&Value>) {
        (self.clock, &self.type_name, &self.key, self.value.as_ref())
    }
}

/// Documents by type and key, each the last change of it.
pub(crate) type Documents<'h> = BTreeMap<&'h str, BTreeMap<&'h str, &'h Known>>;

/// The documents that a log makes.
pub(crate) fn replay(log: &[Known]) -> Documents<'_> {
    let mut documents = Documents::new();
    for change in log {
        let of_type = documents.entry(&change.type_name).or_default();
        let before = match change.value {
            Some(_) => of_type.insert(&change.key, change),
            None => of_type.remove(change.key.as_str()),
        };
        assert_eq!(change.previous, before.map(|before| before.clock), "{change:?}");
    }
    documents
}

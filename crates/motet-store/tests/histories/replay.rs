//! Every state that the log went through.

use std::collections::BTreeMap;

use serde_json::Value;

/// The documents at every clock.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    types: BTreeMap<String, BTreeMap<String, Vec<Version>>>,
}

/// What one change made of a document.
#[derive(Debug)]
struct Version {
    clock: u64,
    state: Option<State>,
}

/// A document, from one change to the next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) version: u64,
    pub(crate) value: Value,
    pub(crate) expires_ms: Option<u64>,
}

impl Replay {
    /// The next change of a document; none is left by a removal.
    pub(crate) fn push(&mut self, of: &str, key: &str, clock: u64, state: Option<State>) {
        let documents = self.types.entry(of.to_owned()).or_default();
        documents.entry(key.to_owned()).or_default().push(Version { clock, state });
    }

    /// A document just after a clock.
    pub(crate) fn at(&self, of: &str, key: &str, clock: u64) -> Option<&State> {
        at(self.types.get(of)?.get(key)?, clock)
    }

    /// A document after everything so far.
    pub(crate) fn last(&self, of: &str, key: &str) -> Option<&State> {
        self.at(of, key, u64::MAX)
    }

    /// All documents of a type just after a clock, by key.
    pub(crate) fn all_at(&self, of: &str, clock: u64) -> impl Iterator<Item = (&str, &State)> {
        let documents = self.types.get(of).into_iter().flatten();
        documents.filter_map(move |(key, versions)| Some((key.as_str(), at(versions, clock)?)))
    }
}

fn at(versions: &[Version], clock: u64) -> Option<&State> {
    let until = versions.partition_point(|version| version.clock <= clock);
    versions[..until].last()?.state.as_ref()
}

//! What an environment knows about its types, kept in the environment itself.
//!
//! Every change of it raises the epoch. A write compares the epoch inside its transaction, so no
//! process ever writes by a catalogue that another has changed.

mod define;
mod type_spec;

use core::fmt;
use core::ops::ControlFlow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use motet_protocol::fault::planted;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::engine::{Read, Table, Writes};
use crate::index::Index;
use crate::keys::TypeId;
use crate::log::Compacted;
use crate::lookup;
use crate::value::successor;

pub(crate) use define::Define;
pub use type_spec::{OnDelete, TypeSpec};
pub(crate) use type_spec::{Reference, Schema};

/// A type, as the catalogue has it. Unknown fields are refused: a later build may keep rules in
/// them that this one would break.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TypeRecord {
    pub(crate) id: u32,
    #[serde(default)]
    pub(crate) spec: TypeSpec,
}

/// A type, ready to be used.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) record: TypeRecord,
    pub(crate) schema: Option<Schema>,
}

impl Type {
    /// A type that asks nothing.
    pub(crate) fn plain(id: TypeId) -> Self {
        Self { record: TypeRecord { id: id.0, spec: TypeSpec::default() }, schema: None }
    }

    pub(crate) fn new(record: TypeRecord) -> Result<Self, Error> {
        let schema = Schema::compile(record.spec.schema.as_ref())?;
        Ok(Self { record, schema })
    }
}

/// The whole catalogue at one epoch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) epoch: u64,
    /// Whether the log is compacted up to some clock, which writers must then know.
    pub(crate) is_compacted: bool,
    /// In order, so that what a removal does to others has the same order everywhere.
    types: BTreeMap<String, Arc<Type>>,
    names: HashMap<TypeId, String>,
    indexes: BTreeMap<TypeId, Vec<Arc<Index>>>,
}

impl Catalog {
    pub(crate) fn type_named(&self, name: &str) -> Option<&TypeRecord> {
        self.types.get(name).map(|found| &found.record)
    }

    /// The number of a type that was ever written to or described.
    pub(crate) fn type_id(&self, name: &str) -> Option<TypeId> {
        self.type_named(name).map(|record| TypeId(record.id))
    }

    pub(crate) fn schema(&self, name: &str) -> Option<&Schema> {
        self.types.get(name)?.schema.as_ref()
    }

    /// The references to a type: the type that has the reference, and the reference.
    pub(crate) fn references_to(&self, to: &str) -> impl Iterator<Item = (&str, &Reference)> {
        self.types.iter().flat_map(move |(name, from)| {
            let references = from.record.spec.references.iter();
            references.filter(move |reference| reference.to == to).map(|one| (name.as_str(), one))
        })
    }

    pub(crate) fn has_type(&self, name: &str) -> bool {
        self.types.contains_key(name)
    }

    pub(crate) fn type_name(&self, id: TypeId) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    pub(crate) fn type_names(&self) -> impl Iterator<Item = &str> {
        self.types.keys().map(String::as_str)
    }

    /// Sets a type's record. The caller writes the record and raises the epoch.
    pub(crate) fn set_type(&mut self, name: &str, found: Type) {
        self.names.insert(TypeId(found.record.id), name.to_owned());
        self.types.insert(name.to_owned(), Arc::new(found));
    }

    /// All indexes of a type, also those that are not ready.
    pub(crate) fn indexes(&self, type_id: TypeId) -> &[Arc<Index>] {
        self.indexes.get(&type_id).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn index(&self, type_id: TypeId, name: &str) -> Option<&Arc<Index>> {
        self.indexes(type_id).iter().find(|index| index.name == name)
    }

    pub(crate) fn all_indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.values().flatten()
    }

    /// Sets an index. The caller writes the record and raises the epoch.
    pub(crate) fn set_index(&mut self, index: Index) {
        let indexes = self.indexes.entry(index.type_id()).or_default();
        indexes.retain(|other| other.name != index.name);
        indexes.push(Arc::new(index));
    }

    /// Takes an index out. The caller removes the record and raises the epoch.
    pub(crate) fn remove_index(&mut self, index: &Index) {
        if let Some(indexes) = self.indexes.get_mut(&index.type_id()) {
            indexes.retain(|other| other.name != index.name);
        }
    }

    /// A number that no type has had.
    pub(crate) fn next_type_id(&self) -> TypeId {
        TypeId(self.names.keys().map(|id| id.0 + 1).max().unwrap_or(TYPE_ID_FIRST))
    }

    /// The catalogue as it is at this point of the environment's history.
    pub(crate) async fn load(from: &dyn Read) -> Result<Self, Error> {
        let mut catalog = Self { epoch: epoch(from).await?, ..Self::default() };
        catalog.is_compacted = Compacted::load(from).await?.is_some();
        for (name, value) in under(from, TYPE_PREFIX).await? {
            catalog.set_type(&name, Type::new(parse(format_args!("type {name:?}"), &value)?)?);
        }
        for (path, value) in under(from, INDEX_PREFIX).await? {
            let name = path.split_once('/').map_or("", |(_, name)| name);
            catalog.set_index(Index::new(name, parse(format_args!("index {path:?}"), &value)?)?);
        }
        Ok(catalog)
    }
}

/// The entries of the catalogue under a prefix: what follows the prefix, and the value.
async fn under(from: &dyn Read, prefix: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut entries = Vec::new();
    let end = successor(prefix);
    lookup::range(from, Table::Catalog, prefix, end.as_deref(), &mut |key, value| {
        let name = String::from_utf8_lossy(&key[prefix.len()..]).into_owned();
        entries.push((name, value.to_vec()));
        ControlFlow::Continue(())
    })
    .await?;
    Ok(entries)
}

/// Reads one of the catalogue's entries; `what` names it to people.
pub(crate) fn parse<T: DeserializeOwned>(
    what: fmt::Arguments<'_>,
    value: &[u8],
) -> Result<T, Error> {
    serde_json::from_slice(value).map_err(|error| {
        let (what, why) = (format!("the catalogue's {what}"), error.to_string());
        // Serde says so of fields and variants only.
        if error.is_data() && why.starts_with("unknown ") {
            Error::EntryNewer { what, why }
        } else {
            Error::Damaged { what, why }
        }
    })
}

/// Where the catalogue keeps an index.
pub(crate) fn index_key(type_name: &str, name: &str) -> Vec<u8> {
    [INDEX_PREFIX, type_name.as_bytes(), b"/", name.as_bytes()].concat()
}

/// Where the catalogue keeps a type.
pub(crate) fn type_key(name: &str) -> Vec<u8> {
    [TYPE_PREFIX, name.as_bytes()].concat()
}

async fn epoch(from: &dyn Read) -> Result<u64, Error> {
    let bytes = lookup::one(from, Table::Catalog, EPOCH_KEY).await?;
    match bytes {
        None => Ok(0),
        Some(bytes) => bytes.try_into().map(u64::from_be_bytes).map_err(|_| Error::Damaged {
            what: "the catalogue's epoch".into(),
            why: "it is no number of eight bytes".into(),
        }),
    }
}

/// Raises the epoch, by a decider that changes nothing else that writers go by.
pub(crate) async fn raise_epoch(open: &dyn Read, writes: &mut Writes) -> Result<(), Error> {
    let next = epoch(open).await? + 1;
    writes.put(Table::Catalog, EPOCH_KEY, &next.to_be_bytes());
    Ok(())
}

/// The newest catalogue that was seen in a view, shared by all that read and write.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Arc<Catalog>>);

impl Cache {
    /// The newest that was seen. Good for a type's number, which never changes.
    pub(crate) fn newest(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The catalogue of a view, which is committed and so may be kept.
    pub(crate) async fn of_view(&self, view: &dyn Read) -> Result<Arc<Catalog>, Error> {
        let catalog = self.of_transaction(view).await?;
        self.keep(&catalog);
        Ok(catalog)
    }

    fn keep(&self, catalog: &Arc<Catalog>) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.epoch < catalog.epoch {
            *newest = Arc::clone(catalog);
        }
    }

    /// The catalogue inside an open transaction. It is not kept: the transaction may fail, and its
    /// epoch then comes again with another content.
    pub(crate) async fn of_transaction(&self, open: &dyn Read) -> Result<Arc<Catalog>, Error> {
        let newest = self.newest();
        let skips = planted("skip-epoch-check") && newest.epoch > 0;
        if skips || epoch(open).await? == newest.epoch {
            return Ok(newest);
        }
        let catalog = Catalog::load(open).await.map(Arc::new)?;
        if planted("keep-uncommitted-catalog") {
            self.keep(&catalog);
        }
        Ok(catalog)
    }
}

/// Where the catalogue keeps its epoch, as a big-endian number.
pub(crate) const EPOCH_KEY: &[u8] = b"epoch";

/// The catalogue's next number for an index: one that was dropped is not used again.
pub(crate) const INDEX_IDS_KEY: &[u8] = b"index-ids";

/// How far the log is compacted. When it comes and goes, the epoch is raised; when the clock in it
/// moves, it is not.
pub(crate) const COMPACTED_KEY: &[u8] = b"log/compacted";

/// The store's own type of recorded violations.
pub(crate) const VIOLATIONS_TYPE: &str = "~violations";

const TYPE_PREFIX: &[u8] = b"type/";
const INDEX_PREFIX: &[u8] = b"index/";
const TYPE_ID_FIRST: u32 = 1;

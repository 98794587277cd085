//! References: what must be there when a transaction ends, and what a removal takes with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use motet_protocol::fault::planted;
use serde_json::Value;

use super::session::Session;
use crate::catalog::{OnDelete, Reference};
use crate::document::Write;
use crate::engine::Table;
use crate::index::{Index, IndexState};
use crate::keys;
use crate::log::Op;
use crate::value::{Direction, Path, encode};
use crate::{BrokenReference, Error};

/// What is left to do and to check in a transaction.
#[derive(Default)]
pub(super) struct References {
    /// The documents that were written, by type and key, and what they refer to.
    made: BTreeMap<(String, String), Vec<Target>>,
    /// The documents that were removed.
    removed: Vec<(String, String)>,
    /// What removals do to those that refer to what was removed.
    todo: Vec<Todo>,
}

struct Target {
    path: String,
    to: String,
    key: String,
}

enum Todo {
    Remove { type_name: String, key: String },
    SetNull { type_name: String, key: String, path: String, target: String },
}

impl Session<'_> {
    /// Notes what a document refers to. Whether it is there counts at the end.
    pub(super) fn note_references(&mut self, write: &Write, value: &Value) {
        let Some(record) = self.catalog.type_named(&write.type_name) else { return };
        if record.spec.references.is_empty() {
            return;
        }
        let targets = record.spec.references.iter().flat_map(|reference| {
            targets(value, &reference.path).into_iter().map(|key| Target {
                path: reference.path.clone(),
                to: reference.to.clone(),
                key,
            })
        });
        let name = (write.type_name.clone(), write.key.clone());
        self.references.made.insert(name, targets.collect());
    }

    /// Notes that a document is gone, and what is to happen to those that refer to it.
    pub(super) async fn note_removal(&mut self, write: &Write) -> Result<(), Error> {
        let name = (write.type_name.clone(), write.key.clone());
        self.references.made.remove(&name);
        let catalog = Arc::clone(&self.catalog);
        for (from, reference) in catalog.references_to(&write.type_name) {
            if !matches!(reference.on_delete, OnDelete::Cascade | OnDelete::SetNull) {
                continue;
            }
            // One more than there may be is enough to refuse them.
            let room =
                self.shared.limits.batch_writes_max.saturating_sub(self.references.todo.len());
            let referring = self.referring(from, reference, &write.key, None, room + 1).await?;
            for key in referring.into_iter().filter_map(|(_, key)| key) {
                let (type_name, path) = (from.to_owned(), reference.path.clone());
                self.references.todo.push(match reference.on_delete {
                    OnDelete::Cascade => Todo::Remove { type_name, key },
                    _ => Todo::SetNull { type_name, key, path, target: write.key.clone() },
                });
            }
            self.check_writes(self.references.todo.len())?;
        }
        self.references.removed.push(name);
        Ok(())
    }

    /// Does what removals ask for. What it removes asks for more; a circle ends, for what is gone is
    /// not found again.
    pub(super) async fn follow_references(&mut self) -> Result<(), Error> {
        while let Some(todo) = self.references.todo.pop() {
            self.check_writes(usize::try_from(self.changes).unwrap_or(usize::MAX))?;
            match todo {
                Todo::Remove { type_name, key } => {
                    let write = Write::remove(type_name, key);
                    let place = self.place(&write).await?;
                    if place.stored.is_some() {
                        self.remove(&place, &write, Op::Remove).await?;
                        if planted("cascade-once") {
                            self.references.todo.clear();
                        }
                    }
                }
                Todo::SetNull { type_name, key, path, target } => {
                    let write = Write::update(type_name, key, Value::Null);
                    let place = self.place(&write).await?;
                    if let Some(stored) = &place.stored {
                        let mut value = stored.value()?;
                        set_null(&mut value, &path, &target);
                        let name = (write.type_name.clone(), write.key.clone());
                        let counts = self.references.made.contains_key(&name);
                        self.put(&place, &write, &value).await?;
                        if !counts {
                            // Nobody asks what else it refers to: that was there before.
                            self.references.made.remove(&name);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether one transaction may have so many writes.
    const fn check_writes(&self, writes: usize) -> Result<(), Error> {
        let max = self.shared.limits.batch_writes_max;
        if writes > max { Err(Error::BatchTooLarge { writes, max }) } else { Ok(()) }
    }

    /// Whether every reference that was made leads somewhere, and nothing that was removed is
    /// referred to where that is restricted.
    pub(super) async fn check_references(&self) -> Result<(), Error> {
        for ((type_name, key), targets) in &self.references.made {
            for target in targets {
                if !self.is_there(&target.to, &target.key).await? {
                    return Err(Error::ReferenceMissing(Box::new(BrokenReference {
                        type_name: type_name.clone(),
                        key: key.clone(),
                        path: target.path.clone(),
                        to: target.to.clone(),
                        target: target.key.clone(),
                    })));
                }
            }
        }
        for (to, target) in &self.references.removed {
            let restricting = self.catalog.references_to(to);
            for (from, reference) in
                restricting.filter(|(_, one)| one.on_delete == OnDelete::Restrict)
            {
                if self.is_there(to, target).await? {
                    continue;
                }
                if let Some(key) = self.first_referring(from, reference, target).await? {
                    return Err(Error::ReferenceRestricted(Box::new(BrokenReference {
                        type_name: from.into(),
                        key,
                        path: reference.path.clone(),
                        to: to.clone(),
                        target: target.clone(),
                    })));
                }
            }
        }
        Ok(())
    }

    /// The first document of a type that counts and refers to a document.
    async fn first_referring(
        &self,
        from: &str,
        reference: &Reference,
        target: &str,
    ) -> Result<Option<String>, Error> {
        let mut after = None;
        loop {
            let page =
                self.referring(from, reference, target, after.as_deref(), PAGE_ENTRIES).await?;
            let Some((last, _)) = page.last() else { return Ok(None) };
            after = Some(last.clone());
            for key in page.into_iter().filter_map(|(_, key)| key) {
                if self.is_there(from, &key).await? || planted("restrict-counts-expired") {
                    return Ok(Some(key));
                }
            }
        }
    }

    /// The first entries, after one of them, that refer to a document, and the keys of the documents
    /// of a type that they are of.
    async fn referring(
        &self,
        from: &str,
        reference: &Reference,
        target: &str,
        after: Option<&[u8]>,
        max: usize,
    ) -> Result<Vec<(Vec<u8>, Option<String>)>, Error> {
        let index = self.index_of(from, reference)?;
        let mut prefix = index.prefix().to_vec();
        let _ = encode(&mut prefix, Some(&Value::String(target.into())), Direction::Ascending);
        let page = self.overlay.page(Table::Index, &prefix, after, max).await?;
        let named = page.into_iter().map(|(entry, value)| {
            let key = index.document_key(&entry, &value);
            (entry, key)
        });
        Ok(named.collect())
    }

    fn index_of(&self, from: &str, reference: &Reference) -> Result<Arc<Index>, Error> {
        let found = self
            .catalog
            .type_id(from)
            .and_then(|type_id| self.catalog.index(type_id, &reference.index_name()));
        match found {
            Some(index) if index.record.state == IndexState::Ready => Ok(Arc::clone(index)),
            _ => Err(Error::ReferencesBuilding { to: reference.to.clone() }),
        }
    }

    async fn is_there(&self, type_name: &str, key: &str) -> Result<bool, Error> {
        let Some(type_id) = self.catalog.type_id(type_name) else { return Ok(false) };
        self.is_live(&keys::document(type_id, key)).await
    }
}

/// The keys that a document refers to at a path: texts there, or in an array there.
fn targets(value: &Value, path: &str) -> Vec<String> {
    let Ok(path) = Path::parse(path) else { return Vec::new() };
    let values = path.values(value).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Takes a reference out: a field becomes null, an element of an array goes.
fn set_null(value: &mut Value, path: &str, target: &str) {
    let (first, rest) =
        path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    match value {
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| set_null(element, path, target));
        }
        Value::Object(fields) => {
            let Some(field) = fields.get_mut(first) else { return };
            match (rest, &mut *field) {
                (Some(rest), field) => set_null(field, rest, target),
                (None, Value::Array(_)) if planted("set-null-forgets-arrays") => {}
                (None, Value::Array(elements)) => elements.retain(|element| element != target),
                (None, field) if *field == target => *field = Value::Null,
                (None, _) => {}
            }
        }
        _ => {}
    }
}

/// How many entries are looked at together, where one that counts is enough.
const PAGE_ENTRIES: usize = 64;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commit::Batch;
    use crate::commit::counting::Counted;
    use crate::engine::memory::Memory;
    use crate::engine::{Engine as _, system_clock};
    use crate::read_set::ReadSet;
    use crate::shared::Driver;
    use crate::{Env, Limits, TypeSpec};

    /// How many entries are looked at to refuse the removal of what this many refer to.
    fn entries_to_refuse(on_delete: OnDelete, referring: usize, writes_max: usize) -> usize {
        let engine = Arc::new(Memory::default());
        let limits = Limits { batch_writes_max: writes_max, ..Limits::default() };
        let driver = Driver { instance: 1, limits, wall_clock: system_clock(), outward: None };
        let env = Env::on_engine("test", Arc::clone(&engine) as Arc<_>, driver);
        env.define("Order", &TypeSpec::new().reference("of", "Customer", on_delete)).unwrap();
        env.maintain().unwrap();
        env.put("Customer", "c", json!(1)).unwrap();
        for n in 0..referring {
            env.put("Order", &format!("o-{n}"), json!({"of": "c"})).unwrap();
        }
        let writes = vec![Write::remove("Customer", "c")];
        let (batch, _) = Batch::new(Arc::clone(env.shared()), writes, ReadSet::default());
        let (counted, reads) = Counted::new(batch);
        let refused = pollster::block_on(engine.write(vec![Box::new(counted)])).pop().unwrap();
        assert!(refused.is_err());
        reads.index_entries()
    }

    #[test]
    fn no_more_of_what_refers_to_a_document_is_read_than_it_takes_to_refuse_its_removal() {
        assert_eq!(entries_to_refuse(OnDelete::Cascade, 200, 10), 11);
        assert_eq!(entries_to_refuse(OnDelete::SetNull, 200, 10), 11);
        assert_eq!(entries_to_refuse(OnDelete::Restrict, 200, 1_000), PAGE_ENTRIES);
    }

    #[test]
    fn a_reference_is_taken_out_wherever_its_path_leads() {
        let mut value = json!({
            "a": "k", "b": ["k", "l", "k"], "c": [{"d": "k"}, {"d": "l"}], "e": {"f": "k"}
        });
        for path in ["a", "b", "c.d", "e.f", "x.y"] {
            set_null(&mut value, path, "k");
        }
        let expected = json!({
            "a": null, "b": ["l"], "c": [{"d": null}, {"d": "l"}], "e": {"f": null}
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn references_are_texts_at_the_path_or_in_an_array_there() {
        let value = json!({"a": ["k", 5, null, "l"], "b": {"c": "m"}});
        assert_eq!(targets(&value, "a"), ["k", "l"]);
        assert_eq!(targets(&value, "b.c"), ["m"]);
        assert!(targets(&value, "x").is_empty());
    }
}

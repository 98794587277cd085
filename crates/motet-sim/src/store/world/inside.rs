//! Transactions: what they read equals the model as it was when they began, with their own writes.

use motet_store::{Error, KeyRange};

use super::World;
use crate::store::action::{Change, DrawnWrite, Keys, Read};
use crate::store::judge::Verdict;
use crate::store::model::Id;
use crate::store::model::body::Body;
use crate::store::model::rules::TYPES;
use crate::store::model::write::{ModelWrite, WriteKind};
use crate::store::transaction::{OpenTransaction, Reads};

impl World {
    pub(super) fn begin(&mut self, place: usize) -> Verdict {
        let process = &mut self.processes[place];
        let store = process.env.begin();
        let store = store.map_err(|error| ("serial", format!("no transaction: {error}")))?;
        process.seen_epoch = self.model.epoch;
        let now_ms = self.model.read_ms(process.wall_ms());
        let (head, epoch) = (self.model.head, self.model.epoch);
        let docs = self.model.docs.clone();
        let reads = Reads { head, epoch, now_ms, docs, ..Reads::default() };
        process.transaction = Some(OpenTransaction {
            store,
            own: std::collections::BTreeMap::new(),
            writes: Vec::new(),
            reads,
        });
        Ok(())
    }

    pub(super) fn read_inside(&mut self, place: usize, read: &Read) -> Verdict {
        let Some(open) = &mut self.processes[place].transaction else { return Ok(()) };
        match read {
            Read::Get(kind, key) => open.get(Id { kind: *kind, key: *key }).map(|_| ()),
            Read::Range(kind, keys) => open.range(*kind, *keys),
            Read::Query(..) => Ok(()),
        }
    }

    pub(super) fn write_inside(&mut self, place: usize, write: &DrawnWrite) -> Verdict {
        let concrete = self.concrete(write);
        let Some(open) = &mut self.processes[place].transaction else { return Ok(()) };
        let id = concrete.id;
        let (name, key) = (id.kind_name(), id.key_name());
        match (&write.change, concrete.kind) {
            (
                Change::Put(_) | Change::Create(_) | Change::Update(_),
                WriteKind::Put(body) | WriteKind::Create(body) | WriteKind::Update(body),
            ) => {
                open.store.put(name, key, body.to_json());
                open.own.insert(id, Some(body.clone()));
                open.writes.push(ModelWrite::plain(id, WriteKind::Put(body)));
            }
            (_, WriteKind::Patch(part)) => {
                let there = open.get(id)?;
                let outcome = open.store.patch(name, key, part.to_patch());
                open.told(id, there.is_some(), &outcome)?;
                if let Some(body) = there {
                    open.own.insert(id, Some(body.patched(part)));
                    open.writes.push(ModelWrite::plain(id, WriteKind::Patch(part)));
                }
            }
            _ => {
                let there = open.get(id)?;
                let outcome = open.store.remove(name, key);
                open.told(id, there.is_some(), &outcome)?;
                if there.is_some() {
                    open.own.insert(id, None);
                    open.writes.push(ModelWrite::plain(id, WriteKind::Remove));
                }
            }
        }
        Ok(())
    }
}

impl OpenTransaction {
    /// Reads a document, and compares it with what it must be.
    fn get(&mut self, id: Id) -> Result<Option<Body>, (&'static str, String)> {
        let found = self.store.get(id.kind_name(), id.key_name());
        let found = found.map_err(|error| ("serial", format!("a read failed: {error}")))?;
        let expected = match self.own.get(&id) {
            Some(own) => own.clone(),
            None => {
                self.reads.documents.push((id, self.reads.docs.version(id)));
                self.reads.docs.live(id, self.reads.now_ms).map(|doc| doc.body.clone())
            }
        };
        if found != expected.as_ref().map(Body::to_json) {
            return Err(("serial", format!("{} is {found:?} inside", id.text())));
        }
        Ok(expected)
    }

    fn range(&mut self, kind: u8, keys: Keys) -> Verdict {
        let range: KeyRange = keys.to_store();
        let found = self.store.range(TYPES[usize::from(kind)], &range);
        let found = found.map_err(|error| ("serial", format!("a read failed: {error}")))?;
        let own = self.own.iter().filter(|(id, _)| id.kind == kind);
        let removed = own.filter(|(_, body)| body.is_none()).count();
        let limit = keys.limit.map(|limit| limit + removed);
        let base = keys.rows(&self.reads.docs, kind, self.reads.now_ms, limit);
        let mut ids: Vec<_> = base.iter().map(|(id, _)| *id).collect();
        for (id, body) in self.own.iter().filter(|(id, _)| id.kind == kind && keys.holds(id.key)) {
            ids.retain(|other| other != id);
            ids.extend(body.is_some().then_some(*id));
        }
        ids.sort_unstable();
        ids.truncate(keys.limit.unwrap_or(usize::MAX));
        let found: Vec<_> = found.iter().map(|document| document.key.as_str()).collect();
        let expected: Vec<_> = ids.iter().map(|id| id.key_name()).collect();
        self.reads.ranges.push((kind, Keys { limit, ..keys }, base));
        if found == expected {
            return Ok(());
        }
        Err(("serial", format!("a range is {found:?} inside instead of {expected:?}")))
    }

    /// A write that needs a document says so.
    fn told(&self, id: Id, there: bool, outcome: &Result<(), Error>) -> Verdict {
        let right = match outcome {
            Ok(()) => there,
            Err(Error::NotFound { .. }) => !there,
            Err(_) => false,
        };
        if right { Ok(()) } else { Err(("serial", format!("{} gave {outcome:?}", id.text()))) }
    }
}

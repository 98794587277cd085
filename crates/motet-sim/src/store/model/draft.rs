//! What a batch must do to the documents: its writes in order, what references make of them, and
//! the conditions that hold at its end.

use motet_protocol::ErrorCode;
use motet_store::OnDelete;

use super::body::Body;
use super::rules::{Field, Reference, TYPES};
use super::write::{Expiry, ModelWrite, WriteKind};
use super::{Doc, Docs, Id, Model, Stage};

/// A batch being thought through.
pub(crate) struct Draft<'m> {
    model: &'m Model,
    now_ms: u64,
    pub(crate) docs: Docs,
    /// Documents that were changed, by bit.
    pub(crate) changed: u32,
    pub(crate) violations: u32,
    /// Documents whose references count at the end.
    pub(crate) made: u32,
    removed: u32,
    todo: Vec<Todo>,
    /// Whether it had to know who refers to something, and that is still being found out.
    pub(crate) building: bool,
    /// Whether it breaks the uniqueness of an index that is still being built.
    pub(crate) unsure: bool,
}

enum Todo {
    Remove(Id),
    Clear(Id, Field, u8),
}

/// The version of what the batch itself has changed: no condition names it.
const OWN: u64 = u64::MAX;

impl<'m> Draft<'m> {
    pub(crate) fn new(model: &'m Model, now_ms: u64) -> Self {
        Self {
            model,
            now_ms,
            docs: model.docs.clone(),
            changed: 0,
            violations: model.violations,
            made: 0,
            removed: 0,
            todo: Vec::new(),
            building: false,
            unsure: false,
        }
    }

    pub(crate) fn write(&mut self, write: &ModelWrite) -> Result<(), ErrorCode> {
        self.write_alone(write)?;
        self.follow()
    }

    /// Removes a document whose time has come.
    pub(crate) fn expire(&mut self, id: Id) -> Result<(), ErrorCode> {
        self.look(id);
        self.follow()
    }

    fn write_alone(&mut self, write: &ModelWrite) -> Result<(), ErrorCode> {
        let id = write.id;
        self.look(id);
        let stored = self.docs.get(id).cloned();
        let version = stored.as_ref().map_or(0, |doc| doc.version);
        if write.if_version.is_some_and(|expected| expected != version) {
            return Err(ErrorCode::VersionMismatch);
        }
        let kept = stored.as_ref().and_then(|doc| doc.expires_ms);
        match (&write.kind, &stored) {
            (WriteKind::Put(body), _) | (WriteKind::Create(body), None) => {
                self.put(id, body.clone(), self.expires_ms(write, self.default_expiry(id)))
            }
            (WriteKind::Update(body), Some(_)) => {
                self.put(id, body.clone(), self.expires_ms(write, kept))
            }
            (WriteKind::Patch(part), Some(doc)) => {
                let (body, expires_ms) = (doc.body.patched(*part), self.expires_ms(write, kept));
                if body == doc.body && expires_ms == doc.expires_ms {
                    return Ok(());
                }
                self.put(id, body, expires_ms)
            }
            (WriteKind::Remove, Some(_)) => {
                self.remove(id);
                Ok(())
            }
            (WriteKind::Create(_), Some(_)) => Err(ErrorCode::AlreadyExists),
            (_, None) => Err(ErrorCode::NotFound),
        }
    }

    fn default_expiry(&self, id: Id) -> Option<u64> {
        self.model.kind(id.kind).spec.ttl_ms.map(|ttl_ms| self.now_ms + ttl_ms)
    }

    const fn expires_ms(&self, write: &ModelWrite, unsaid: Option<u64>) -> Option<u64> {
        match write.expiry {
            Expiry::Unsaid => unsaid,
            Expiry::Never => None,
            Expiry::AfterMs(ms) => Some(self.now_ms + ms),
        }
    }

    /// Looking where a document lies removes one whose time has come.
    fn look(&mut self, id: Id) {
        if self.docs.get(id).is_some_and(|doc| !doc.is_live(self.now_ms)) {
            self.remove(id);
        }
    }

    fn put(&mut self, id: Id, body: Body, expires_ms: Option<u64>) -> Result<(), ErrorCode> {
        self.violations &= !id.bit();
        match self.model.kind(id.kind).spec.schema {
            Some((schema, true)) if !schema.holds(&body) => {
                return Err(ErrorCode::SchemaViolation);
            }
            Some((schema, false)) if !schema.holds(&body) => self.violations |= id.bit(),
            _ => {}
        }
        self.check_unique(id, &body)?;
        self.docs.set(id, Some(Doc { version: OWN, expires_ms, body }));
        self.changed |= id.bit();
        self.made |= id.bit();
        Ok(())
    }

    fn check_unique(&mut self, id: Id, body: &Body) -> Result<(), ErrorCode> {
        for index in &self.model.kind(id.kind).indexes {
            let Some(value) = index.shape.unique(body) else { continue };
            let mut others = self.docs.of_kind(id.kind).filter(|(other, doc)| {
                *other != id
                    && doc.is_live(self.now_ms)
                    && index.shape.unique(&doc.body) == Some(value)
            });
            let broken = others.next().is_some();
            match index.stage {
                Stage::Ready if broken => return Err(ErrorCode::UniqueViolation),
                Stage::Building if broken => self.unsure = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn remove(&mut self, id: Id) {
        self.docs.set(id, None);
        for (kind, reference) in references_to(self.model, id.kind) {
            let clears = matches!(reference.on_delete, OnDelete::Cascade | OnDelete::SetNull);
            if !clears {
                continue;
            }
            self.building |= !self.model.kind(kind).knows(reference.field);
            let referring = self.docs.of_kind(kind);
            let referring =
                referring.filter(|(_, doc)| reference.field.leads_to(&doc.body, id.key));
            self.todo.extend(referring.map(|(from, _)| match reference.on_delete {
                OnDelete::Cascade => Todo::Remove(from),
                _ => Todo::Clear(from, reference.field, id.key),
            }));
        }
        self.violations &= !id.bit();
        self.changed |= id.bit();
        self.made &= !id.bit();
        self.removed |= id.bit();
    }

    fn follow(&mut self) -> Result<(), ErrorCode> {
        while let Some(todo) = self.todo.pop() {
            match todo {
                Todo::Remove(id) => {
                    if self.docs.get(id).is_some() {
                        self.remove(id);
                    }
                }
                Todo::Clear(id, field, key) => {
                    self.look(id);
                    if let Some(doc) = self.docs.get(id).cloned() {
                        // What else it refers to was there before.
                        let made = self.made;
                        self.put(id, field.cleared(&doc.body, key), doc.expires_ms)?;
                        self.made = made;
                    }
                }
            }
        }
        Ok(())
    }

    /// What must hold when the batch is done.
    pub(crate) fn end(&mut self) -> Result<(), ErrorCode> {
        for id in Id::in_bits(self.made) {
            let Some(doc) = self.docs.get(id) else { continue };
            for reference in &self.model.kind(id.kind).spec.references {
                for key in reference.field.targets(&doc.body) {
                    let target = Id { kind: reference.to, key };
                    if self.docs.live(target, self.now_ms).is_none() {
                        return Err(ErrorCode::ReferenceMissing);
                    }
                }
            }
        }
        // Which of several rules is named first does not matter: all are looked at.
        let mut outcome = Ok(());
        for id in Id::in_bits(self.removed) {
            if self.docs.live(id, self.now_ms).is_some() {
                continue;
            }
            for (kind, reference) in references_to(self.model, id.kind) {
                if reference.on_delete != OnDelete::Restrict {
                    continue;
                }
                self.building |= !self.model.kind(kind).knows(reference.field);
                let mut docs = self.docs.of_kind(kind);
                if docs.any(|(_, doc)| {
                    doc.is_live(self.now_ms) && reference.field.leads_to(&doc.body, id.key)
                }) {
                    outcome = Err(ErrorCode::ReferenceRestricted);
                }
            }
        }
        outcome
    }
}

/// The references to a type: the type that has the reference, and the reference.
pub(crate) fn references_to(model: &Model, to: u8) -> Vec<(u8, Reference)> {
    let kinds = 0..TYPES.len() as u8;
    let all = kinds.flat_map(|kind| {
        model.kind(kind).spec.references.iter().map(move |reference| (kind, *reference))
    });
    all.filter(|(_, reference)| reference.to == to).collect()
}

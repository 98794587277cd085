//! The changes of a commit: one log, one document at a time, and nothing but what had to change.

use motet_store::Op;

use super::raw::{self, Raw, RawEntry};
use super::{Verdict, holds};
use crate::store::calls::MadeCall;
use crate::store::engine::Decided;
use crate::store::model::body::KEYS;
use crate::store::model::draft::Draft;
use crate::store::model::rules::TYPES;
use crate::store::model::{Doc, Docs, Id, Model};

/// What a log entry takes beside its key and value, by the documentation of retention.
const ENTRY_OVERHEAD_BYTES: u64 = 48;

/// What a batch must come to.
pub(super) struct Effect {
    docs: Docs,
    /// Documents that it changes, by bit.
    changed: u32,
    /// Documents whose references count, by bit.
    made: u32,
    /// Documents that break a recorded schema then, by bit.
    violations: u32,
}

impl Effect {
    pub(super) fn of(draft: Draft<'_>) -> Self {
        let Draft { docs, changed, made, violations, .. } = draft;
        Self { docs, changed, made, violations }
    }
}

/// The document of this type number and key.
pub(super) fn find(model: &Model, number: u32, key: &str) -> Option<Id> {
    let kind = (0..TYPES.len()).find(|kind| model.kinds[*kind].number == Some(number))?;
    let key = KEYS.iter().position(|other| *other == key)?;
    Some(Id { kind: kind as u8, key: key as u8 })
}

pub(super) fn apply(
    model: &mut Model,
    call: &MadeCall,
    decided: &Decided,
    raw: &Raw,
    effect: Effect,
) -> Verdict {
    let Effect { mut docs, changed, made, violations } = effect;
    let mut last = replay(model, call, decided, raw)?;
    for id in Id::in_bits(changed) {
        let was = model.docs.get(id);
        // What came and went within the batch may leave nothing but its traces in the log.
        let Some((clock, entry)) = last[place(id)].take() else {
            let check = if was.is_some_and(|doc| !doc.is_live(decided.stamp.unix_ms())) {
                "expiry"
            } else {
                "clock"
            };
            return Err((check, format!("{} changed without a change in the log", id.text())));
        };
        let doc = docs.get(id).map(|doc| Doc { version: clock, ..Doc::clone(doc) });
        check_entry(id, doc.as_ref(), entry)?;
        check_record(model, raw, id, doc.as_ref())?;
        docs.set(id, doc);
    }
    if let Some((_, entry)) = last.iter().flatten().next() {
        return Err(("fk", format!("{entry:?} had no reason")));
    }
    let users = raw.documents.iter().filter(|(kind, ..)| Some(*kind) != model.system);
    for (kind, key, record) in users {
        let id = find(model, *kind, key);
        holds("clock", id.is_some_and(|id| changed & id.bit() != 0), || {
            format!("the document {key:?} of type {kind} was touched: {record:?}")
        })?;
    }
    model.take(docs, made, violations);
    Ok(())
}

const fn place(id: Id) -> usize {
    id.kind as usize * KEYS.len() + id.key as usize
}

type Last<'r> = [Option<(u64, &'r RawEntry)>; TYPES.len() * KEYS.len()];

/// Appends the changes to the model's log, and gives the last one of each document.
fn replay<'r>(
    model: &mut Model,
    call: &MadeCall,
    decided: &Decided,
    raw: &'r Raw,
) -> Result<Last<'r>, (&'static str, String)> {
    let before = model.head;
    let mut last: Last<'r> = [None; TYPES.len() * KEYS.len()];
    for entry in &raw.entries {
        let wrong = |what: &str| ("clock", format!("{what}: {entry:?} after {before}"));
        let id = find(model, entry.kind, &entry.key).ok_or_else(|| wrong("nobody's document"))?;
        let (version, present) = match last[place(id)] {
            Some((clock, entry)) if entry.op == Op::Put => (clock, true),
            Some(_) => (0, false),
            None => (model.docs.version(id), model.docs.get(id).is_some()),
        };
        if entry.clock != model.head + 1 {
            return Err(wrong("a gap"));
        }
        if entry.previous != version || (entry.op != Op::Put && !present) {
            return Err(wrong("another version before"));
        }
        if entry.time != decided.stamp.number() {
            return Err(wrong("another's time"));
        }
        if entry.origin != call.instance || entry.transaction != before + 1 {
            return Err(wrong("another's change"));
        }
        let bytes = entry.key.len() + entry.json.as_ref().map_or(0, Vec::len);
        let total_bytes = model.total_bytes() + ENTRY_OVERHEAD_BYTES + bytes as u64;
        if entry.total_bytes != total_bytes {
            return Err(wrong("a wrong sum of bytes"));
        }
        // What the batch itself has written may end at once.
        let untouched = last[place(id)].is_none();
        let live = untouched && model.docs.live(id, decided.stamp.unix_ms()).is_some();
        if entry.op == Op::Expire && live {
            return Err(("expiry", format!("{} expired before its time", id.text())));
        }
        last[place(id)] = Some((entry.clock, entry));
        model.head = entry.clock;
        model.log.push_back(entry.of(id));
    }
    let changes = decided.outcome.as_ref().map_or(0, |written| written.changes);
    holds("clock", model.head == before + changes, || {
        format!("{changes} clocks were used for {} changes", model.head - before)
    })?;
    Ok(last)
}

/// The last change of a document left what had to be left.
fn check_entry(id: Id, doc: Option<&Doc>, entry: &RawEntry) -> Verdict {
    let value = entry.json.as_deref().map(raw::json).transpose().map_err(|why| ("clock", why))?;
    let right = match doc {
        None => entry.op != Op::Put,
        Some(doc) => entry.op == Op::Put && value.as_ref() == Some(&doc.body.to_json()),
    };
    holds(if doc.is_some() { "serial" } else { "fk" }, right, || {
        let body = doc.map(|doc| doc.body.to_json());
        format!("{} became {:?} {value:?} instead of {body:?}", id.text(), entry.op)
    })
}

/// The document lies as its last change says.
fn check_record(model: &Model, raw: &Raw, id: Id, doc: Option<&Doc>) -> Verdict {
    let number = model.kind(id.kind).number;
    let mut records = raw.documents.iter();
    let record = records.find(|(kind, key, _)| Some(*kind) == number && key == id.key_name());
    let Some((_, _, record)) = record else {
        return Err(("clock", format!("{} has a change in the log only", id.text())));
    };
    let (Some(record), Some(doc)) = (record, doc) else {
        return holds("clock", record.is_none() && doc.is_none(), || {
            format!("{} is {record:?} instead of {doc:?}", id.text())
        });
    };
    holds("clock", record.version == doc.version, || {
        format!("{} has version {} instead of {}", id.text(), record.version, doc.version)
    })?;
    holds("expiry", record.expires_ms == doc.expires_ms, || {
        format!("{} ends at {:?} instead of {:?}", id.text(), record.expires_ms, doc.expires_ms)
    })?;
    let value = raw::json(&record.json).map_err(|why| ("clock", why))?;
    holds("serial", value == doc.body.to_json(), || {
        format!("{} is {value} instead of {}", id.text(), doc.body.to_json())
    })
}

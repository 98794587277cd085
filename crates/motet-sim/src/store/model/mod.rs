//! What the environment must hold, kept by the simulator: by the specification's words and without
//! a line of the store's own.

pub(crate) mod body;
pub(crate) mod draft;
pub(crate) mod entries;
pub(crate) mod rules;
pub(crate) mod write;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use motet_store::{Op, Retention};

use body::{Body, KEYS};
use rules::{Field, Shape, Spec, TYPES};

/// A document's place: the number of its type and of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) kind: u8,
    pub(crate) key: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doc {
    pub(crate) version: u64,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) body: Body,
}

/// All documents, also those whose time has come and that are not yet swept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Docs([[Option<Rc<Doc>>; KEYS.len()]; TYPES.len()]);

/// One change in the log.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) clock: u64,
    pub(crate) id: Id,
    pub(crate) op: Op,
    pub(crate) previous: u64,
    pub(crate) time: u64,
    pub(crate) origin: u64,
    pub(crate) transaction: u64,
    pub(crate) total_bytes: u64,
    pub(crate) json: Option<Vec<u8>>,
}

/// How far an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Building,
    Ready,
    Failed,
}

#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) stage: Stage,
    /// The number that the catalogue gave it.
    pub(crate) number: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Kind {
    /// The number that the catalogue gave it, once it was written to or described.
    pub(crate) number: Option<u32>,
    pub(crate) spec: Spec,
    pub(crate) indexes: Vec<Index>,
}

/// How much of the log is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) age_ms: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) pin_bytes: u64,
    pub(crate) latest: bool,
}

/// The part of the log that has the latest change of each document and no other.
#[derive(Debug, Default)]
pub(crate) struct Compacted {
    /// Up to here.
    pub(crate) to: u64,
    /// Whether none is missing.
    pub(crate) is_whole: bool,
    pub(crate) entries: BTreeMap<u64, Entry>,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) docs: Docs,
    pub(crate) kinds: [Kind; TYPES.len()],
    pub(crate) head: u64,
    /// The time of the last decider that wrote anything: what had expired then, counts no more.
    pub(crate) time: u64,
    /// The log, but for its compacted part.
    pub(crate) log: VecDeque<Entry>,
    pub(crate) compacted: Option<Compacted>,
    pub(crate) kept: Kept,
    /// The clocks after which the log is pinned, by the number of their name.
    pub(crate) pins: BTreeMap<u8, u64>,
    pub(crate) epoch: u64,
    /// Documents that break a recorded schema, by bit.
    pub(crate) violations: u32,
    /// Numbers of indexes that were dropped.
    pub(crate) dropped: Vec<u32>,
    /// The number of the store's own type of recorded violations.
    pub(crate) system: Option<u32>,
    /// Types that were ever referred to, by number.
    pub(crate) referred: u8,
    /// Documents that were written under the present rule of each field that refers, by bit.
    pub(crate) bound: [u32; 2],
    /// Whether an index has changed its stage since indexes were last looked at.
    pub(crate) indexes_moved: bool,
}

impl Id {
    pub(crate) const fn bit(self) -> u32 {
        1 << (self.kind as u32 * KEYS.len() as u32 + self.key as u32)
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..TYPES.len() as u8).flat_map(Self::of_kind)
    }

    pub(crate) fn of_kind(kind: u8) -> impl Iterator<Item = Self> {
        (0..KEYS.len() as u8).map(move |key| Self { kind, key })
    }

    pub(crate) fn in_bits(bits: u32) -> impl Iterator<Item = Self> {
        Self::all().filter(move |id| bits & id.bit() != 0)
    }

    pub(crate) fn kind_name(self) -> &'static str {
        TYPES[usize::from(self.kind)]
    }

    pub(crate) fn key_name(self) -> &'static str {
        KEYS[usize::from(self.key)]
    }

    pub(crate) fn text(self) -> String {
        format!("{} {:?}", self.kind_name(), self.key_name())
    }
}

impl Doc {
    pub(crate) fn is_live(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms)
    }
}

impl Docs {
    pub(crate) fn get(&self, id: Id) -> Option<&Rc<Doc>> {
        self.0[usize::from(id.kind)].get(usize::from(id.key))?.as_ref()
    }

    pub(crate) fn set(&mut self, id: Id, doc: Option<Doc>) {
        self.0[usize::from(id.kind)][usize::from(id.key)] = doc.map(Rc::new);
    }

    pub(crate) fn live(&self, id: Id, now_ms: u64) -> Option<&Rc<Doc>> {
        self.get(id).filter(|doc| doc.is_live(now_ms))
    }

    /// The documents of a type in the order of their keys.
    pub(crate) fn of_kind(&self, kind: u8) -> impl DoubleEndedIterator<Item = (Id, &Rc<Doc>)> {
        let docs = self.0[usize::from(kind)].iter().enumerate();
        docs.filter_map(move |(key, doc)| Some((Id { kind, key: key as u8 }, doc.as_ref()?)))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (Id, &Rc<Doc>)> {
        (0..TYPES.len() as u8).flat_map(|kind| self.of_kind(kind))
    }

    pub(crate) fn version(&self, id: Id) -> u64 {
        self.get(id).map_or(0, |doc| doc.version)
    }
}

impl Kind {
    /// Whether who refers to documents by this field is known.
    pub(crate) fn knows(&self, field: Field) -> bool {
        let name = field.index_name();
        self.indexes.iter().any(|index| index.name == name && index.stage == Stage::Ready)
    }
}

impl Model {
    /// An empty environment, whose log is kept up to 1 GiB.
    pub(crate) fn new() -> Self {
        Self {
            kept: Kept { bytes: Some(1 << 30), pin_bytes: 10 << 30, ..Kept::default() },
            ..Self::default()
        }
    }

    /// Describes a type. What was written under other references is not held to the new ones.
    pub(crate) fn define(&mut self, kind: u8, spec: &Spec) {
        let known = &mut self.kinds[usize::from(kind)];
        for field in [Field::To, Field::Refs] {
            let of = |spec: &Spec| {
                spec.references.iter().find(|reference| reference.field == field).copied()
            };
            if of(&known.spec) != of(spec) {
                let of_kind = Id::of_kind(kind).fold(0, |bits, id| bits | id.bit());
                self.bound[field as usize] &= !of_kind;
            }
        }
        known.spec = spec.clone();
        self.referred |= spec.references.iter().fold(0, |bits, one| bits | 1 << one.to);
    }

    /// Takes over what a commit made of the documents.
    pub(crate) fn take(&mut self, docs: Docs, made: u32, violations: u32) {
        for field in [Field::To, Field::Refs] {
            for id in Id::in_bits(made) {
                let spec = &self.kinds[usize::from(id.kind)].spec;
                if spec.references.iter().any(|reference| reference.field == field) {
                    self.bound[field as usize] |= id.bit();
                }
            }
        }
        self.docs = docs;
        self.violations = violations;
    }

    /// The time by which a process reads whose wall clock shows this: what had expired for a writer,
    /// has for every reader after it.
    pub(crate) fn read_ms(&self, wall_ms: u64) -> u64 {
        wall_ms.max(self.time >> 16)
    }

    pub(crate) fn kind(&self, kind: u8) -> &Kind {
        &self.kinds[usize::from(kind)]
    }

    /// The first clock from which on the log has no gaps.
    pub(crate) fn kept_from(&self) -> u64 {
        self.log.front().map_or(self.head + 1, |entry| entry.clock)
    }

    /// The lowest clock after which the log is pinned and still whole.
    pub(crate) fn pinned(&self) -> Option<u64> {
        self.pins.values().copied().filter(|after| self.has_all_after(*after)).min()
    }

    /// The compacted part, if no change is missing in it.
    pub(crate) fn whole(&self) -> Option<&Compacted> {
        self.compacted.as_ref().filter(|compacted| compacted.is_whole)
    }

    /// Whether who has read everything up to this clock misses nothing of what came after it.
    pub(crate) fn has_all_after(&self, after: u64) -> bool {
        after + 1 >= self.kept_from() || (after == 0 && self.whole().is_some())
    }

    /// The changes that are there after this clock.
    pub(crate) fn entries_after(&self, after: u64) -> impl Iterator<Item = &Entry> {
        let latest = self.compacted.iter().flat_map(|compacted| compacted.entries.values());
        latest.chain(&self.log).filter(move |entry| entry.clock > after)
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.log.back().map_or(0, |entry| entry.total_bytes)
    }

    pub(crate) fn entry(&self, clock: u64) -> Option<&Entry> {
        let place = clock.checked_sub(self.kept_from())?;
        self.log.get(usize::try_from(place).ok()?)
    }
}

impl Kept {
    pub(crate) fn to_store(self) -> Retention {
        let mut retention = Retention::everything().pin_bytes(self.pin_bytes);
        if self.latest {
            retention = retention.latest();
        }
        if let Some(age_ms) = self.age_ms {
            retention = retention.age(Duration::from_millis(age_ms));
        }
        match self.bytes {
            Some(bytes) => retention.bytes(bytes),
            None => retention,
        }
    }
}

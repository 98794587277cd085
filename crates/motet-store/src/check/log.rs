//! The log: every clock once, and each change fits the one before.

use core::mem;
use std::collections::HashMap;

use super::{Check, Finding, Pair};
use crate::document::Record;
use crate::engine::Table;
use crate::keys::{self, TypeId};
use crate::log::{Compacted, EntryRecord, Op, decode, entry_bytes};
use crate::{Clock, Error, lookup};

/// The last change of a document in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) clock: Clock,
    pub(super) is_removal: bool,
}

/// What the log says about documents.
#[derive(Debug, Default)]
pub(super) struct Logged {
    /// By key of `Documents`, where the log is not compacted.
    pub(super) last: HashMap<Vec<u8>, Last>,
    /// The last change of a document is there if it is not before this one.
    pub(super) kept_from: Clock,
    /// Up to here the log is compacted: the last change of a document may be there, and no other.
    pub(super) compacted_to: Clock,
    /// Changes of the batch that are in the compacted part, with their documents' keys in `Documents`.
    compacted: Vec<(Clock, Vec<u8>)>,
}

/// What the next change has to fit.
struct Before {
    clock: Clock,
    time: u64,
    transaction: u64,
    total_bytes: u64,
}

impl Check<'_> {
    pub(super) async fn log(&mut self) -> Result<Logged, Error> {
        let head = lookup::head(self.view).await?.clock;
        let (mut logged, mut before) = (Logged::default(), None);
        if let Some(compacted) = Compacted::load(self.view).await? {
            logged.compacted_to = compacted.to;
            let first = if compacted.is_whole() { Clock::ZERO } else { compacted.to };
            logged.kept_from = first.plus(1);
        }
        let mut start = Some(keys::log(Clock::ZERO).to_vec());
        while let Some(from) = start {
            let batch = self.batch(Table::Log, &from, None).await?;
            for pair in &batch.pairs {
                self.change(pair, &mut before, &mut logged);
            }
            self.compacted(mem::take(&mut logged.compacted)).await?;
            start = batch.next;
        }
        let end = before.map_or(Clock::ZERO, |before| before.clock).max(logged.compacted_to);
        if end < head {
            self.report.add(Finding::LogGap { missing: end.plus(1), next: None });
        } else if end > head {
            let why = format!("it is beyond the log's head, {head}");
            self.report.add(Finding::LogEntry { clock: end, why });
        }
        Ok(logged)
    }

    fn change(&mut self, (key, value): &Pair, before: &mut Option<Before>, logged: &mut Logged) {
        self.report.changes += 1;
        let Ok(clock) = <[u8; 8]>::try_from(key.as_slice()).map(Clock::from_bytes) else {
            let why = format!("its key has {} bytes", key.len());
            return self.report.add(Finding::LogEntry { clock: Clock::ZERO, why });
        };
        self.gap(clock, before.as_ref(), logged);
        let entry = match decode(clock, value) {
            Ok(entry) => entry,
            Err(error) => {
                return self.report.add(Finding::LogEntry { clock, why: error.to_string() });
            }
        };
        let gapless = before.as_ref().filter(|before| before.clock > logged.compacted_to);
        if let Some(why) = self.contradiction(clock, &entry, gapless) {
            self.report.add(Finding::LogEntry { clock, why: why.into() });
        }
        *before = Some(Before {
            clock,
            time: entry.time,
            transaction: entry.transaction,
            total_bytes: entry.total_bytes,
        });
        self.successor(clock, &entry, logged);
    }

    /// After the compacted part every clock is there.
    fn gap(&mut self, clock: Clock, before: Option<&Before>, logged: &mut Logged) {
        if logged.kept_from == Clock::ZERO {
            logged.kept_from = clock;
        }
        let gapless_from = logged.kept_from.max(logged.compacted_to.plus(1));
        let next = before.map_or(Clock::ZERO, |before| before.clock.plus(1));
        let missing = next.max(gapless_from);
        if clock > missing {
            self.report.add(Finding::LogGap { missing, next: Some(clock) });
        }
    }

    /// A change follows the one before of its document, which is gone if it was compacted.
    fn successor(&mut self, clock: Clock, entry: &EntryRecord<'_>, logged: &mut Logged) {
        let at = keys::document(TypeId(entry.type_id), entry.key);
        let is_removal = entry.op != Op::Put;
        if clock <= logged.compacted_to {
            if is_removal {
                let why = "it is there still, and made no document".into();
                self.report.add(Finding::LogEntry { clock, why });
            } else {
                logged.compacted.push((clock, at));
            }
            return;
        }
        if let Some(last) = logged.last.get(&at)
            && last.clock.number() != entry.previous
            && !(last.is_removal && entry.previous == 0)
        {
            let why = format!("the version before it is {}, not {}", last.clock, entry.previous);
            self.report.add(Finding::LogEntry { clock, why });
        }
        logged.last.insert(at, Last { clock, is_removal });
    }

    /// Where the log is compacted, each change is the one that made its document.
    async fn compacted(&mut self, changes: Vec<(Clock, Vec<u8>)>) -> Result<(), Error> {
        let (clocks, places): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
        let version = |_, bytes: Option<&[u8]>| match bytes.map(Record::from_bytes) {
            None => Some(Clock::ZERO),
            // What cannot be read is named when documents are.
            Some(record) => record.map(|record| record.version),
        };
        let versions = self.of_values(Table::Documents, &places, version).await?;
        for ((clock, at), version) in clocks.into_iter().zip(&places).zip(versions) {
            match version {
                Some(version) if version > clock => {
                    let why = format!("it is there still, for all that {version} came after it");
                    self.report.add(Finding::LogEntry { clock, why });
                }
                Some(version) if version < clock => self.not_its_last_change(at, version, clock),
                _ => {}
            }
        }
        Ok(())
    }

    fn contradiction(
        &self,
        clock: Clock,
        entry: &EntryRecord<'_>,
        before: Option<&Before>,
    ) -> Option<&'static str> {
        if self.catalog.type_name(TypeId(entry.type_id)).is_none() {
            return Some("its type is not in the catalogue");
        }
        if entry.previous >= clock.number() || entry.transaction > clock.number() {
            return Some("it refers to what comes after it");
        }
        let before = before.filter(|before| before.clock.plus(1) == clock)?;
        let same = entry.transaction == before.transaction;
        let follows = if same { entry.time == before.time } else { entry.time > before.time };
        if !follows {
            return Some("its time does not follow from the change before");
        }
        let bytes = before.total_bytes + entry_bytes(entry.key, entry.json);
        (entry.total_bytes != bytes).then_some("it counts the log's bytes otherwise")
    }
}

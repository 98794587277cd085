//! Documents: readable, of a type, and what their last change made them.

use super::log::Logged;
use super::{Check, Finding, Pair};
use crate::document::{Document, Record};
use crate::engine::Table;
use crate::keys::TypeId;
use crate::log::{Op, decode};
use crate::{Clock, Error, keys};

/// A document whose last change is in the log under its version, if it is there.
struct Made<'b> {
    at: &'b [u8],
    record: Record<'b>,
    /// Whether it has to be there.
    must_be_logged: bool,
}

/// What the log has under a document's version.
#[derive(Clone, Default)]
enum Entry {
    /// No change that made the document.
    #[default]
    Missing,
    /// One that gave it another value.
    Other,
    /// One that gave it its value, or that has none.
    Fits,
}

impl Check<'_> {
    pub(super) async fn documents(&mut self, mut logged: Logged) -> Result<(), Error> {
        let mut start = Some(Vec::new());
        while let Some(from) = start {
            let batch = self.batch(Table::Documents, &from, None).await?;
            self.documents_of(&batch.pairs, &mut logged).await?;
            start = batch.next;
        }
        for (at, last) in logged.last.into_iter().filter(|(_, last)| !last.is_removal) {
            self.not_its_last_change(&at, Clock::ZERO, last.clock);
        }
        Ok(())
    }

    async fn documents_of(&mut self, batch: &[Pair], logged: &mut Logged) -> Result<(), Error> {
        let kept_from = logged.kept_from;
        let mut made = Vec::new();
        let mut expiries = Vec::new();
        for (at, bytes) in batch {
            self.report.documents += 1;
            let last = logged.last.remove(at);
            let Some(record) = self.readable(at, bytes) else { continue };
            if let Some(expires_ms) = record.expires_ms {
                expiries.push((at, expires_ms));
            }
            let must_be_logged =
                kept_from > Clock::ZERO && record.version >= kept_from && !self.is_own(at);
            match last {
                Some(last) if last.is_removal || last.clock != record.version => {
                    self.not_its_last_change(at, record.version, last.clock);
                }
                _ => made.push(Made { at, record, must_be_logged }),
            }
        }
        self.compare_values(&made).await?;
        let keys: Vec<_> = expiries.iter().map(|(at, ms)| keys::expiry(*ms, at)).collect();
        let listed = self.of_values(Table::Index, &keys, |_, value| value.is_some()).await?;
        for ((at, expires_ms), _) in expiries.into_iter().zip(listed).filter(|(_, listed)| !listed)
        {
            if expires_ms <= self.time_ms {
                // One that others hold is listed for later, which is seen when the list is.
                self.put_off.insert(at.clone(), expires_ms);
            } else {
                self.expiry_missing(at);
            }
        }
        Ok(())
    }

    /// The record, if it is one of a document that can be read.
    fn readable<'b>(&mut self, at: &[u8], bytes: &'b [u8]) -> Option<Record<'b>> {
        let (type_name, key) = self.name(at);
        let known = keys::split_document(at)
            .is_some_and(|(type_id, _)| self.catalog.type_name(type_id).is_some());
        let why = if known {
            match Record::from_bytes(bytes) {
                None => "its record has another format".to_owned(),
                Some(record) => match Document::from_record(&key, &record) {
                    Ok(_) => return Some(record),
                    Err(error) => error.to_string(),
                },
            }
        } else {
            "its type is not in the catalogue".to_owned()
        };
        self.report.add(Finding::Document { type_name, key, why });
        None
    }

    /// A document was made by its last change, and where the log keeps values, has that one's.
    async fn compare_values(&mut self, made: &[Made<'_>]) -> Result<(), Error> {
        let keys: Vec<_> =
            made.iter().map(|made| keys::log(made.record.version).to_vec()).collect();
        let entry = |place: usize, bytes: Option<&[u8]>| made[place].entry(bytes);
        let entries = self.of_values(Table::Log, &keys, entry).await?;
        for (Made { at, record, must_be_logged }, entry) in made.iter().zip(entries) {
            match entry {
                Entry::Missing if *must_be_logged => {
                    self.not_its_last_change(at, record.version, Clock::ZERO);
                }
                Entry::Other => {
                    let (type_name, key) = self.name(at);
                    let why = format!("its value is not that of its change {}", record.version);
                    self.report.add(Finding::Document { type_name, key, why });
                }
                Entry::Missing | Entry::Fits => {}
            }
        }
        Ok(())
    }

    pub(super) fn expiry_missing(&mut self, at: &[u8]) {
        let (type_name, key) = self.name(at);
        self.report.add(Finding::ExpiryMissing { type_name, key });
    }

    pub(super) fn not_its_last_change(&mut self, at: &[u8], version: Clock, logged: Clock) {
        let (type_name, key) = self.name(at);
        self.report.add(Finding::NotItsLastChange { type_name, key, version, logged });
    }
}

impl Made<'_> {
    /// What it is that the log has under the version.
    fn entry(&self, bytes: Option<&[u8]>) -> Entry {
        let entry = bytes.and_then(|bytes| decode(self.record.version, bytes).ok());
        let is_its = entry.filter(|entry| {
            entry.op == Op::Put && keys::document(TypeId(entry.type_id), entry.key) == self.at
        });
        match is_its {
            None => Entry::Missing,
            Some(entry) if entry.json.is_some_and(|json| json != self.record.json) => Entry::Other,
            Some(_) => Entry::Fits,
        }
    }
}

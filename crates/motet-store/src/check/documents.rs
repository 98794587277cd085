//! Documents: readable, of a type, and what their last change made them.

use std::collections::HashMap;

use super::log::{Last, Logged};
use super::{Check, Finding, Pair, next_start};
use crate::document::{Document, Record};
use crate::engine::Table;
use crate::log::decode;
use crate::{Clock, Error, keys};

impl Check<'_> {
    pub(super) async fn documents(&mut self, logged: Logged) -> Result<(), Error> {
        let Logged { mut last, kept_from, .. } = logged;
        let mut start = Some(Vec::new());
        while let Some(from) = start {
            let batch = self.batch(Table::Documents, &from, None).await?;
            self.documents_of(&batch, &mut last, kept_from).await?;
            start = next_start(&batch);
        }
        for (at, last) in last.into_iter().filter(|(_, last)| !last.is_removal) {
            self.not_its_last_change(&at, Clock::ZERO, last.clock);
        }
        Ok(())
    }

    async fn documents_of(
        &mut self,
        batch: &[Pair],
        last: &mut HashMap<Vec<u8>, Last>,
        kept_from: Clock,
    ) -> Result<(), Error> {
        let mut versions = Vec::new();
        let mut expiries = Vec::new();
        for (at, bytes) in batch {
            self.report.documents += 1;
            let last = last.remove(at);
            let Some(record) = self.readable(at, bytes) else { continue };
            if let Some(expires_ms) = record.expires_ms {
                expiries.push((at, expires_ms));
            }
            let logged = last.filter(|last| !last.is_removal).map(|last| last.clock);
            let must_be_logged =
                kept_from > Clock::ZERO && record.version >= kept_from && !self.is_own(at);
            match logged {
                Some(clock) if clock == record.version => versions.push((at, record)),
                None if last.is_none() && !must_be_logged => {}
                _ => {
                    let clock = last.map_or(Clock::ZERO, |last| last.clock);
                    self.not_its_last_change(at, record.version, clock);
                }
            }
        }
        self.compare_values(&versions).await?;
        let keys: Vec<_> = expiries.iter().map(|(at, ms)| keys::expiry(*ms, at)).collect();
        let found = self.values(Table::Index, &keys).await?;
        for ((at, expires_ms), _) in
            expiries.into_iter().zip(found).filter(|(_, found)| found.is_none())
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

    /// Where the log keeps values, a document has the value of its last change.
    async fn compare_values(&mut self, versions: &[(&Vec<u8>, Record<'_>)]) -> Result<(), Error> {
        let keys: Vec<_> =
            versions.iter().map(|(_, record)| keys::log(record.version).to_vec()).collect();
        let entries = self.values(Table::Log, &keys).await?;
        for ((at, record), entry) in versions.iter().zip(entries) {
            let entry = entry.as_deref().and_then(|bytes| decode(record.version, bytes).ok());
            if entry.is_some_and(|entry| entry.json.is_some_and(|json| json != record.json)) {
                let (type_name, key) = self.name(at);
                let why = format!("its value is not that of its change {}", record.version);
                self.report.add(Finding::Document { type_name, key, why });
            }
        }
        Ok(())
    }

    pub(super) fn expiry_missing(&mut self, at: &[u8]) {
        let (type_name, key) = self.name(at);
        self.report.add(Finding::ExpiryMissing { type_name, key });
    }

    fn not_its_last_change(&mut self, at: &[u8], version: Clock, logged: Clock) {
        let (type_name, key) = self.name(at);
        self.report.add(Finding::NotItsLastChange { type_name, key, version, logged });
    }
}

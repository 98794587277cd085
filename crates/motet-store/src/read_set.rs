//! What a transaction read, and whether it still holds.

use core::ops::ControlFlow;

use motet_protocol::fault::planted;

use crate::catalog::Catalog;
use crate::document::Record;
use crate::engine::{Read, Table, Transaction};
use crate::keys;
use crate::{Clock, Error};

/// What a transaction read from its view: documents by key, and ranges of keys.
///
/// A version never comes again, so a document is what it was exactly if its version is; a range is
/// what it was if it holds the same documents at the same versions. This needs no log, so it holds
/// for a log of any retention, and for types that have none. An expiry is no new version, so what
/// was live has to be live still at the time of the commit, and what had expired has not to be.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    /// The log's end in the view: nothing can have changed while it is the same, but by its expiry.
    view: Clock,
    documents: Vec<(Name, Vec<u8>, Clock)>,
    ranges: Vec<RangeRead>,
    /// Of the documents read by key.
    lifetimes: Lifetimes,
    /// Types that were read and did not exist.
    absent_types: Vec<String>,
}

/// How a document is named to people.
type Name = (String, String);

#[derive(Debug)]
pub(crate) struct RangeRead {
    pub(crate) type_name: String,
    /// First key of `Documents`.
    pub(crate) from: Vec<u8>,
    /// The key of `Documents` at which it ended.
    pub(crate) to: Option<Vec<u8>>,
    /// Keys and versions that were there.
    pub(crate) found: Vec<(Vec<u8>, Clock)>,
    pub(crate) lifetimes: Lifetimes,
}

/// When what was read comes to count otherwise than it did.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    /// What was live and ends first, and when.
    ends: Option<(u64, Name)>,
    /// What had expired and ended last, and when.
    ended: Option<(u64, Name)>,
}

impl Lifetimes {
    /// A document was read at this time.
    pub(crate) fn note(
        &mut self,
        type_name: &str,
        key: &str,
        expires_ms: Option<u64>,
        now_ms: u64,
    ) {
        let Some(expires_ms) = expires_ms else { return };
        let (kept, is_nearer) = if now_ms < expires_ms {
            let nearer = self.ends.as_ref().is_none_or(|(at, _)| expires_ms < *at);
            (&mut self.ends, nearer)
        } else {
            let nearer = self.ended.as_ref().is_none_or(|(at, _)| expires_ms > *at);
            (&mut self.ended, nearer)
        };
        if is_nearer {
            *kept = Some((expires_ms, (type_name.into(), key.into())));
        }
    }

    /// Whether everything counts at this time as it did when it was read.
    fn check(&self, now_ms: u64) -> Result<(), Error> {
        let ended = self.ends.as_ref().filter(|(at, _)| *at <= now_ms);
        let lives = self.ended.as_ref().filter(|(at, _)| now_ms < *at);
        match ended.or(lives).filter(|_| !planted("forget-lifetimes")) {
            None => Ok(()),
            Some((_, (type_name, key))) => {
                Err(Error::Conflict { type_name: type_name.clone(), key: key.clone() })
            }
        }
    }
}

impl ReadSet {
    pub(crate) fn of_view(view: Clock) -> Self {
        Self { view, ..Self::default() }
    }

    /// A document was read; [`Clock::ZERO`] says that it was absent.
    pub(crate) fn document(&mut self, type_name: &str, key: &str, at: Vec<u8>, version: Clock) {
        if version == Clock::ZERO && planted("forget-absent-reads") {
            return;
        }
        self.documents.push(((type_name.into(), key.into()), at, version));
    }

    /// When a document that was read at this time expires.
    pub(crate) fn lifetime(
        &mut self,
        type_name: &str,
        key: &str,
        expires_ms: Option<u64>,
        now_ms: u64,
    ) {
        self.lifetimes.note(type_name, key, expires_ms, now_ms);
    }

    /// A type was read that did not exist, and so no document of it.
    pub(crate) fn absent_type(&mut self, type_name: &str) {
        self.absent_types.push(type_name.into());
    }

    pub(crate) fn range(&mut self, range: RangeRead) {
        self.ranges.push(range);
    }

    /// Whether everything that was read is as it was.
    ///
    /// # Errors
    /// [`Error::Conflict`] names the first document that is not.
    pub(crate) async fn check(
        &self,
        now: &dyn Transaction,
        catalog: &Catalog,
    ) -> Result<(), Error> {
        if planted("skip-read-set") {
            return Ok(());
        }
        let now_ms = now.stamp().unix_ms();
        self.lifetimes.check(now_ms)?;
        self.ranges.iter().try_for_each(|range| range.lifetimes.check(now_ms))?;
        if now.head().clock == self.view {
            return Ok(());
        }
        if let Some(name) = self.absent_types.iter().find(|name| catalog.has_type(name)) {
            return Err(Error::Conflict { type_name: name.clone(), key: String::new() });
        }
        self.check_documents(now).await?;
        for range in self.ranges.iter().filter(|_| !planted("skip-ranges")) {
            range.check(now).await?;
        }
        Ok(())
    }

    async fn check_documents(&self, now: &dyn Read) -> Result<(), Error> {
        if self.documents.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = self.documents.iter().map(|(_, key, _)| key.as_slice()).collect();
        let mut changed = None;
        let mut each = |place: usize, value: Option<&[u8]>| {
            if version(value) != self.documents[place].2 {
                changed.get_or_insert(place);
            }
        };
        now.get_many(Table::Documents, &keys, &mut each).await?;
        match changed {
            None => Ok(()),
            Some(place) => {
                let (type_name, key) = self.documents[place].0.clone();
                Err(Error::Conflict { type_name, key })
            }
        }
    }
}

impl RangeRead {
    pub(crate) fn new(type_name: &str, from: Vec<u8>, to: Option<Vec<u8>>) -> Self {
        let (found, lifetimes) = (Vec::new(), Lifetimes::default());
        Self { type_name: type_name.into(), from, to, found, lifetimes }
    }

    async fn check(&self, now: &dyn Read) -> Result<(), Error> {
        let mut expected = self.found.iter();
        let mut changed = None;
        let mut each = |key: &[u8], value: &[u8]| match expected.next() {
            Some((then, at)) if then == key && *at == version(Some(value)) => {
                ControlFlow::Continue(())
            }
            _ => {
                changed = Some(key.to_vec());
                ControlFlow::Break(())
            }
        };
        let mut to = self.to.clone();
        if planted("end-range-at-last-found") {
            to = self.found.last().map(|(key, _)| keys::just_after(key.clone())).or(to);
        }
        crate::lookup::range(now, Table::Documents, &self.from, to.as_deref(), &mut each).await?;
        let changed = changed.or_else(|| expected.next().map(|(key, _)| key.clone()));
        match changed {
            None => Ok(()),
            Some(key) => {
                let key = keys::split_document(&key).map_or("", |(_, key)| key).to_owned();
                Err(Error::Conflict { type_name: self.type_name.clone(), key })
            }
        }
    }
}

/// The version in a record; of an absent one, [`Clock::ZERO`].
fn version(record: Option<&[u8]>) -> Clock {
    record.and_then(Record::from_bytes).map_or(Clock::ZERO, |record| record.version)
}

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
/// for a log of any retention, and for types that have none.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    /// The log's end in the view: nothing can have changed while it is the same.
    view: Clock,
    documents: Vec<(Name, Vec<u8>, Clock)>,
    ranges: Vec<RangeRead>,
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
        if now.head().clock == self.view || planted("skip-read-set") {
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

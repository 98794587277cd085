//! Whether an environment is what it must be: the log without gaps, documents equal to their last
//! change, indexes and expiries equal to what follows from the documents.
//!
//! Everything is read from one view, in batches; the check holds in memory one record for every
//! document that the log is about where it is not compacted.

mod documents;
mod finding;
mod indexes;
mod log;

use core::cell::RefCell;
use core::ops::ControlFlow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::document::is_own_name;
use crate::engine::{Table, View};
use crate::shared::Shared;
use crate::{Error, keys, lookup};

pub use finding::Finding;

/// What a check looked at and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Documents that were looked at, expired ones with them.
    pub documents: u64,
    /// Changes of the log.
    pub changes: u64,
    /// Entries of indexes.
    pub index_entries: u64,
    /// Entries of the index of expiries.
    pub expiries: u64,
    /// What is not as it must be, up to [`FINDINGS_MAX`]; empty if all is well.
    pub findings: Vec<Finding>,
    /// How much more was found.
    pub findings_left_out: u64,
}

impl CheckReport {
    /// Whether all is as it must be.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn add(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.findings_left_out += 1;
        }
    }
}

/// A check at work.
struct Check<'v> {
    view: &'v dyn View,
    /// Hears how many entries each batch had.
    each_batch: RefCell<&'v mut dyn FnMut(u64)>,
    catalog: Arc<Catalog>,
    report: CheckReport,
    /// The time of the last write, in milliseconds since 1970: what had expired then, counts no more.
    time_ms: u64,
    /// Expired documents that are not listed at their time: by their keys in `Documents`, the times.
    put_off: HashMap<Vec<u8>, u64>,
}

/// Checks one environment.
pub(crate) async fn run(
    shared: &Shared,
    each_batch: &mut dyn FnMut(u64),
) -> Result<CheckReport, Error> {
    let view = shared.engine.view().await?;
    // Not the one that is kept: what lies in the environment is what is checked.
    let catalog = Arc::new(Catalog::load(view.as_ref()).await?);
    let time_ms = lookup::head(view.as_ref()).await?.time.unix_ms();
    let (report, put_off) = (CheckReport::default(), HashMap::new());
    let each_batch = RefCell::new(each_batch);
    let mut check = Check { view: view.as_ref(), each_batch, catalog, report, time_ms, put_off };
    let last = check.log().await?;
    check.documents(last).await?;
    check.indexes().await?;
    check.expiries().await?;
    Ok(check.report)
}

/// A key and its value.
type Pair = (Vec<u8>, Vec<u8>);

/// Entries of a table that follow each other.
struct Batch {
    pairs: Vec<Pair>,
    /// Where to go on; `None` if there are no more.
    next: Option<Vec<u8>>,
}

impl Check<'_> {
    /// The next entries of a table from a key on and below another.
    async fn batch(&self, table: Table, from: &[u8], to: Option<&[u8]>) -> Result<Batch, Error> {
        let (mut pairs, mut bytes, mut next) = (Vec::new(), 0, None);
        let mut show = |key: &[u8], value: &[u8]| {
            pairs.push((key.to_vec(), value.to_vec()));
            bytes += key.len() + value.len();
            if pairs.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX {
                return ControlFlow::Continue(());
            }
            next = Some(keys::just_after(key.to_vec()));
            ControlFlow::Break(())
        };
        lookup::range(self.view, table, from, to, &mut show).await?;
        (self.each_batch.borrow_mut())(pairs.len() as u64);
        Ok(Batch { pairs, next })
    }

    /// What is to be known of the values of these keys, in their order. The values themselves may be
    /// too large to have all of them at once.
    async fn of_values<T: Clone + Default>(
        &self,
        table: Table,
        keys: &[Vec<u8>],
        of: impl Fn(usize, Option<&[u8]>) -> T,
    ) -> Result<Vec<T>, Error> {
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let mut known = vec![T::default(); keys.len()];
        let mut each = |place: usize, value: Option<&[u8]>| known[place] = of(place, value);
        self.view.get_many(table, &keys, &mut each).await?;
        Ok(known)
    }

    /// Whether a document is the store's own, which no log has.
    fn is_own(&self, at: &[u8]) -> bool {
        let name = keys::split_document(at).and_then(|(id, _)| self.catalog.type_name(id));
        name.is_some_and(is_own_name)
    }

    /// A document's type and key, for people.
    fn name(&self, at: &[u8]) -> (String, String) {
        match keys::split_document(at) {
            None => (String::new(), format!("{at:02x?}")),
            Some((type_id, key)) => {
                let name = self.catalog.type_name(type_id);
                (name.map_or_else(|| format!("type {}", type_id.0), str::to_owned), key.to_owned())
            }
        }
    }
}

/// The most findings that a report names.
pub const FINDINGS_MAX: usize = 1_000;

/// The most entries that are looked at at once.
const BATCH_MAX: usize = 512;
/// With so many bytes of entries a batch ends.
const BATCH_BYTES_MAX: usize = 4 << 20;

//! Deciders whose reads are counted, for tests of how much work they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::{Answer, Decide, Decision, OnEntry, OnValue, Range, Read, Table, Transaction};
use crate::{Error, Head, Hlc};

/// What was read.
#[derive(Clone, Default)]
pub(super) struct Reads(Arc<Counts>);

#[derive(Default)]
struct Counts {
    documents: AtomicUsize,
    index_entries: AtomicUsize,
}

impl Reads {
    /// How many documents were looked up.
    pub(super) fn documents(&self) -> usize {
        self.0.documents.load(Ordering::Relaxed)
    }

    /// How many entries of indexes were shown.
    pub(super) fn index_entries(&self) -> usize {
        self.0.index_entries.load(Ordering::Relaxed)
    }
}

pub(super) struct Counted<D> {
    decider: D,
    reads: Reads,
}

impl<D> Counted<D> {
    pub(super) fn new(decider: D) -> (Self, Reads) {
        let reads = Reads::default();
        (Self { decider, reads: reads.clone() }, reads)
    }
}

impl<D: Decide> Decide for Counted<D> {
    fn decide<'a>(
        &'a mut self,
        transaction: &'a dyn Transaction,
    ) -> Answer<'a, Result<Decision, Error>> {
        let counting = Counting { transaction, reads: &self.reads };
        Answer::now(pollster::block_on(self.decider.decide(&counting)))
    }
}

struct Counting<'t> {
    transaction: &'t dyn Transaction,
    reads: &'t Reads,
}

impl Read for Counting<'_> {
    fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
        each: &'a mut OnValue<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        if table == Table::Documents {
            self.reads.0.documents.fetch_add(keys.len(), Ordering::Relaxed);
        }
        self.transaction.get_many(table, keys, each)
    }

    fn range<'a>(
        &'a self,
        range: Range<'a>,
        each: &'a mut OnEntry<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        Answer::later(async move {
            let mut show = |key: &[u8], value: &[u8]| {
                if range.table == Table::Index {
                    self.reads.0.index_entries.fetch_add(1, Ordering::Relaxed);
                }
                each(key, value)
            };
            self.transaction.range(range, &mut show).await
        })
    }
}

impl Transaction for Counting<'_> {
    fn head(&self) -> Head {
        self.transaction.head()
    }

    fn stamp(&self) -> Hlc {
        self.transaction.stamp()
    }
}

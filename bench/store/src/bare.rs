//! The floor: LMDB through `heed`, with a loop that writes the bytes that the store writes and does
//! nothing else.

use std::path::Path;

use anyhow::Result;
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions, PutFlags, WithTls};

use crate::sample::Sample;

/// Documents, log, and an index table.
pub(crate) struct Bare {
    pub(crate) env: Env<WithTls>,
    pub(crate) documents: Database<'static, Bytes, Bytes>,
    pub(crate) log: Database<'static, Bytes, Bytes>,
    index: Database<'static, Bytes, Bytes>,
    clock: u64,
}

impl Bare {
    #[allow(unsafe_code, reason = "the directory is this benchmark's own, and opened once")]
    pub(crate) fn open(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path)?;
        // SAFETY: nothing else touches the files of a directory that was made for this.
        let env = unsafe { EnvOpenOptions::new().map_size(8 << 30).max_dbs(3).open(path)? };
        let txn = env.write_txn()?;
        let [documents, log, index] = env
            .create_databases_and_commit(txn, |opener, txn| {
                let mut create = |name| opener.create_database::<Bytes, Bytes>(txn, Some(name));
                let tables = [create("documents")?, create("log")?, create("index")?];
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(tables))
            })?
            .unwrap_commit();
        Ok(Self { env, documents, log, index, clock: 0 })
    }

    /// Writes a batch in one durable transaction. What has no order of its own goes in key by key, as
    /// the store does it too.
    pub(crate) fn write(&mut self, batch: &[Sample], indexed: bool) -> Result<()> {
        let mut rows: Vec<_> = batch.iter().map(|sample| (sample, sample.json())).collect();
        rows.sort_by(|(one, _), (other, _)| one.key.cmp(&other.key));
        let mut txn = self.env.write_txn()?;
        for (sample, json) in &rows {
            let key = [&[0, 0, 0, 1], sample.key.as_bytes()].concat();
            self.documents.put(&mut txn, &key, &[&[0; 9], json.as_slice()].concat())?;
            self.clock += 1;
            let entry = [&[0; 28], sample.key.as_bytes(), json.as_slice()].concat();
            let clock = self.clock.to_be_bytes();
            self.log.put_with_flags(&mut txn, PutFlags::APPEND, &clock, &entry)?;
        }
        if indexed {
            let mut entries: Vec<_> =
                rows.iter().flat_map(|(sample, _)| index_keys(sample)).collect();
            entries.sort_unstable();
            for key in entries {
                self.index.put(&mut txn, &key, &[0, 0])?;
            }
        }
        txn.commit()?;
        Ok(())
    }
}

fn index_keys(sample: &Sample) -> [Vec<u8>; 2] {
    let city = [&[0, 0, 0, 16, 0x30], sample.city.as_bytes(), &[0], sample.key.as_bytes()].concat();
    let total = sample.total.to_be_bytes();
    [city, [&[0, 0, 0, 17, 0x22], &total[4..], sample.key.as_bytes()].concat()]
}

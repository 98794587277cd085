//! What people use instead: SQLite with two indexes on JSON and a log table, and redb with the same
//! tables as the store's.

use std::path::Path;

use anyhow::Result;
use redb::{ReadableDatabase as _, TableDefinition};
use rusqlite::{Connection, params};

use crate::sample::Sample;

const DOCUMENTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("documents");
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const CITIES: TableDefinition<'_, (&str, &str), ()> = TableDefinition::new("cities");
const TOTALS: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("totals");

/// redb, durable at each commit.
pub(crate) struct Redb {
    database: redb::Database,
    clock: u64,
}

impl Redb {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self { database: redb::Database::create(path)?, clock: 0 })
    }

    pub(crate) fn write(&mut self, batch: &[Sample], indexed: bool) -> Result<()> {
        let txn = self.database.begin_write()?;
        {
            let mut documents = txn.open_table(DOCUMENTS)?;
            let mut log = txn.open_table(LOG)?;
            let mut cities = txn.open_table(CITIES)?;
            let mut totals = txn.open_table(TOTALS)?;
            for sample in batch {
                let json = sample.json();
                documents.insert(sample.key.as_str(), json.as_slice())?;
                self.clock += 1;
                log.insert(self.clock, json.as_slice())?;
                if indexed {
                    cities.insert((sample.city.as_str(), sample.key.as_str()), ())?;
                    totals.insert((sample.total, sample.key.as_str()), ())?;
                }
            }
        }
        txn.commit()?;
        Ok(())
    }

    /// Reads a document's bytes.
    pub(crate) fn read(&self, key: &str) -> Result<usize> {
        let txn = self.database.begin_read()?;
        let table = txn.open_table(DOCUMENTS)?;
        Ok(table.get(key)?.map_or(0, |value| value.value().len()))
    }
}

/// SQLite in WAL mode, durable at each commit.
pub(crate) struct Sqlite(Connection);

impl Sqlite {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE documents (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
             CREATE TABLE log (clock INTEGER PRIMARY KEY, key TEXT NOT NULL, value TEXT NOT NULL);",
        )?;
        Ok(Self(connection))
    }

    pub(crate) fn add_indexes(&self) -> Result<()> {
        self.0.execute_batch(
            "CREATE INDEX cities ON documents (value ->> 'city');
             CREATE INDEX totals ON documents (value ->> 'total');",
        )?;
        Ok(())
    }

    pub(crate) fn write(&mut self, batch: &[Sample]) -> Result<()> {
        let txn = self.0.transaction()?;
        {
            let mut document =
                txn.prepare_cached("INSERT OR REPLACE INTO documents VALUES (?1, ?2)")?;
            let mut log = txn.prepare_cached("INSERT INTO log (key, value) VALUES (?1, ?2)")?;
            for sample in batch {
                let json = sample.value.to_string();
                document.execute(params![sample.key, json])?;
                log.execute(params![sample.key, json])?;
            }
        }
        txn.commit()?;
        Ok(())
    }
}

//! What a decider wrote, read as `docs/design/store.md` lays it out.

use minicbor::Decoder;
use motet_store::Op;
use motet_store::engine::{Table, Writes};
use serde_json::Value;

use crate::store::model::{Entry, Id};

/// A log entry as it lies in the log.
#[derive(Debug)]
pub(super) struct RawEntry {
    pub(super) clock: u64,
    pub(super) op: Op,
    pub(super) kind: u32,
    pub(super) key: String,
    pub(super) previous: u64,
    pub(super) time: u64,
    pub(super) origin: u64,
    pub(super) transaction: u64,
    pub(super) total_bytes: u64,
    pub(super) json: Option<Vec<u8>>,
}

impl RawEntry {
    /// The entry of this document.
    pub(super) fn of(&self, id: Id) -> Entry {
        Entry {
            clock: self.clock,
            id,
            op: self.op,
            previous: self.previous,
            time: self.time,
            origin: self.origin,
            transaction: self.transaction,
            total_bytes: self.total_bytes,
            json: self.json.clone(),
        }
    }
}

/// A document as it lies in the documents.
#[derive(Debug)]
pub(super) struct RawDocument {
    pub(super) version: u64,
    pub(super) expires_ms: Option<u64>,
    pub(super) json: Vec<u8>,
}

/// All that one decider wrote.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) entries: Vec<RawEntry>,
    /// Entries of changes that were there before.
    pub(super) again: Vec<RawEntry>,
    /// Clocks whose entries it removed.
    pub(super) trimmed: Vec<u64>,
    /// Type number and key, and what is there then.
    pub(super) documents: Vec<(u32, String, Option<RawDocument>)>,
    /// Names in the catalogue, and what is there then.
    pub(super) catalog: Vec<(String, Option<Vec<u8>>)>,
}

impl Raw {
    /// Reads what was written to a log that ended at this clock.
    pub(super) fn parse(writes: &Writes, head: u64) -> Result<Self, String> {
        let mut raw = Self::default();
        for (table, key, value) in writes.iter() {
            match table {
                Table::Log => {
                    let clock = key.try_into().map(u64::from_be_bytes);
                    let clock = clock.map_err(|_| "a key of the log is no clock".to_owned())?;
                    match value {
                        None => raw.trimmed.push(clock),
                        Some(bytes) if clock > head => raw.entries.push(entry(clock, bytes)?),
                        Some(bytes) => raw.again.push(entry(clock, bytes)?),
                    }
                }
                Table::Documents => {
                    let (kind, key) = key.split_first_chunk::<4>().ok_or("a short key")?;
                    let key = String::from_utf8(key.to_vec()).map_err(|error| error.to_string())?;
                    let document = value.map(document).transpose()?;
                    raw.documents.push((u32::from_be_bytes(*kind), key, document));
                }
                Table::Catalog => {
                    let name = String::from_utf8_lossy(key).into_owned();
                    raw.catalog.push((name, value.map(<[u8]>::to_vec)));
                }
                Table::Index => {}
            }
        }
        Ok(raw)
    }
}

fn entry(clock: u64, bytes: &[u8]) -> Result<RawEntry, String> {
    read_entry(clock, bytes).map_err(|error| format!("the log's entry {clock}: {error}"))
}

fn read_entry(clock: u64, bytes: &[u8]) -> Result<RawEntry, minicbor::decode::Error> {
    let mut decoder = Decoder::new(bytes);
    let fields = decoder.array()?.unwrap_or(0);
    let op = match decoder.u8()? {
        1 => Op::Put,
        2 => Op::Remove,
        3 => Op::Expire,
        _ => return Err(minicbor::decode::Error::message("an unknown operation")),
    };
    Ok(RawEntry {
        clock,
        op,
        kind: decoder.u32()?,
        key: decoder.str()?.to_owned(),
        previous: decoder.u64()?,
        time: decoder.u64()?,
        origin: decoder.u64()?,
        transaction: decoder.u64()?,
        total_bytes: decoder.u64()?,
        json: if fields > 8 && op == Op::Put { Some(decoder.bytes()?.to_vec()) } else { None },
    })
}

fn document(bytes: &[u8]) -> Result<RawDocument, String> {
    let parts = || {
        let (flags, rest) = bytes.split_first()?;
        let (version, rest) = rest.split_first_chunk::<8>()?;
        let version = u64::from_be_bytes(*version);
        match flags {
            0 => Some(RawDocument { version, expires_ms: None, json: rest.to_vec() }),
            1 => {
                let (expires_ms, json) = rest.split_first_chunk::<8>()?;
                let expires_ms = Some(u64::from_be_bytes(*expires_ms));
                Some(RawDocument { version, expires_ms, json: json.to_vec() })
            }
            _ => None,
        }
    };
    parts().ok_or_else(|| "a document of another format".to_owned())
}

pub(super) fn json(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

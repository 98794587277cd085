//! The data file as bytes, looked at before LMDB maps it.
//!
//! LMDB trusts what it maps: a file that was cut short would end the process with `SIGBUS` at the
//! first page that is not there. Layouts are those of `mdb.c` (`MDB_page`, `MDB_meta`, `MDB_db`,
//! `MDB_node`), data version 1, in this machine's byte order.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::Error;

/// Checks what never changes after the creation.
pub(super) fn check_header(path: &Path) -> Result<(), Error> {
    let file = open(path)?;
    let page = read(&file, 0, META_END).map_err(|error| short(path, error))?;
    let page_bytes = u32_at(&page, META + 24);
    let why = if u16_at(&page, 10) & FLAG_META == 0 || u32_at(&page, META) != MAGIC {
        "it does not begin as an LMDB file does"
    } else if u32_at(&page, META + 4) != VERSION {
        "it has another LMDB data version"
    } else if !page_bytes.is_power_of_two() || !PAGE_BYTES.contains(&page_bytes) {
        "its page size is none"
    } else {
        return Ok(());
    };
    Err(corrupt(path, why))
}

/// Checks that everything which the last transaction refers to is in the file. Nobody may write
/// meanwhile.
pub(super) fn check_pages(path: &Path) -> Result<(), Error> {
    check_header(path)?;
    let file = open(path)?;
    let meta = last_meta(&file).map_err(|error| short(path, error))?;
    let file_bytes = file.metadata().map_err(|error| Error::io("measuring data.mdb", error))?.len();
    let pages = Pages { file, page_bytes: meta.page_bytes, count: file_bytes / meta.page_bytes };
    if meta.last_page < pages.count {
        return Ok(());
    }
    // Free pages at the end need not have been written, so only a walk can tell.
    for root in meta.roots {
        pages.walk(root, 0).map_err(|error| short(path, error))?;
    }
    Ok(())
}

/// The number of the last transaction that is in the file.
pub(super) fn last_transaction(path: &Path) -> Result<u64, Error> {
    let meta = last_meta(&open(path)?).map_err(|error| short(path, error))?;
    Ok(meta.transaction)
}

struct Meta {
    page_bytes: u64,
    roots: [u64; 2],
    last_page: u64,
    transaction: u64,
}

fn last_meta(file: &File) -> io::Result<Meta> {
    let first = meta_at(file, 0)?;
    let second = meta_at(file, first.page_bytes)?;
    Ok(if second.transaction > first.transaction { second } else { first })
}

fn meta_at(file: &File, offset: u64) -> io::Result<Meta> {
    let page = read(file, offset, META_END)?;
    if u32_at(&page, META) != MAGIC {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(Meta {
        page_bytes: u32_at(&page, META + 24).into(),
        roots: [u64_at(&page, META + 24 + ROOT), u64_at(&page, META + 24 + DB_BYTES + ROOT)],
        last_page: u64_at(&page, META + 24 + 2 * DB_BYTES),
        transaction: u64_at(&page, META + 32 + 2 * DB_BYTES),
    })
}

struct Pages {
    file: File,
    page_bytes: u64,
    count: u64,
}

impl Pages {
    /// Reads every page of a tree; fails where one is missing or is no such page.
    fn walk(&self, page: u64, depth: usize) -> io::Result<()> {
        if page == NO_PAGE {
            return Ok(());
        }
        if page >= self.count || depth > DEPTH_MAX {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let bytes = usize::try_from(self.page_bytes).map_err(|_| ErrorKind::InvalidData)?;
        let page = read(&self.file, page * self.page_bytes, bytes)?;
        let flags = u16_at(&page, 10);
        let slots = usize::from(u16_at(&page, 12)).saturating_sub(PAGE_HEADER) / 2;
        for slot in 0..slots.min((page.len() - PAGE_HEADER) / 2) {
            let node = usize::from(u16_at(&page, PAGE_HEADER + 2 * slot));
            let node = page.get(node..).filter(|node| node.len() >= NODE_HEADER);
            let node = node.ok_or(ErrorKind::InvalidData)?;
            match flags & (FLAG_BRANCH | FLAG_LEAF) {
                FLAG_BRANCH => self.walk(child_of(node), depth + 1)?,
                FLAG_LEAF => self.walk_leaf(node, depth)?,
                _ => return Err(ErrorKind::InvalidData.into()),
            }
        }
        Ok(())
    }

    fn walk_leaf(&self, node: &[u8], depth: usize) -> io::Result<()> {
        let data = NODE_HEADER + usize::from(u16_at(node, 6));
        let data_of = |bytes: usize| node.get(data..data + bytes).ok_or(ErrorKind::InvalidData);
        match u16_at(node, 4) & (NODE_BIG | NODE_TABLE) {
            NODE_TABLE => self.walk(u64_at(data_of(DB_BYTES)?, ROOT), depth + 1),
            NODE_BIG => {
                let value_bytes = u64::from(u16_at(node, 0)) | u64::from(u16_at(node, 2)) << 16;
                let pages = (PAGE_HEADER as u64 + value_bytes).div_ceil(self.page_bytes);
                match u64_at(data_of(8)?, 0).checked_add(pages) {
                    Some(end) if end <= self.count => Ok(()),
                    _ => Err(ErrorKind::UnexpectedEof.into()),
                }
            }
            _ => Ok(()),
        }
    }
}

fn child_of(node: &[u8]) -> u64 {
    let part = |at: usize| u64::from(u16_at(node, at));
    part(0) | part(2) << 16 | part(4) << 32
}

fn open(path: &Path) -> Result<File, Error> {
    match File::open(path) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(corrupt(path, "it is missing")),
        Err(error) => Err(Error::io("opening data.mdb", error)),
    }
}

fn read(file: &File, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut read = vec![0; bytes];
    file.read_exact_at(&mut read, offset)?;
    Ok(read)
}

fn short(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => corrupt(path, "a part of it is missing"),
        ErrorKind::InvalidData => corrupt(path, "a page of it is none"),
        _ => Error::io("reading data.mdb", error),
    }
}

fn corrupt(path: &Path, why: &str) -> Error {
    Error::Corrupt { path: path.to_owned(), why: why.to_owned() }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(array(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(array(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(array(bytes, at))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("every reader has asked for the bytes that it looks at")
}

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
const PAGE_BYTES: std::ops::RangeInclusive<u32> = 512..=65_536;
const NO_PAGE: u64 = u64::MAX;
/// Deeper than LMDB's own limit for all trees together.
const DEPTH_MAX: usize = 80;
const PAGE_HEADER: usize = 16;
const NODE_HEADER: usize = 8;
const FLAG_BRANCH: u16 = 0x01;
const FLAG_LEAF: u16 = 0x02;
const FLAG_META: u16 = 0x08;
const NODE_BIG: u16 = 0x01;
const NODE_TABLE: u16 = 0x02;
/// Where the meta record begins in its page: magic, version, address, map size, two tables.
const META: usize = PAGE_HEADER;
const META_END: usize = META + 24 + 2 * DB_BYTES + 16;
/// Bytes of an `MDB_db`, and where its root is.
const DB_BYTES: usize = 48;
const ROOT: usize = 40;

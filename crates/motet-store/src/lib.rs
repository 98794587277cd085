//! Motet's store: an embedded document database with a change log.
//!
//! [`Store::open`] opens a directory, [`Env`] is where documents are written and read; [`guide`] says
//! how, by task. Storage lies behind one seam, [`engine::Engine`]; `docs/design/store.md` says how
//! keys are laid out, how a commit goes and what is assumed of the medium.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod catalog;
mod check;
mod clock;
mod commit;
mod document;
pub mod engine;
mod env;
mod error;
pub mod filter;
pub mod guide;
mod index;
mod key_range;
mod keys;
mod log;
mod lookup;
mod maintenance;
mod query;
mod read_set;
mod root;
mod shared;
mod signal;
mod store;
mod transaction;
pub mod value;

pub use catalog::{OnDelete, TypeSpec};
pub use check::{CheckReport, FINDINGS_MAX, Finding};
pub use clock::{Clock, Head, Hlc};
pub use commit::IdempotencyKey;
pub use document::{
    DOCUMENT_KEY_BYTES_MAX, Document, NAME_BYTES_MAX, Patch, RawDocument, VALUE_DEPTH_MAX, Write,
};
pub use env::Env;
pub use error::{BrokenReference, Error};
pub use index::{INDEX_FIELDS_MAX, IndexSpec, IndexState, IndexStatus};
pub use key_range::KeyRange;
pub use log::{Change, ChangeHeader, Log, Op, Position, Retention, Tail};
pub use query::{Explain, Page, Query, ROWS_MAX, RawPage, SORT_BYTES_MAX};
pub use shared::{Driver, Limits};
pub use signal::Wake;
pub use store::{Store, StoreOptions};
pub use transaction::Transaction;

//! Guides by task. Their examples are tested with the crate's.

#[doc = include_str!("../../../docs/guide/store-quickstart.md")]
pub mod store_quickstart {}

#[doc = include_str!("../../../docs/guide/documents.md")]
pub mod documents {}

#[doc = include_str!("../../../docs/guide/querying.md")]
pub mod querying {}

#[doc = include_str!("../../../docs/guide/transactions-and-log.md")]
pub mod transactions_and_log {}

#[doc = include_str!("../../../docs/guide/several-processes.md")]
pub mod several_processes {}

#[doc = include_str!("../../../docs/guide/backup.md")]
pub mod backup {}

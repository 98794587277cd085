//! The named checks, judged from outside: by what was written to the engine, and by what readers
//! and tails were given, against the model.

mod catalog;
mod changes;
pub(crate) mod decided;
pub(crate) mod indexes;
mod raw;
pub(crate) mod reads;
pub(crate) mod references;
pub(crate) mod rest;
pub(crate) mod retention;

use motet_protocol::ErrorCode;

/// Outcome of one observation: the failed check and what was seen.
pub(crate) type Verdict = Result<(), (&'static str, String)>;

/// The check that watches over what this error guards.
const fn guard(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::UniqueViolation => "index",
        ErrorCode::ReferenceMissing
        | ErrorCode::ReferenceRestricted
        | ErrorCode::ReferencesBuilding => "fk",
        ErrorCode::SchemaViolation => "catalog",
        _ => "serial",
    }
}

/// Fails a check unless something holds.
fn holds(check: &'static str, holds: bool, detail: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err((check, detail())) }
}

//! The cases, by what they are about.

pub(crate) mod calls;
pub(crate) mod clocks;
pub(crate) mod reading;
pub(crate) mod views;
pub(crate) mod writing;

use std::sync::Arc;

use motet_store::engine::Engine;

/// A new engine, and what it lies in.
pub(crate) struct Fresh {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) _dir: Option<tempfile::TempDir>,
}

/// Makes one.
pub(crate) type Make<'a> = &'a dyn Fn() -> Fresh;

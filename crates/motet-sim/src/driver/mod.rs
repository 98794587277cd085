//! Thin drivers around the real cores: what a browser's driver does, against the virtual media.

pub(crate) mod app;
pub(crate) mod host;
pub(crate) mod page;
pub(crate) mod transport;

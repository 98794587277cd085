//! The media between contexts, with the semantics of real browsers.

pub(crate) mod channel;
pub(crate) mod lock;
pub(crate) mod port;
pub(crate) mod wire;

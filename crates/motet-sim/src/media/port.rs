//! MessagePort pairs between a page and the host of its node. Nothing tells one end that the other
//! is gone.

use motet_protocol::ClientId;

use crate::world::context::ContextId;

/// Index of a port pair; never used again.
pub(crate) type PortId = usize;

/// A port pair.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) page: ContextId,
    pub(crate) host: ContextId,
    /// The page behind it, once it has attached.
    pub(crate) client: Option<ClientId>,
    /// The page's end is open.
    pub(crate) page_open: bool,
    /// The host's end is open.
    pub(crate) host_open: bool,
    /// When the last message to the page and to the host arrives: none overtakes it.
    pub(crate) last_arrival: [u64; 2],
}

impl Port {
    pub(crate) const fn new(page: ContextId, host: ContextId) -> Self {
        Self { page, host, client: None, page_open: true, host_open: true, last_arrival: [0; 2] }
    }
}

//! The node's transport: the real client session, joined with a link.

use motet_protocol::transport::{TransportEvent, TransportOp};
use motet_protocol::{Instant, Rng};

use super::host::Host;
use crate::server::{ConnectionId, Downstream};
use crate::world::World;
use crate::world::context::ContextId;

/// The transport of one node.
#[derive(Debug)]
pub(crate) struct Transport {}

impl Transport {
    pub(crate) fn new(_now: Instant, _rng: Rng) -> Self {
        Self {}
    }
    pub(crate) fn operate(&mut self, _now: Instant, _op: TransportOp<u64>) {}
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        None
    }
}

impl World {
    pub(crate) fn transport_tick(&mut self, _id: ContextId) {}
    pub(crate) fn transport_outputs(
        &mut self,
        _id: ContextId,
        _host: &mut Host,
    ) -> Option<TransportEvent<u64>> {
        None
    }
    pub(crate) fn socket_message(
        &mut self,
        _id: ContextId,
        _connection: ConnectionId,
        _message: Downstream,
    ) {
    }
}

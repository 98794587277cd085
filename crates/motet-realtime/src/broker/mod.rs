//! The broker seam: who keeps streams, presence and deduplication, and carries publications
//! between servers.
//!
//! A [`Broker`] is driven like every core here: requests go in, events come out, whether at once
//! (the [`MemoryBroker`]) or when a network has answered. Requests that concern one channel are
//! carried out in the order in which they were made, and each is answered by exactly one event
//! with its [`OpId`]. The [`conformance`] suite states the contract as tests.

pub mod conformance;
mod dedupe;
mod epochs;
mod memory;
mod presence;
mod request;
mod stream;

pub use memory::{MemoryBroker, MemoryBrokerOptions, MemoryBrokerStats};
pub use request::{
    Answer, BrokerError, BrokerEvent, BrokerOp, BrokerRequest, HistoryPage, HistoryQuery,
    Idempotency, OpId, PublishOptions, Published, Retention, Version,
};

use motet_protocol::Instant;

use crate::payload::Payload;

/// Keeps streams and presence and carries publications between servers.
///
/// An implementation over a network queues what it is given and reports later through
/// [`Broker::poll_output`]; its driver wakes the hub's driver when there is something to poll. It
/// also keeps alive whatever its own server added (presence entries), so that the hub needs to say
/// each thing only once.
pub trait Broker<P: Payload> {
    /// Takes a request. `now` is the driver's clock.
    fn handle(&mut self, now: Instant, request: BrokerRequest<P>);

    /// The next event, if any.
    fn poll_output(&mut self) -> Option<BrokerEvent<P>>;

    /// When [`Broker::handle_timeout`] wants to be called.
    fn next_timeout(&self) -> Option<Instant>;

    /// Drops what has expired.
    fn handle_timeout(&mut self, now: Instant);
}

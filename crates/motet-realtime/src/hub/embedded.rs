//! A hub and its broker in one: what the server's driver and the simulator run.

use motet_protocol::Instant;

use super::{Hub, HubStats, Input, Output, SessionId};
use crate::broker::{Broker, MemoryBroker};
use crate::payload::Payload;

/// A [`Hub`] joined with a [`Broker`]. Requests and events between the two are passed on inside;
/// everything else is as with the hub alone.
pub struct EmbeddedHub<P, B = MemoryBroker<P>> {
    hub: Hub<P>,
    broker: B,
}

impl<P: Payload, B: Broker<P>> EmbeddedHub<P, B> {
    /// Joins the two.
    #[must_use]
    pub fn new(hub: Hub<P>, broker: B) -> Self {
        Self { hub, broker }
    }

    /// Takes what happened.
    pub fn handle(&mut self, now: Instant, input: Input<P>) {
        if matches!(input, Input::Timeout) {
            self.broker.handle_timeout(now);
        }
        self.hub.handle(now, input);
        self.take_broker_events(now);
    }

    /// The next thing to be done, if any. `now` is for the broker, which may be asked on the way.
    pub fn poll_output(&mut self, now: Instant) -> Option<Output<P>> {
        loop {
            match self.hub.poll_output()? {
                Output::Broker(request) => {
                    self.broker.handle(now, request);
                    self.take_broker_events(now);
                }
                output => return Some(output),
            }
        }
    }

    /// When [`Input::Timeout`] is wanted.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        [self.hub.next_timeout(), self.broker.next_timeout()].into_iter().flatten().min()
    }

    /// Passes on what the broker has to report; to be called when a broker over a network wakes
    /// its driver.
    pub fn take_broker_events(&mut self, now: Instant) {
        while let Some(event) = self.broker.poll_output() {
            self.hub.handle(now, Input::Broker(event));
        }
    }

    /// Whether a connection's next command would have to wait for an earlier one.
    #[must_use]
    pub fn is_busy(&self, session: SessionId) -> bool {
        self.hub.is_busy(session)
    }

    /// The broker.
    #[must_use]
    pub const fn broker(&self) -> &B {
        &self.broker
    }

    /// Numbers about the hub.
    #[must_use]
    pub fn stats(&self) -> HubStats {
        self.hub.stats()
    }
}

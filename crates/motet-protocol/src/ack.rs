//! What a receiver says about a message before it has done anything with it.

use core::time::Duration;

use minicbor::{Decode, Encode};

use crate::id::CallId;

/// How long a busy receiver asks to be left alone when it names no time (rule E28).
pub const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

/// How long an ACK is worth delivering (rule E19).
pub const ACK_LIFETIME: Duration = Duration::from_secs(5);

/// Whether the receiver took the message (rules E2 and E19). Taken never means done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum AckStatus {
    /// Work starts now.
    #[n(0)]
    Accepted,
    /// Work waits in the receiver's queue.
    #[n(1)]
    Queued,
    /// The same operation is known already; its one result will be the answer.
    #[n(2)]
    Duplicate,
    /// The queue is full; nothing was taken and the message may be sent again later.
    #[n(3)]
    Busy,
    /// Nothing was taken; an error reply says why.
    #[n(4)]
    Rejected,
}

/// The acknowledgement of one attempt. Its envelope names that attempt as the causation.
///
/// ```
/// use motet_protocol::{Ack, AckStatus, CallId};
///
/// let ack = Ack::new(AckStatus::Queued, CallId::from_bits(7));
/// assert!(ack.accepted());
/// assert!(!Ack::busy(CallId::from_bits(7), 250).accepted());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Ack {
    /// Taken or not, and how.
    #[n(0)]
    pub status: AckStatus,
    /// Milliseconds after which another attempt makes sense; with [`AckStatus::Busy`].
    #[n(1)]
    pub retry_after_ms: Option<u32>,
    /// The id under which the receiver handles the message.
    #[n(2)]
    pub receiver_message_id: CallId,
}

impl Ack {
    /// An acknowledgement without a delay.
    #[must_use]
    pub const fn new(status: AckStatus, receiver_message_id: CallId) -> Self {
        Self { status, retry_after_ms: None, receiver_message_id }
    }

    /// A refusal by a full queue.
    #[must_use]
    pub const fn busy(receiver_message_id: CallId, retry_after_ms: u32) -> Self {
        Self { status: AckStatus::Busy, retry_after_ms: Some(retry_after_ms), receiver_message_id }
    }

    /// Whether the receiver took the message.
    #[must_use]
    pub const fn accepted(&self) -> bool {
        matches!(self.status, AckStatus::Accepted | AckStatus::Queued | AckStatus::Duplicate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_survives_the_wire() {
        let ack = Ack::busy(CallId::from_bits(9), 1_000);
        let bytes = minicbor::to_vec(&ack).unwrap();
        assert_eq!(minicbor::decode::<Ack>(&bytes).unwrap(), ack);
    }

    #[test]
    fn busy_and_rejected_are_the_statuses_that_took_nothing() {
        let taken = |status| Ack::new(status, CallId::from_bits(1)).accepted();
        assert!(taken(AckStatus::Accepted) && taken(AckStatus::Queued));
        assert!(taken(AckStatus::Duplicate));
        assert!(!taken(AckStatus::Busy) && !taken(AckStatus::Rejected));
    }
}

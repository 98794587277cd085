//! The envelope: everything about a message except its payload.
//!
//! The payload travels beside it, untouched (in a browser it stays a JavaScript value). Fields are
//! encoded by index, so that a receiver ignores those that a newer sender appends.

use core::time::Duration;

use minicbor::{Decode, Encode};

use crate::id::{CallId, ClientId, CorrelationId, NodeId};
use crate::rng::Rng;
use crate::time::Instant;

/// Major version of the envelope. Another one is refused with
/// [`crate::ErrorCode::UnsupportedSchema`]; fields are appended without changing it.
pub const ENVELOPE_VERSION: u16 = 1;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum MessageKind {
    /// Asks for a change.
    #[n(0)]
    Command,
    /// Asks for an answer and changes nothing.
    #[n(1)]
    Query,
    /// Tells what happened; nobody answers.
    #[n(2)]
    Event,
    /// Says whether an attempt was taken; the payload is an [`crate::Ack`].
    #[n(3)]
    Ack,
    /// The final answer.
    #[n(4)]
    Reply,
    /// The final refusal; the payload is an [`crate::Error`].
    #[n(5)]
    Error,
    /// The caller does not want the answer any more; the payload is a [`crate::CancelReason`].
    #[n(6)]
    Cancel,
    /// A part of an answer that comes in parts.
    #[n(7)]
    Stream,
}

/// A context that sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub enum Actor {
    /// A node. It lives as long as the context that runs it, so this names one instance of it.
    #[n(0)]
    Node(#[n(0)] NodeId),
    /// A page's handle. A page that restarts draws a new id.
    #[n(1)]
    Client(#[n(0)] ClientId),
}

/// Whom a message is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Recipient {
    /// One context.
    #[n(0)]
    Actor(#[n(0)] Actor),
    /// Whoever holds a role, such as `coordinator`.
    #[n(1)]
    Role(#[n(0)] String),
    /// Everybody on the channel. Never acknowledged (rule E20).
    #[n(2)]
    Broadcast,
}

/// Everything about a message except its payload.
///
/// ```
/// use core::time::Duration;
/// use motet_protocol::{
///     Actor, Envelope, Instant, MessageKind, NodeId, Recipient, Rng, decode_envelope,
/// };
///
/// let mut rng = Rng::from_seed([1; 32]);
/// let (page, node) = (NodeId::random(&mut rng), NodeId::random(&mut rng));
/// let query = Envelope::new(&mut rng, MessageKind::Query, "price.quote", Actor::Node(page))
///     .to(Recipient::Actor(Actor::Node(node)))
///     .within(Duration::from_secs(2));
/// let bytes = minicbor::to_vec(&query).unwrap();
///
/// let received = decode_envelope(&bytes).unwrap();
/// // The receiver counts the remaining time on its own clock, from when it received the message.
/// let received_at = Instant::from_micros(5_000_000);
/// assert_eq!(received.deadline_at(received_at), Some(Instant::from_micros(7_000_000)));
///
/// let reply = received.answer(&mut rng, MessageKind::Reply, Actor::Node(node));
/// assert_eq!(reply.correlation, query.correlation);
/// assert_eq!(reply.causation, Some(query.message_id));
/// assert_eq!(reply.recipient, Recipient::Actor(Actor::Node(page)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Envelope {
    /// [`ENVELOPE_VERSION`] of the sender.
    #[n(0)]
    pub version: u16,
    /// This message; for a request: this attempt.
    #[n(1)]
    pub message_id: CallId,
    /// What it is for.
    #[n(2)]
    pub kind: MessageKind,
    /// The message type.
    #[n(3)]
    pub message_type: String,
    /// Version of the payload's shape.
    #[n(4)]
    pub schema_version: u16,
    /// Who sent it.
    #[n(5)]
    pub sender: Actor,
    /// Whom it is for.
    #[n(6)]
    pub recipient: Recipient,
    /// The flow it belongs to: the same for a request, its repeats and all its answers.
    #[n(7)]
    pub correlation: CorrelationId,
    /// The message that caused it; for an answer: the attempt that it answers.
    #[n(8)]
    pub causation: Option<CallId>,
    /// Which attempt it is, from 1.
    #[n(9)]
    pub attempt: u32,
    /// Milliseconds in which the message still means anything, counted from its sending. No
    /// deadline travels, because two contexts have no clock in common (rule E22).
    #[n(10)]
    pub remaining_ms: Option<u32>,
    /// The sender's monotonic clock when it sent the message, in milliseconds. Comparable only with
    /// other messages of the same sender.
    #[n(11)]
    pub sent_at_ms: u64,
    /// One operation, however often it is asked for.
    #[n(12)]
    pub idempotency_key: Option<String>,
}

impl Envelope {
    /// The first message of a new flow, to everybody, with no limit of time.
    #[must_use]
    pub fn new(
        rng: &mut Rng,
        kind: MessageKind,
        message_type: impl Into<String>,
        sender: Actor,
    ) -> Self {
        Self {
            version: ENVELOPE_VERSION,
            message_id: CallId::random(rng),
            kind,
            message_type: message_type.into(),
            schema_version: 1,
            sender,
            recipient: Recipient::Broadcast,
            correlation: CorrelationId::random(rng),
            causation: None,
            attempt: 1,
            remaining_ms: None,
            sent_at_ms: 0,
            idempotency_key: None,
        }
    }

    /// The same message for this recipient.
    #[must_use]
    pub fn to(mut self, recipient: Recipient) -> Self {
        self.recipient = recipient;
        self
    }

    /// The same message, wanted only within `remaining` of its sending; rounded up to whole
    /// milliseconds.
    #[must_use]
    pub fn within(mut self, remaining: Duration) -> Self {
        let millis = remaining.as_micros().div_ceil(1_000);
        self.remaining_ms = Some(u32::try_from(millis).unwrap_or(u32::MAX));
        self
    }

    /// The same message as an attempt of the request manager: its ids, its number, its time.
    #[must_use]
    pub fn for_attempt(
        mut self,
        correlation: CorrelationId,
        call: CallId,
        attempt: u32,
        remaining: Duration,
    ) -> Self {
        self.correlation = correlation;
        self.message_id = call;
        self.attempt = attempt;
        self.within(remaining)
    }

    /// The same message, sent at this instant of the sender's clock.
    #[must_use]
    pub const fn sent_at(mut self, now: Instant) -> Self {
        self.sent_at_ms = now.as_micros() / 1_000;
        self
    }

    /// An answer to this message: same type and flow, caused by it, addressed to its sender.
    #[must_use]
    pub fn answer(&self, rng: &mut Rng, kind: MessageKind, sender: Actor) -> Self {
        Self {
            correlation: self.correlation,
            causation: Some(self.message_id),
            schema_version: self.schema_version,
            recipient: Recipient::Actor(self.sender),
            ..Self::new(rng, kind, self.message_type.clone(), sender)
        }
    }

    /// The deadline on the receiver's clock, for a message that arrived at `received_at`.
    #[must_use]
    pub fn deadline_at(&self, received_at: Instant) -> Option<Instant> {
        self.remaining_ms.map(|ms| received_at + Duration::from_millis(u64::from(ms)))
    }
}

/// Reads an envelope.
///
/// # Errors
///
/// [`crate::ErrorCode::UnsupportedSchema`] for another major version, whatever follows it;
/// [`crate::ErrorCode::BadFrame`] for anything else that is not an envelope.
pub fn decode_envelope(bytes: &[u8]) -> Result<Envelope, crate::Error> {
    let bad = |_| crate::Error::new(crate::ErrorCode::BadFrame);
    let mut decoder = minicbor::Decoder::new(bytes);
    decoder.array().map_err(bad)?;
    if decoder.u16().map_err(bad)? != ENVELOPE_VERSION {
        return Err(crate::Error::new(crate::ErrorCode::UnsupportedSchema));
    }
    minicbor::decode(bytes).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn envelope() -> Envelope {
        let mut rng = Rng::from_seed([2; 32]);
        let sender = Actor::Client(ClientId::random(&mut rng));
        Envelope::new(&mut rng, MessageKind::Command, "chat.send", sender)
            .to(Recipient::Role("owner".into()))
            .sent_at(Instant::from_micros(1_500_000))
    }

    #[test]
    fn an_envelope_survives_the_wire_with_every_field() {
        let full = Envelope {
            causation: Some(CallId::from_bits(3)),
            idempotency_key: Some("op-1".into()),
            schema_version: 4,
            ..envelope().within(Duration::from_secs(3))
        };
        assert_eq!(full.sent_at_ms, 1_500);
        let bytes = minicbor::to_vec(&full).unwrap();
        assert_eq!(decode_envelope(&bytes), Ok(full));
    }

    #[test]
    fn fields_that_a_newer_sender_appends_are_ignored() {
        let old = Envelope { idempotency_key: Some("k".into()), ..envelope() };
        let mut bytes = minicbor::to_vec(&old).unwrap();
        assert_eq!(bytes[0], 0x80 + 13, "an array of 13");
        bytes[0] += 2;
        bytes.extend(minicbor::to_vec(("appended", [1, 2, 3])).unwrap()[1..].iter());
        assert_eq!(decode_envelope(&bytes), Ok(old));
    }

    #[test]
    fn another_major_version_is_named_as_such_and_noise_is_a_bad_frame() {
        let newer = minicbor::to_vec((2_u16, "another shape")).unwrap();
        let code = |bytes: &[u8]| decode_envelope(bytes).unwrap_err().code;
        assert_eq!(code(&newer), ErrorCode::UnsupportedSchema);
        let whole = minicbor::to_vec(envelope()).unwrap();
        for end in 0..whole.len() {
            assert_eq!(code(&whole[..end]), ErrorCode::BadFrame, "{end}");
        }
        assert_eq!(code(b"\xff\x00"), ErrorCode::BadFrame);
    }

    #[test]
    fn an_attempt_carries_the_request_managers_ids_and_whole_milliseconds() {
        let (correlation, call) = (CorrelationId::from_bits(1), CallId::from_bits(2));
        let attempt = envelope().for_attempt(correlation, call, 3, Duration::from_micros(1_001));
        assert_eq!((attempt.correlation, attempt.message_id), (correlation, call));
        assert_eq!((attempt.attempt, attempt.remaining_ms), (3, Some(2)));
    }

    proptest::proptest! {
        #[test]
        fn bytes_from_anybody_are_an_envelope_or_a_typed_error(
            at in 0_usize..60,
            noise in proptest::collection::vec(proptest::num::u8::ANY, 0..40),
        ) {
            let mut bytes = minicbor::to_vec(envelope()).unwrap();
            bytes.splice(at.min(bytes.len()).., noise.iter().copied());
            for bytes in [&bytes, &noise] {
                if let Err(error) = decode_envelope(bytes) {
                    let codes = [ErrorCode::BadFrame, ErrorCode::UnsupportedSchema];
                    proptest::prop_assert!(codes.contains(&error.code));
                }
            }
        }
    }

    #[test]
    fn no_two_messages_have_the_same_id() {
        let mut rng = Rng::from_seed([3; 32]);
        let sender = Actor::Node(NodeId::random(&mut rng));
        let mut ids: Vec<_> = (0..1_000)
            .map(|_| Envelope::new(&mut rng, MessageKind::Event, "t", sender).message_id)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 1_000);
    }
}

//! Shared vocabulary of Motet's cores: time, ids, fences, stream positions, errors, the transport
//! seam, and the reliability rules that every part uses.
//!
//! Everything here is sans-IO: no clock is read, no randomness drawn but from a seeded generator,
//! nothing is spawned. Cores built on it are driven by three calls, named the same everywhere:
//! `handle(now, input)`, `poll_output()` and `next_timeout()`.

#![forbid(unsafe_code)]

mod ack;
mod backoff;
mod budget;
mod dedupe;
mod envelope;
mod error;
pub mod fault;
mod fence;
mod hash;
mod id;
mod json;
mod position;
mod request;
mod rng;
mod single_flight;
mod time;
pub mod transport;

pub use ack::{ACK_LIFETIME, Ack, AckStatus, BUSY_RETRY_AFTER};
pub use backoff::{Backoff, BackoffPolicy};
pub use budget::{RestartBudget, RetryBudget};
pub use dedupe::{
    Admission, MessageWindow, Operation, OperationLimits, OperationStore, Running, WhenFull,
};
pub use envelope::{Actor, ENVELOPE_VERSION, Envelope, MessageKind, Recipient, decode_envelope};
pub use error::{Error, ErrorCode, ErrorInfo, Severity};
pub use fence::{FENCE_NUMBER_MAX, Fence, Generation, RouteFence};
pub use hash::payload_hash;
pub use id::{CallId, ClientId, CorrelationId, InvalidId, NodeId, TabId};
pub use json::{JSON_DEPTH_MAX, nests_deeper};
pub use position::{Offset, Position, StreamEpoch};
pub use request::{
    CancelReason, PendingRequest, Refused, Request, RequestCounters, RequestLimits, RequestManager,
    RequestOutput, RequestPolicy, RequestState, Resend, Settled,
};
pub use rng::Rng;
pub use single_flight::{Flight, FlightId, SingleFlight};
pub use time::{AwakeClock, Instant, STALL_THRESHOLD};

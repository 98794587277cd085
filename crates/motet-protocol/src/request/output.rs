//! What the pending-call table tells its driver.

use core::time::Duration;
use std::borrow::Cow;

use minicbor::{Decode, Encode};

use crate::error::Error;
use crate::id::{CallId, CorrelationId};

/// Where a request stands (rule E21). The last five are terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestState {
    /// Taken, never handed to the transport.
    Queued,
    /// Handed to the transport; not acknowledged.
    Sent,
    /// The receiver took it. Not done.
    Acked,
    /// An attempt failed; the next one is planned, or waits for a receiver.
    Retrying,
    /// The reply came in time.
    Completed,
    /// Refused, failed by its handler, or never delivered.
    Failed,
    /// No answer in time; if anything was done, repeating it is safe.
    TimedOut,
    /// The caller gave up.
    Aborted,
    /// It may or may not have been done ([`crate::ErrorCode::OutcomeUnknown`]).
    Unknown,
}

impl RequestState {
    /// Whether the request is over.
    #[must_use]
    pub const fn terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::TimedOut | Self::Aborted | Self::Unknown
        )
    }

    /// The name used in snapshots and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sent => "sent",
            Self::Acked => "acked",
            Self::Retrying => "retrying",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Aborted => "aborted",
            Self::Unknown => "unknown",
        }
    }
}

/// Why a request is not wanted any more (rule E9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum CancelReason {
    /// The caller aborted it.
    #[n(0)]
    User,
    /// A newer request replaced it.
    #[n(1)]
    Superseded,
    /// The page goes away.
    #[n(2)]
    Navigation,
    /// Nobody waits any longer.
    #[n(3)]
    Deadline,
}

/// What the driver must do, or learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutput<T, R, K> {
    /// Send an attempt now. What to send is in [`super::RequestManager::context`].
    Send {
        /// The request; the same for all its attempts.
        correlation: CorrelationId,
        /// This attempt; its envelope's message id.
        call: CallId,
        /// The receiver.
        peer: K,
        /// 1 for the first attempt.
        attempt: u32,
        /// How long the receiver may take before nobody wants the result.
        remaining: Duration,
    },
    /// Tell a receiver, best effort, that an attempt is not wanted any more.
    Cancel {
        /// The request.
        correlation: CorrelationId,
        /// The attempt.
        call: CallId,
        /// The receiver.
        peer: K,
        /// Why.
        reason: CancelReason,
    },
    /// A request that goes on changed to [`RequestState::Acked`] or [`RequestState::Retrying`].
    Progress {
        /// The request.
        correlation: CorrelationId,
        /// Its new state.
        state: RequestState,
    },
    /// A request is over; it is out of the table. Comes exactly once for each request.
    Settled(Settled<T, R>),
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled<T, R> {
    /// The request.
    pub correlation: CorrelationId,
    /// How it ended; always terminal.
    pub state: RequestState,
    /// The reply, or why there is none.
    pub result: Result<R, Error>,
    /// The value given with the request.
    pub context: T,
    /// Attempts that were sent.
    pub attempts: u32,
    /// Waking time from request to end.
    pub age: Duration,
}

/// One row of the pending snapshot (rule E21).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    /// The request.
    pub correlation: CorrelationId,
    /// Its message type.
    pub message_type: Cow<'static, str>,
    /// Where it stands; never terminal.
    pub state: RequestState,
    /// Attempts that were sent.
    pub attempt: u32,
    /// Milliseconds of waking time since it was made.
    pub age_ms: u64,
    /// Milliseconds of waking time until its deadline.
    pub remaining_ms: u64,
}

/// What happened so far, for metrics. Counts only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounters {
    /// Attempts handed to the transport.
    pub sent: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Replies and acknowledgements for requests that were over, or for none of ours.
    pub late: u64,
    /// Replies and acknowledgements from somebody who was not asked (rule E16).
    pub foreign: u64,
    /// Requests refused because the table was full.
    pub refused: u64,
    /// Retries that the retry budget did not allow.
    pub over_budget: u64,
}

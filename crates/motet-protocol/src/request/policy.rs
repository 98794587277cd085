//! What a caller says about a request: how long, how often, and when repeating it is safe.

use core::time::Duration;
use std::borrow::Cow;

use crate::backoff::BackoffPolicy;
use crate::error::Error;

/// When a request may be sent again although an earlier attempt may have arrived (rules E3, E41).
///
/// A lost acknowledgement looks exactly like a lost request, so silence alone never allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// Only on proof that the attempt was not carried out: refused as busy, answered with an
    /// error, or never written to the transport.
    OnProof,
    /// Also on silence, to the same receiver, which drops repeats by correlation id. Not once it
    /// has acknowledged.
    SameReceiver,
    /// Also on silence, to any receiver: the request carries an idempotency key, or changes
    /// nothing.
    Anywhere,
}

/// How long and how often to try (rules E2, E6, E22).
///
/// ```
/// use core::time::Duration;
/// use motet_protocol::{BackoffPolicy, RequestPolicy};
///
/// let once = RequestPolicy::once(Duration::from_secs(2));
/// assert_eq!(once.deadline(), Duration::from_secs(2));
/// let thrice = RequestPolicy { max_attempts: 3, ..once };
/// // 3 x 2 s, and the ceilings of the two delays between them: 200 ms and 400 ms.
/// assert_eq!(thrice.deadline(), Duration::from_millis(6_600));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPolicy {
    /// How long one attempt waits for its final answer.
    pub timeout: Duration,
    /// How long one attempt waits for its ACK; `None` when the receiver sends none.
    pub ack_timeout: Option<Duration>,
    /// How long the request as a whole means anything; `None`: [`RequestPolicy::deadline`] says.
    pub deadline: Option<Duration>,
    /// Attempts in all; 0 counts as 1.
    pub max_attempts: u32,
    /// Delays between attempts.
    pub backoff: BackoffPolicy,
    /// Whether another receiver may be given the request once its receiver is gone. It then waits,
    /// until its deadline, for [`super::RequestManager::assign`].
    pub reroute: bool,
}

impl RequestPolicy {
    /// One attempt, no ACK, one receiver.
    #[must_use]
    pub const fn once(timeout: Duration) -> Self {
        Self {
            timeout,
            ack_timeout: None,
            deadline: None,
            max_attempts: 1,
            backoff: BackoffPolicy::DEFAULT,
            reroute: false,
        }
    }

    /// The deadline in force: the given one, else all attempts and the longest delays between
    /// them (rule E22).
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline.unwrap_or_else(|| {
            // Beyond 64 attempts the sum is an upper bound nobody waits for.
            let attempts = self.max_attempts.clamp(1, 64);
            (0..attempts - 1).fold(self.timeout.saturating_mul(attempts), |sum, retry| {
                sum.saturating_add(self.backoff.ceiling(retry))
            })
        })
    }
}

/// A request to be made. `T` is whatever the caller keeps beside it: its payload, its promise.
#[derive(Clone, Debug)]
pub struct Request<T, K> {
    /// The receiver; `None` leaves the request queued until [`super::RequestManager::assign`].
    pub peer: Option<K>,
    /// The message type, for the pending snapshot.
    pub message_type: Cow<'static, str>,
    /// How long and how often.
    pub policy: RequestPolicy,
    /// When repeating is safe.
    pub resend: Resend,
    /// The caller's own value; returned when the request settles.
    pub context: T,
}

/// A request that was not taken into the table: nothing was sent, the context is returned.
#[derive(Clone, Debug)]
pub struct Refused<T> {
    /// [`crate::ErrorCode::Backpressure`] or [`crate::ErrorCode::Closed`].
    pub error: Error,
    /// The request's context.
    pub context: T,
}

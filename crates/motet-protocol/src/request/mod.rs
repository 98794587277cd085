//! The pending-call table: every request that somebody waits for settles exactly once.
//!
//! Rules E1 (one correlation id, a new call id per attempt), E2 (ACK and final answer are awaited
//! apart), E3 and E41 (an unknown outcome is said to be unknown), E5 (the caller's own stall is no
//! timeout), E6 (retries by policy and typed error), E9 (cancel), E10 (bounded), E21 (states),
//! E22 (deadline), E25 (late replies).

mod call;
mod lifecycle;
mod output;
mod policy;
mod table;
mod waking;

pub use output::{
    CancelReason, PendingRequest, RequestCounters, RequestOutput, RequestState, Settled,
};
pub use policy::{Refused, Request, RequestPolicy, Resend};
pub use table::{RequestLimits, RequestManager};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

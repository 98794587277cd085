//! One pending request: its attempts and the phase it is in.

use std::borrow::Cow;

use super::output::RequestState;
use super::policy::{RequestPolicy, Resend};
use crate::backoff::Backoff;
use crate::id::CallId;
use crate::time::Instant;

/// An attempt whose outcome is not known yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<K> {
    pub(super) call: CallId,
    pub(super) peer: K,
    /// End of its own timeout, in waking time.
    pub(super) due: Instant,
    /// The receiver said that it did not take it; its error reply is awaited.
    pub(super) rejected: bool,
}

/// Where a pending request stands, with the times that matter there (waking time).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waits for a receiver or for the driver to poll; nothing was ever sent.
    Queued,
    /// The newest attempt is out.
    Sent { ack_due: Option<Instant>, due: Instant },
    /// A receiver took an attempt.
    Acked { due: Instant },
    /// Waits for its backoff.
    Retrying { at: Instant },
    /// Backoff is over; waits for a receiver or for the driver to poll.
    Resending,
}

#[derive(Clone, Debug)]
pub(super) struct Call<T, K> {
    pub(super) context: T,
    pub(super) message_type: Cow<'static, str>,
    pub(super) policy: RequestPolicy,
    pub(super) resend: Resend,
    pub(super) peer: Option<K>,
    pub(super) phase: Phase,
    /// Attempts sent so far.
    pub(super) attempt: u32,
    /// Those without a known outcome, oldest first; at most `max_attempts`.
    pub(super) open: Vec<Attempt<K>>,
    pub(super) backoff: Backoff,
    pub(super) started: Instant,
    pub(super) deadline: Instant,
    /// Its entry in the timer set.
    pub(super) timer: Instant,
    /// Whether it has an entry in the ready queue.
    pub(super) ready: bool,
}

impl<T, K: Copy + PartialEq> Call<T, K> {
    /// Whether some attempt may have been carried out.
    pub(super) fn exposed(&self) -> bool {
        self.open.iter().any(|attempt| !attempt.rejected)
    }

    pub(super) fn attempts_left(&self) -> bool {
        self.attempt < self.policy.max_attempts.max(1)
    }

    /// Whether another attempt after silence cannot do the work twice (rules E23, E41).
    pub(super) fn silence_allows_resend(&self) -> bool {
        match self.resend {
            Resend::Anywhere => true,
            Resend::SameReceiver => !matches!(self.phase, Phase::Acked { .. }),
            Resend::OnProof => !self.exposed(),
        }
    }

    /// Whether another attempt may go to somebody else than those who have one.
    pub(super) fn may_move(&self) -> bool {
        self.policy.reroute && self.attempts_left() && !self.bound_to_receiver()
    }

    /// Whether going to another receiver now could do the work twice.
    pub(super) fn bound_to_receiver(&self) -> bool {
        self.resend != Resend::Anywhere && self.exposed()
    }

    /// Where an attempt stands among the open ones.
    pub(super) fn position(&self, call: CallId) -> Option<usize> {
        self.open.iter().position(|attempt| attempt.call == call)
    }

    /// Whether this open attempt is the one whose answer the call waits for.
    pub(super) fn is_current(&self, index: usize) -> bool {
        self.in_flight() && index + 1 == self.open.len()
    }

    pub(super) fn wants_send(&self) -> bool {
        matches!(self.phase, Phase::Queued | Phase::Resending)
    }

    pub(super) fn in_flight(&self) -> bool {
        matches!(self.phase, Phase::Sent { .. } | Phase::Acked { .. })
    }

    pub(super) fn state(&self) -> RequestState {
        match self.phase {
            Phase::Queued => RequestState::Queued,
            Phase::Sent { .. } => RequestState::Sent,
            Phase::Acked { .. } => RequestState::Acked,
            Phase::Retrying { .. } | Phase::Resending => RequestState::Retrying,
        }
    }

    /// When the call wants to be looked at next, in waking time.
    pub(super) fn next_due(&self) -> Instant {
        let phase = match self.phase {
            Phase::Queued | Phase::Resending => None,
            Phase::Sent { ack_due, due } => Some(ack_due.map_or(due, |ack| ack.min(due))),
            Phase::Acked { due } => Some(due),
            Phase::Retrying { at } => Some(at),
        };
        phase.map_or(self.deadline, |due| due.min(self.deadline))
    }
}

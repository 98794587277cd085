//! What each event means for one request: go on, try again, or end.

use core::time::Duration;

use super::call::{Attempt, Phase};
use super::output::{CancelReason, RequestOutput, RequestState, Settled};
use super::policy::Resend;
use super::table::RequestManager;
use crate::error::{Error, ErrorCode};
use crate::id::{CallId, CorrelationId};

impl<T, R, K: Copy + PartialEq> RequestManager<T, R, K> {
    /// Puts a call that wants to send, and has somebody to send to, in the ready queue.
    pub(super) fn make_ready(&mut self, id: CorrelationId) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if call.wants_send() && call.peer.is_some() && !call.ready {
            call.ready = true;
            self.ready.push_back(id);
        }
    }

    /// Begins the next attempt of a call from the ready queue, if it still wants one.
    pub(super) fn start_attempt(&mut self, id: CorrelationId) -> Option<RequestOutput<T, R, K>> {
        let now = self.waking.now();
        let call = self.calls.get_mut(&id)?;
        call.ready = false;
        let peer = call.peer?;
        // At its deadline the call is left to its timer, which is due.
        if !call.wants_send() || now >= call.deadline {
            return None;
        }
        let call_id = CallId::random(&mut self.rng);
        call.attempt += 1;
        let due = now + call.policy.timeout;
        call.phase = Phase::Sent { ack_due: call.policy.ack_timeout.map(|t| now + t), due };
        call.open.push(Attempt { call: call_id, peer, due, rejected: false });
        let (attempt, remaining) = (call.attempt, call.deadline - now);
        self.counters.sent += 1;
        self.counters.retries += u64::from(attempt > 1);
        self.reschedule(id);
        Some(RequestOutput::Send { correlation: id, call: call_id, peer, attempt, remaining })
    }

    /// A receiver has the request. Ends the wait for an ACK, and a retry that was planned because
    /// the ACK did not come.
    pub(super) fn taken(&mut self, id: CorrelationId, index: usize) {
        let now = self.waking.now();
        let Some(call) = self.calls.get_mut(&id) else { return };
        let attempt = call.open[index];
        let due = match call.phase {
            Phase::Sent { due, .. } => due,
            Phase::Retrying { .. } | Phase::Resending
                if call.peer == Some(attempt.peer) && attempt.due > now =>
            {
                attempt.due
            }
            _ => return,
        };
        call.phase = Phase::Acked { due };
        self.progress(id, RequestState::Acked);
        self.reschedule(id);
    }

    /// A receiver refused the attempt; its error reply says why and is awaited.
    pub(super) fn rejected(&mut self, id: CorrelationId, index: usize) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.open[index].rejected = true;
        if let Phase::Sent { due, .. } = call.phase {
            call.phase = Phase::Sent { ack_due: None, due };
            self.reschedule(id);
        }
    }

    pub(super) fn completed(&mut self, id: CorrelationId, reply: R) {
        let Some(call) = self.calls.get(&id) else { return };
        // While late timers hold back, a reply is one that waited for the caller: in time.
        if self.waking.now() > call.deadline && !self.waking.draining() {
            let error = Error::new(ErrorCode::ReplyAfterDeadline).with_detail("completed");
            self.settle(id, RequestState::Failed, Err(error), None);
        } else {
            self.settle(id, RequestState::Completed, Ok(reply), None);
        }
    }

    /// A typed error reply. Some codes say that the answerer does not know itself.
    pub(super) fn answered_with_error(&mut self, id: CorrelationId, index: usize, error: Error) {
        if !matches!(error.code, ErrorCode::RequestTimeout | ErrorCode::OutcomeUnknown) {
            self.disproved(id, index, error, true);
            return;
        }
        let Some(call) = self.calls.get(&id) else { return };
        if !call.is_current(index) {
            return;
        }
        let repeatable = call.resend == Resend::Anywhere;
        if repeatable && self.retry(id, &error) {
            return;
        }
        if repeatable && error.code == ErrorCode::RequestTimeout {
            self.settle(id, RequestState::TimedOut, Err(error), None);
        } else {
            self.settle(id, RequestState::Unknown, Err(unknown_outcome(error)), None);
        }
    }

    /// An attempt is known not to be running. `answered` tells a receiver's answer, which speaks
    /// for all attempts it was sent, from a transport's report about one of them.
    pub(super) fn disproved(
        &mut self,
        id: CorrelationId,
        index: usize,
        error: Error,
        answered: bool,
    ) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let current = call.is_current(index);
        let failed = call.open.remove(index);
        if error.retryable() {
            if !current || self.retry(id, &error) {
                return;
            }
        } else {
            if answered {
                call.open.retain(|attempt| attempt.peer != failed.peer);
            }
            let elsewhere = call.peer.is_some_and(|peer| peer != failed.peer);
            if elsewhere || (!answered && !current) {
                return;
            }
        }
        self.end_without_answer(id, error, None);
    }

    /// The receiver or the way to it is gone.
    pub(super) fn lose_receiver(&mut self, id: CorrelationId, code: ErrorCode) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if !call.may_move() {
            self.end_without_answer(id, Error::new(code), None);
            return;
        }
        call.peer = None;
        if call.in_flight() {
            call.phase = Phase::Resending;
            self.progress(id, RequestState::Retrying);
            self.reschedule(id);
        }
    }

    /// A timer of this call is due.
    pub(super) fn expire(&mut self, id: CorrelationId) {
        let now = self.waking.now();
        // Anything else would be due for ever.
        let call = self.calls.get_mut(&id).expect("a timer has its call");
        if now >= call.deadline {
            self.give_up(id);
            return;
        }
        match call.phase {
            Phase::Retrying { .. } => {
                call.phase = Phase::Resending;
                self.reschedule(id);
                self.make_ready(id);
            }
            Phase::Sent { .. } | Phase::Acked { .. } => {
                let silence = Error::new(ErrorCode::RequestTimeout);
                if !call.silence_allows_resend() || !self.retry(id, &silence) {
                    self.give_up(id);
                }
            }
            Phase::Queued | Phase::Resending => self.reschedule(id),
        }
    }

    /// Plans the next attempt after `error`, if attempts, deadline and budget allow it.
    fn retry(&mut self, id: CorrelationId, error: &Error) -> bool {
        let now = self.waking.now();
        let Some(call) = self.calls.get_mut(&id) else { return false };
        if !call.attempts_left() {
            return false;
        }
        let after = error.retry_after_ms.map(|ms| Duration::from_millis(u64::from(ms)));
        let at = now + call.backoff.next(&mut self.rng, after);
        if at >= call.deadline {
            return false;
        }
        if !self.budget.take(now) {
            self.counters.over_budget += 1;
            return false;
        }
        call.phase = Phase::Retrying { at };
        self.progress(id, RequestState::Retrying);
        self.reschedule(id);
        true
    }

    /// Nobody answered in time.
    fn give_up(&mut self, id: CorrelationId) {
        let Some(call) = self.calls.get(&id) else { return };
        let timeout = Error::new(ErrorCode::RequestTimeout);
        let (state, error) = if call.exposed() && call.resend != Resend::Anywhere {
            (RequestState::Unknown, unknown_outcome(timeout))
        } else {
            (RequestState::TimedOut, timeout)
        };
        self.settle(id, state, Err(error), Some(CancelReason::Deadline));
    }

    /// Ends a call for `error`, unless an attempt of it may have been carried out: then the truth
    /// is that the outcome is unknown.
    pub(super) fn end_without_answer(
        &mut self,
        id: CorrelationId,
        error: Error,
        cancel: Option<CancelReason>,
    ) {
        let Some(call) = self.calls.get(&id) else { return };
        if call.exposed() {
            self.settle(id, RequestState::Unknown, Err(unknown_outcome(error)), cancel);
        } else {
            self.settle(id, RequestState::Failed, Err(error), cancel);
        }
    }

    /// Takes a call out of the table, with all that belongs to it, and reports its end.
    pub(super) fn settle(
        &mut self,
        id: CorrelationId,
        state: RequestState,
        result: Result<R, Error>,
        cancel: Option<CancelReason>,
    ) {
        let Some(call) = self.calls.remove(&id) else { return };
        assert!(state.terminal(), "a request ends in a terminal state");
        self.timers.remove(&(call.timer, id));
        if call.ready {
            self.ready.retain(|ready| *ready != id);
        }
        if self.calls.is_empty() {
            self.waking.settle();
        }
        if let Some(reason) = cancel {
            for Attempt { call, peer, .. } in call.open.iter().filter(|a| !a.rejected).copied() {
                self.outputs.push_back(RequestOutput::Cancel {
                    correlation: id,
                    call,
                    peer,
                    reason,
                });
            }
        }
        self.unread += 1;
        self.outputs.push_back(RequestOutput::Settled(Settled {
            correlation: id,
            state,
            result,
            context: call.context,
            attempts: call.attempt,
            age: self.waking.now() - call.started,
        }));
    }

    fn progress(&mut self, correlation: CorrelationId, state: RequestState) {
        self.outputs.push_back(RequestOutput::Progress { correlation, state });
    }

    /// Moves the call's timer to where its phase wants it.
    fn reschedule(&mut self, id: CorrelationId) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let due = call.next_due();
        if due != call.timer {
            self.timers.remove(&(call.timer, id));
            self.timers.insert((due, id));
            call.timer = due;
        }
    }
}

/// [`ErrorCode::OutcomeUnknown`], naming what ended the wait.
fn unknown_outcome(cause: Error) -> Error {
    if cause.code == ErrorCode::OutcomeUnknown {
        return cause;
    }
    Error::new(ErrorCode::OutcomeUnknown).with_detail(cause.code.name())
}

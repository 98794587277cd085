//! One test per rule; the table is driven by hand, with every instant spelled out.

use core::time::Duration;

use super::*;
use crate::ack::{Ack, AckStatus};
use crate::error::{Error, ErrorCode};
use crate::id::{CallId, CorrelationId};
use crate::rng::Rng;
use crate::time::Instant;

const A: u32 = 1;
const B: u32 = 2;

type Output = RequestOutput<&'static str, u32, u32>;

/// A table and its driver's clock.
struct Driver {
    table: RequestManager<&'static str, u32, u32>,
    now: Instant,
}

/// An attempt as it was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    correlation: CorrelationId,
    call: CallId,
    peer: u32,
    attempt: u32,
    remaining: Duration,
}

impl Driver {
    fn new() -> Self {
        Self::with(RequestLimits::default())
    }

    fn with(limits: RequestLimits) -> Self {
        let rng = Rng::from_seed([11; 32]);
        Self { table: RequestManager::new(limits, rng, Instant::ZERO), now: Instant::ZERO }
    }

    fn ask(&mut self, policy: RequestPolicy, resend: Resend) -> Result<CorrelationId, ErrorCode> {
        let request = request(Some(A), policy, resend);
        self.table.request(self.now, request).map_err(|refused| refused.error.code)
    }

    /// Makes a request and takes its first attempt.
    fn send(&mut self, policy: RequestPolicy, resend: Resend) -> Sent {
        self.ask(policy, resend).unwrap();
        self.sent()
    }

    /// The next output, which must be an attempt.
    fn sent(&mut self) -> Sent {
        match self.table.poll_output() {
            Some(Output::Send { correlation, call, peer, attempt, remaining }) => {
                Sent { correlation, call, peer, attempt, remaining }
            }
            other => panic!("no attempt to send: {other:?}"),
        }
    }

    /// The next output, which must be progress.
    fn progress(&mut self) -> RequestState {
        match self.table.poll_output() {
            Some(Output::Progress { state, .. }) => state,
            other => panic!("no progress: {other:?}"),
        }
    }

    /// Takes all outputs; the last must be an end.
    fn settled(&mut self) -> (RequestState, Result<u32, ErrorCode>) {
        let outputs: Vec<_> = core::iter::from_fn(|| self.table.poll_output()).collect();
        match outputs.into_iter().next_back() {
            Some(Output::Settled(end)) => (end.state, end.result.map_err(|error| error.code)),
            other => panic!("nothing settled: {other:?}"),
        }
    }

    fn idle(&mut self) {
        assert_eq!(self.table.poll_output(), None);
    }

    /// Runs on for `duration`, firing each timer exactly when it is due.
    fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(due) = self.table.next_timeout().filter(|due| *due <= end) {
            self.now = due.max(self.now);
            self.table.handle_timeout(self.now);
        }
        self.now = end;
        self.table.handle_timeout(end);
    }

    fn ack(&mut self, sent: Sent, status: AckStatus) {
        let ack = Ack::new(status, sent.call);
        self.table.acked(self.now, sent.peer, sent.correlation, sent.call, &ack);
    }

    fn reply(&mut self, sent: Sent, result: Result<u32, ErrorCode>) {
        let result = result.map_err(Error::new);
        self.table.reply(self.now, sent.peer, sent.correlation, sent.call, result);
    }
}

fn request(peer: Option<u32>, policy: RequestPolicy, resend: Resend) -> Request<&'static str, u32> {
    Request { peer, message_type: "test.call.command".into(), policy, resend, context: "mine" }
}

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn once() -> RequestPolicy {
    RequestPolicy::once(2 * SECOND)
}

fn thrice() -> RequestPolicy {
    RequestPolicy { max_attempts: 3, ..once() }
}

fn acked_within(timeout: Duration, policy: RequestPolicy) -> RequestPolicy {
    RequestPolicy { ack_timeout: Some(timeout), ..policy }
}

// E1, E21: identities and states.

#[test]
fn a_retry_keeps_the_correlation_id_and_draws_a_new_call_id() {
    let mut driver = Driver::new();
    let first = driver.send(thrice(), Resend::Anywhere);
    driver.run(2 * SECOND);
    assert_eq!(driver.progress(), RequestState::Retrying);
    driver.run(200 * MS);
    let second = driver.sent();
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!(first.correlation, second.correlation);
    assert_ne!(first.call, second.call);
    assert!(second.remaining < first.remaining);
}

#[test]
fn the_snapshot_shows_type_state_attempt_age_and_rest_and_changes_nothing() {
    let mut driver = Driver::new();
    let id = driver.ask(once(), Resend::Anywhere).unwrap();
    assert_eq!(driver.table.pending(driver.now)[0].state, RequestState::Queued);
    let sent = driver.sent();
    driver.run(500 * MS);
    driver.ack(sent, AckStatus::Accepted);
    let due = driver.table.next_timeout();
    let rows = driver.table.pending(driver.now + 100 * MS);
    let row = PendingRequest {
        correlation: id,
        message_type: "test.call.command".into(),
        state: RequestState::Acked,
        attempt: 1,
        age_ms: 600,
        remaining_ms: 1_400,
    };
    assert_eq!(rows, [row]);
    assert_eq!(driver.table.next_timeout(), due);
}

#[test]
fn the_context_comes_back_with_the_end_and_nothing_remains() {
    let mut driver = Driver::new();
    let sent = driver.send(once(), Resend::OnProof);
    assert_eq!(driver.table.context(sent.correlation), Some(&"mine"));
    driver.reply(sent, Ok(5));
    let Some(Output::Settled(end)) = driver.table.poll_output() else { panic!("not over") };
    assert_eq!((end.context, end.result, end.attempts), ("mine", Ok(5), 1));
    assert!(driver.table.is_empty());
    assert_eq!(driver.table.next_timeout(), None);
}

// E2: ACK.

#[test]
fn an_ack_ends_the_ack_timeout_and_not_the_final_one() {
    let mut driver = Driver::new();
    let sent = driver.send(acked_within(500 * MS, once()), Resend::OnProof);
    driver.run(400 * MS);
    driver.ack(sent, AckStatus::Queued);
    assert_eq!(driver.progress(), RequestState::Acked);
    driver.run(1_500 * MS);
    driver.idle();
    driver.run(100 * MS);
    assert_eq!(driver.settled(), (RequestState::Unknown, Err(ErrorCode::OutcomeUnknown)));
}

#[test]
fn an_ack_after_the_reply_is_ignored_and_counted() {
    let mut driver = Driver::new();
    let sent = driver.send(acked_within(SECOND, once()), Resend::OnProof);
    driver.reply(sent, Ok(1));
    driver.ack(sent, AckStatus::Accepted);
    assert_eq!(driver.settled(), (RequestState::Completed, Ok(1)));
    assert_eq!(driver.table.counters().late, 1);
    assert!(driver.table.is_empty());
}

#[test]
fn a_late_ack_calls_off_the_retry_it_makes_needless() {
    let mut driver = Driver::new();
    let sent = driver.send(acked_within(500 * MS, thrice()), Resend::Anywhere);
    driver.run(500 * MS);
    assert_eq!(driver.progress(), RequestState::Retrying);
    driver.ack(sent, AckStatus::Accepted);
    assert_eq!(driver.progress(), RequestState::Acked);
    driver.run(SECOND);
    driver.idle();
    driver.reply(sent, Ok(2));
    assert_eq!(driver.settled(), (RequestState::Completed, Ok(2)));
}

#[test]
fn a_busy_receiver_is_left_alone_for_the_time_it_names() {
    let mut driver = Driver::new();
    let policy = RequestPolicy { deadline: Some(20 * SECOND), ..thrice() };
    let sent = driver.send(policy, Resend::OnProof);
    let busy = Ack::busy(sent.call, 3_000);
    driver.table.acked(driver.now, A, sent.correlation, sent.call, &busy);
    assert_eq!(driver.progress(), RequestState::Retrying);
    driver.run(2_999 * MS);
    driver.idle();
    driver.run(201 * MS);
    assert_eq!(driver.sent().attempt, 2);
}

#[test]
fn a_busy_receiver_without_attempts_left_is_resource_busy_with_its_delay() {
    let mut driver = Driver::new();
    let sent = driver.send(once(), Resend::OnProof);
    driver.ack(sent, AckStatus::Busy);
    let Some(Output::Settled(end)) = driver.table.poll_output() else { panic!("not over") };
    let error = end.result.unwrap_err();
    assert_eq!((error.code, error.retry_after_ms), (ErrorCode::ResourceBusy, Some(1_000)));
    assert_eq!(end.state, RequestState::Failed);
}

#[test]
fn a_rejected_attempt_waits_for_the_error_that_says_why() {
    let mut driver = Driver::new();
    let sent = driver.send(acked_within(500 * MS, once()), Resend::OnProof);
    driver.ack(sent, AckStatus::Rejected);
    driver.run(SECOND);
    driver.idle();
    driver.reply(sent, Err(ErrorCode::UnsupportedSchema));
    assert_eq!(driver.settled(), (RequestState::Failed, Err(ErrorCode::UnsupportedSchema)));
}

// E3, E23, E41: what silence and loss mean.

#[test]
fn silence_without_a_key_is_an_unknown_outcome_and_is_never_resent() {
    let mut driver = Driver::new();
    driver.send(thrice(), Resend::OnProof);
    driver.run(2 * SECOND);
    assert_eq!(driver.settled(), (RequestState::Unknown, Err(ErrorCode::OutcomeUnknown)));
    assert_eq!(driver.table.counters().sent, 1);
}

#[test]
fn silence_with_a_key_is_retried_until_the_attempts_are_used_up() {
    let mut driver = Driver::new();
    driver.send(thrice(), Resend::Anywhere);
    for _ in 0..2 {
        driver.run(2 * SECOND);
        assert_eq!(driver.progress(), RequestState::Retrying);
        driver.run(400 * MS);
        driver.sent();
    }
    driver.run(2 * SECOND);
    assert_eq!(driver.settled(), (RequestState::TimedOut, Err(ErrorCode::RequestTimeout)));
    assert_eq!(driver.table.counters().sent, 3);
}

#[test]
fn a_receiver_that_drops_repeats_is_asked_again_only_before_its_ack() {
    let mut driver = Driver::new();
    driver.send(acked_within(500 * MS, thrice()), Resend::SameReceiver);
    driver.run(500 * MS);
    assert_eq!(driver.progress(), RequestState::Retrying);
    driver.run(200 * MS);
    let second = driver.sent();
    driver.ack(second, AckStatus::Duplicate);
    assert_eq!(driver.progress(), RequestState::Acked);
    driver.run(2 * SECOND);
    assert_eq!(driver.settled(), (RequestState::Unknown, Err(ErrorCode::OutcomeUnknown)));
}

#[test]
fn a_receiver_that_dies_with_the_work_leaves_an_unknown_outcome() {
    let mut driver = Driver::new();
    driver.send(thrice(), Resend::OnProof);
    driver.table.peer_gone(driver.now, A);
    assert_eq!(driver.settled(), (RequestState::Unknown, Err(ErrorCode::OutcomeUnknown)));
}

#[test]
fn a_receiver_that_dies_before_anything_was_sent_is_peer_gone() {
    let mut driver = Driver::new();
    driver.ask(once(), Resend::OnProof).unwrap();
    driver.table.peer_gone(driver.now, A);
    assert_eq!(driver.settled(), (RequestState::Failed, Err(ErrorCode::PeerGone)));
    assert!(driver.table.is_empty());
}

#[test]
fn a_request_with_a_key_moves_to_the_next_receiver_when_its_own_dies() {
    let mut driver = Driver::new();
    let policy = RequestPolicy { reroute: true, ..thrice() };
    let first = driver.send(policy, Resend::Anywhere);
    driver.table.peer_gone(driver.now, A);
    assert_eq!(driver.progress(), RequestState::Retrying);
    driver.idle();
    let waiting: Vec<_> = driver.table.unassigned().map(|(id, _)| id).collect();
    assert_eq!(waiting, [first.correlation]);
    assert!(driver.table.assign(driver.now, first.correlation, B));
    let second = driver.sent();
    assert_eq!((second.peer, second.attempt), (B, 2));
    driver.reply(second, Ok(3));
    assert_eq!(driver.settled(), (RequestState::Completed, Ok(3)));
}

#[test]
fn a_request_without_a_key_never_moves_once_it_was_sent() {
    let mut driver = Driver::new();
    let policy = RequestPolicy { reroute: true, ..thrice() };
    let sent = driver.send(policy, Resend::SameReceiver);
    driver.run(2 * SECOND);
    assert_eq!(driver.progress(), RequestState::Retrying);
    assert!(!driver.table.assign(driver.now, sent.correlation, B));
    driver.table.peer_gone(driver.now, A);
    assert_eq!(driver.settled(), (RequestState::Unknown, Err(ErrorCode::OutcomeUnknown)));
}

#[test]
fn a_request_waits_for_a_receiver_until_its_deadline() {
    let mut driver = Driver::new();
    let request = request(None, once(), Resend::OnProof);
    driver.table.request(driver.now, request).unwrap();
    driver.idle();
    driver.run(2 * SECOND);
    assert_eq!(driver.settled(), (RequestState::TimedOut, Err(ErrorCode::RequestTimeout)));
}

#[test]
fn what_the_transport_never_wrote_is_sent_again_without_a_key() {
    let mut driver = Driver::new();
    let sent = driver.send(thrice(), Resend::OnProof);
    let error = Error::new(ErrorCode::TransportUnavailable);
    driver.table.undelivered(driver.now, sent.correlation, sent.call, error);
    assert_eq!(driver.progress(), RequestState::Retrying);
    driver.run(200 * MS);
    assert_eq!(driver.sent().attempt, 2);
}

#[test]
fn a_closed_transport_settles_what_was_written_as_unknown_and_the_rest_as_unavailable() {
    let mut driver = Driver::new();
    driver.send(once(), Resend::OnProof);
    driver.table.transport_closed(driver.now);
    assert_eq!(driver.settled(), (RequestState::Unknown, Err(ErrorCode::OutcomeUnknown)));
    driver.ask(once(), Resend::OnProof).unwrap();
    driver.table.transport_closed(driver.now);
    assert_eq!(driver.settled(), (RequestState::Failed, Err(ErrorCode::TransportUnavailable)));
}

#[test]
fn a_refusal_by_the_second_receiver_does_not_hide_what_the_first_may_have_done() {
    let mut driver = Driver::new();
    let policy = RequestPolicy { reroute: true, ..thrice() };
    let first = driver.send(policy, Resend::Anywhere);
    driver.table.peer_gone(driver.now, A);
    assert_eq!(driver.progress(), RequestState::Retrying);
    driver.table.assign(driver.now, first.correlation, B);
    let second = driver.sent();
    driver.reply(second, Err(ErrorCode::HandlerFailed));
    assert_eq!(driver.settled(), (RequestState::Unknown, Err(ErrorCode::OutcomeUnknown)));
}

// E5, E22, E25: time (bug cases R16, R17, T1).

#[test]
fn a_frozen_caller_does_not_time_out_a_healthy_receiver() {
    let mut driver = Driver::new();
    let sent = driver.send(once(), Resend::OnProof);
    driver.now += 600 * SECOND;
    driver.table.handle_timeout(driver.now);
    driver.idle();
    driver.reply(sent, Ok(4));
    assert_eq!(driver.settled(), (RequestState::Completed, Ok(4)));
}

#[test]
fn a_caller_that_was_busy_for_less_than_a_stall_drains_replies_before_timers() {
    let mut driver = Driver::new();
    let sent = driver.send(once(), Resend::OnProof);
    driver.run(1_500 * MS);
    driver.now += 900 * MS;
    driver.table.handle_timeout(driver.now);
    driver.idle();
    driver.reply(sent, Ok(4));
    assert_eq!(driver.settled(), (RequestState::Completed, Ok(4)));
}

#[test]
fn timers_that_run_once_a_minute_still_end_a_call_that_nobody_answers() {
    let mut driver = Driver::new();
    driver.send(once(), Resend::OnProof);
    for _ in 0..10 {
        driver.now += 60 * SECOND;
        driver.table.handle_timeout(driver.now);
    }
    assert_eq!(driver.settled(), (RequestState::Unknown, Err(ErrorCode::OutcomeUnknown)));
    assert!(driver.table.is_empty());
}

#[test]
fn a_late_reply_is_counted_and_never_applied() {
    let mut driver = Driver::new();
    let sent = driver.send(once(), Resend::Anywhere);
    driver.run(2 * SECOND);
    assert_eq!(driver.settled().0, RequestState::TimedOut);
    driver.reply(sent, Ok(9));
    driver.idle();
    assert_eq!(driver.table.counters().late, 1);
}

#[test]
fn a_reply_past_the_deadline_says_that_the_work_completed_and_is_not_applied() {
    let mut driver = Driver::new();
    let sent = driver.send(once(), Resend::Anywhere);
    driver.run(1_999 * MS);
    driver.now += 5 * MS;
    driver.reply(sent, Ok(9));
    let Some(Output::Settled(end)) = driver.table.poll_output() else { panic!("not over") };
    let error = end.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::ReplyAfterDeadline);
    assert_eq!(error.detail.as_deref(), Some("completed"));
}

#[test]
fn a_reply_to_an_earlier_attempt_ends_the_request() {
    let mut driver = Driver::new();
    let first = driver.send(thrice(), Resend::Anywhere);
    driver.run(2_200 * MS);
    assert_eq!(driver.progress(), RequestState::Retrying);
    driver.sent();
    driver.reply(first, Ok(6));
    assert_eq!(driver.settled(), (RequestState::Completed, Ok(6)));
}

#[test]
fn the_deadline_ends_a_request_that_has_attempts_left() {
    let mut driver = Driver::new();
    let policy = RequestPolicy { deadline: Some(3 * SECOND), ..thrice() };
    driver.send(policy, Resend::Anywhere);
    driver.run(2_200 * MS);
    assert_eq!(driver.progress(), RequestState::Retrying);
    assert!(driver.sent().remaining < SECOND);
    driver.run(SECOND);
    assert_eq!(driver.settled(), (RequestState::TimedOut, Err(ErrorCode::RequestTimeout)));
}

// E6, E10: retries and bounds.

#[test]
fn a_final_error_is_never_retried() {
    let final_codes = ErrorCode::ALL.iter().filter(|code| !code.info().retryable);
    for code in final_codes.filter(|code| **code != ErrorCode::OutcomeUnknown) {
        let mut driver = Driver::new();
        let sent = driver.send(thrice(), Resend::Anywhere);
        driver.reply(sent, Err(*code));
        assert_eq!(driver.settled(), (RequestState::Failed, Err(*code)));
    }
}

#[test]
fn a_retryable_error_is_retried_even_without_a_key_because_it_says_nothing_was_done() {
    let mut driver = Driver::new();
    let sent = driver.send(thrice(), Resend::OnProof);
    driver.reply(sent, Err(ErrorCode::RateLimited));
    assert_eq!(driver.progress(), RequestState::Retrying);
    driver.run(200 * MS);
    let second = driver.sent();
    driver.reply(second, Ok(1));
    assert_eq!(driver.settled(), (RequestState::Completed, Ok(1)));
}

#[test]
fn an_intermediary_that_timed_out_proves_nothing() {
    let mut driver = Driver::new();
    let sent = driver.send(thrice(), Resend::OnProof);
    driver.reply(sent, Err(ErrorCode::RequestTimeout));
    assert_eq!(driver.settled(), (RequestState::Unknown, Err(ErrorCode::OutcomeUnknown)));
}

#[test]
fn an_empty_retry_budget_ends_the_request_with_its_own_error() {
    let limits = RequestLimits { retry_burst: 1, ..RequestLimits::default() };
    let mut driver = Driver::with(limits);
    let first = driver.send(thrice(), Resend::OnProof);
    let second = driver.send(thrice(), Resend::OnProof);
    driver.reply(first, Err(ErrorCode::RateLimited));
    assert_eq!(driver.progress(), RequestState::Retrying);
    driver.reply(second, Err(ErrorCode::RateLimited));
    assert_eq!(driver.settled(), (RequestState::Failed, Err(ErrorCode::RateLimited)));
    assert_eq!(driver.table.counters().over_budget, 1);
}

#[test]
fn a_full_table_refuses_with_backpressure_and_counts_unread_ends() {
    let mut driver = Driver::with(RequestLimits { max_pending: 2, ..RequestLimits::default() });
    let first = driver.ask(once(), Resend::OnProof).unwrap();
    driver.ask(once(), Resend::OnProof).unwrap();
    assert_eq!(driver.ask(once(), Resend::OnProof), Err(ErrorCode::Backpressure));
    driver.table.abort(driver.now, first, CancelReason::User);
    assert_eq!(driver.ask(once(), Resend::OnProof), Err(ErrorCode::Backpressure));
    assert!(matches!(driver.table.poll_output(), Some(Output::Settled(_))));
    assert!(driver.ask(once(), Resend::OnProof).is_ok());
    assert_eq!(driver.table.counters().refused, 2);
}

// E9, E16, and the end (bug cases R1 and R7: no call is left hanging by a release or a death).

#[test]
fn an_abort_tells_the_receiver_and_settles_at_once() {
    let mut driver = Driver::new();
    let sent = driver.send(once(), Resend::OnProof);
    assert!(driver.table.abort(driver.now, sent.correlation, CancelReason::Superseded));
    let cancel = Output::Cancel {
        correlation: sent.correlation,
        call: sent.call,
        peer: A,
        reason: CancelReason::Superseded,
    };
    assert_eq!(driver.table.poll_output(), Some(cancel));
    assert_eq!(driver.settled(), (RequestState::Aborted, Err(ErrorCode::Aborted)));
    assert!(!driver.table.abort(driver.now, sent.correlation, CancelReason::User));
}

#[test]
fn an_abort_before_sending_sends_nothing() {
    let mut driver = Driver::new();
    let id = driver.ask(once(), Resend::OnProof).unwrap();
    driver.table.abort(driver.now, id, CancelReason::User);
    assert_eq!(driver.settled().0, RequestState::Aborted);
    assert_eq!(driver.table.counters().sent, 0);
    assert!(driver.table.is_empty());
}

#[test]
fn an_answer_from_somebody_who_was_not_asked_is_dropped_and_counted() {
    let mut driver = Driver::new();
    let sent = driver.send(once(), Resend::OnProof);
    driver.reply(Sent { peer: B, ..sent }, Ok(66));
    driver.ack(Sent { peer: B, ..sent }, AckStatus::Accepted);
    driver.idle();
    assert_eq!(driver.table.counters().foreign, 2);
    driver.reply(sent, Ok(1));
    assert_eq!(driver.settled(), (RequestState::Completed, Ok(1)));
}

#[test]
fn a_freeze_settles_what_was_sent_as_unknown_and_the_rest_as_suspended() {
    let mut driver = Driver::new();
    driver.send(once(), Resend::Anywhere);
    driver.table.settle_all(driver.now, ErrorCode::Suspended);
    assert_eq!(driver.settled(), (RequestState::Unknown, Err(ErrorCode::OutcomeUnknown)));
    driver.ask(once(), Resend::Anywhere).unwrap();
    driver.table.settle_all(driver.now, ErrorCode::Suspended);
    assert_eq!(driver.settled(), (RequestState::Failed, Err(ErrorCode::Suspended)));
}

#[test]
fn after_close_nothing_remains_and_nothing_is_taken() {
    let mut driver = Driver::new();
    driver.send(thrice(), Resend::Anywhere);
    driver.ask(once(), Resend::OnProof).unwrap();
    driver.table.close(driver.now);
    assert_eq!(driver.settled(), (RequestState::Failed, Err(ErrorCode::Closed)));
    assert!(driver.table.is_empty());
    assert_eq!(driver.table.next_timeout(), None);
    assert_eq!(driver.ask(once(), Resend::OnProof), Err(ErrorCode::Closed));
}

//! The table itself: what may happen to requests, and what comes out.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::call::{Attempt, Call, Phase};
use super::output::{CancelReason, PendingRequest, RequestCounters, RequestOutput, RequestState};
use super::policy::{Refused, Request};
use super::waking::Waking;
use crate::ack::{Ack, AckStatus, BUSY_RETRY_AFTER};
use crate::backoff::Backoff;
use crate::budget::RetryBudget;
use crate::error::{Error, ErrorCode};
use crate::id::{CallId, CorrelationId, NodeId};
use crate::rng::Rng;
use crate::time::Instant;

/// Bounds of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Requests that may be pending, or settled and not yet polled (rule E10).
    pub max_pending: usize,
    /// Retries that all requests together may start in a burst (rule E6).
    pub retry_burst: u32,
    /// Time after which one more retry is allowed.
    pub retry_refill: Duration,
}

impl Default for RequestLimits {
    /// 100 pending; bursts of 100 retries, then 10 a second.
    fn default() -> Self {
        Self { max_pending: 100, retry_burst: 100, retry_refill: Duration::from_millis(100) }
    }
}

/// The table of pending requests of one context.
///
/// `T` is kept beside each request and returned with its end; `R` is the reply; `K` names a
/// receiver for as long as it lives. Every event is a method that takes the driver's `now`; after
/// each, take [`RequestManager::poll_output`] until it is `None`, and call
/// [`RequestManager::handle_timeout`] at [`RequestManager::next_timeout`].
///
/// ```
/// use core::time::Duration;
/// use motet_protocol::{
///     Instant, NodeId, Request, RequestManager, RequestOutput, RequestPolicy, RequestState,
///     Resend, Rng,
/// };
///
/// let now = Instant::ZERO;
/// let mut rng = Rng::from_seed([7; 32]);
/// let peer = NodeId::random(&mut rng);
/// let mut requests = RequestManager::new(Default::default(), rng, now);
/// requests.request(now, Request {
///     peer: Some(peer),
///     message_type: "price.quote.query".into(),
///     policy: RequestPolicy::once(Duration::from_secs(2)),
///     resend: Resend::Anywhere,
///     context: "the caller's promise",
/// }).unwrap();
///
/// let Some(RequestOutput::Send { correlation, call, .. }) = requests.poll_output() else {
///     panic!("an attempt is to be sent");
/// };
/// requests.reply(now, peer, correlation, call, Ok(42));
/// let Some(RequestOutput::Settled(settled)) = requests.poll_output() else {
///     panic!("the request is over");
/// };
/// assert_eq!((settled.state, settled.result), (RequestState::Completed, Ok(42)));
/// assert!(requests.is_empty());
/// ```
#[derive(Debug)]
pub struct RequestManager<T, R, K = NodeId> {
    pub(super) rng: Rng,
    pub(super) waking: Waking,
    pub(super) calls: BTreeMap<CorrelationId, Call<T, K>>,
    /// One entry per call: (waking time, call).
    pub(super) timers: BTreeSet<(Instant, CorrelationId)>,
    /// Calls with a receiver whose next attempt may be sent.
    pub(super) ready: VecDeque<CorrelationId>,
    pub(super) outputs: VecDeque<RequestOutput<T, R, K>>,
    /// Settled requests among `outputs`; they count against the bound.
    pub(super) unread: usize,
    pub(super) budget: RetryBudget,
    pub(super) counters: RequestCounters,
    max_pending: usize,
    closed: bool,
}

impl<T, R, K: Copy + PartialEq> RequestManager<T, R, K> {
    /// An empty table.
    #[must_use]
    pub fn new(limits: RequestLimits, rng: Rng, now: Instant) -> Self {
        Self {
            rng,
            waking: Waking::new(now),
            calls: BTreeMap::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            outputs: VecDeque::new(),
            unread: 0,
            budget: RetryBudget::new(limits.retry_burst, limits.retry_refill),
            counters: RequestCounters::default(),
            max_pending: limits.max_pending,
            closed: false,
        }
    }

    /// Takes a request; its first attempt comes out of [`Self::poll_output`] as soon as it has a
    /// receiver.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Backpressure`] when the table is full, [`ErrorCode::Closed`] after
    /// [`Self::close`]. Nothing was sent, and the context is handed back.
    pub fn request(
        &mut self,
        now: Instant,
        request: Request<T, K>,
    ) -> Result<CorrelationId, Refused<T>> {
        self.advance(now);
        let refusal = if self.closed {
            Some(ErrorCode::Closed)
        } else if self.calls.len() + self.unread >= self.max_pending {
            Some(ErrorCode::Backpressure)
        } else {
            None
        };
        if let Some(code) = refusal {
            self.counters.refused += 1;
            return Err(Refused { error: Error::new(code), context: request.context });
        }
        let id = CorrelationId::random(&mut self.rng);
        let started = self.waking.now();
        let deadline = started + request.policy.deadline();
        let call = Call {
            context: request.context,
            message_type: request.message_type,
            policy: request.policy,
            resend: request.resend,
            peer: request.peer,
            phase: Phase::Queued,
            attempt: 0,
            open: Vec::new(),
            backoff: Backoff::new(request.policy.backoff),
            started,
            deadline,
            timer: deadline,
            ready: false,
        };
        self.timers.insert((deadline, id));
        let previous = self.calls.insert(id, call);
        assert!(previous.is_none(), "a random correlation id was drawn twice");
        self.make_ready(id);
        Ok(id)
    }

    /// Names the receiver of a request that waits for one, or of one that was not sent yet.
    ///
    /// Returns `false`, and changes nothing, when the request is over, is in flight, or must not go
    /// to another receiver than before.
    pub fn assign(&mut self, now: Instant, correlation: CorrelationId, peer: K) -> bool {
        self.advance(now);
        let Some(call) = self.calls.get_mut(&correlation) else { return false };
        let stays = call.peer.is_some_and(|old| old == peer);
        if call.in_flight() || (!stays && call.bound_to_receiver()) {
            return false;
        }
        call.peer = Some(peer);
        self.make_ready(correlation);
        true
    }

    /// Requests that wait for [`Self::assign`], with their contexts.
    pub fn unassigned(&self) -> impl Iterator<Item = (CorrelationId, &T)> {
        self.calls
            .iter()
            .filter(|(_, call)| call.peer.is_none())
            .map(|(id, call)| (*id, &call.context))
    }

    /// A receiver acknowledged an attempt (rule E2). An ACK after the end is counted and ignored.
    pub fn acked(
        &mut self,
        now: Instant,
        from: K,
        correlation: CorrelationId,
        call: CallId,
        ack: &Ack,
    ) {
        self.advance(now);
        let Some(index) = self.find(from, correlation, call) else { return };
        match ack.status {
            AckStatus::Accepted | AckStatus::Queued | AckStatus::Duplicate => {
                self.taken(correlation, index);
            }
            AckStatus::Busy => {
                let busy = BUSY_RETRY_AFTER.as_millis() as u32;
                let mut error = Error::new(ErrorCode::ResourceBusy);
                error.retry_after_ms = Some(ack.retry_after_ms.unwrap_or(busy));
                self.disproved(correlation, index, error, false);
            }
            AckStatus::Rejected => self.rejected(correlation, index),
        }
    }

    /// A receiver answered an attempt, with the reply or a typed error.
    ///
    /// Answers to earlier attempts of a pending request count; answers for a request that is over
    /// are counted and never applied; so are answers from anybody who was not asked (rule E16).
    pub fn reply(
        &mut self,
        now: Instant,
        from: K,
        correlation: CorrelationId,
        call: CallId,
        result: Result<R, Error>,
    ) {
        self.advance(now);
        let Some(index) = self.find(from, correlation, call) else { return };
        match result {
            Ok(reply) => self.completed(correlation, reply),
            Err(error) => self.answered_with_error(correlation, index, error),
        }
    }

    /// The transport proves that it never wrote an attempt, so sending it again is safe.
    pub fn undelivered(
        &mut self,
        now: Instant,
        correlation: CorrelationId,
        call: CallId,
        error: Error,
    ) {
        self.advance(now);
        let found = self.calls.get(&correlation).and_then(|c| c.position(call));
        if let Some(index) = found {
            self.disproved(correlation, index, error, false);
        }
    }

    /// The caller gives up: the request settles as aborted, and receivers are told.
    /// Returns `false` when it was over already.
    pub fn abort(
        &mut self,
        now: Instant,
        correlation: CorrelationId,
        reason: CancelReason,
    ) -> bool {
        self.advance(now);
        let pending = self.calls.contains_key(&correlation);
        if pending {
            let aborted = Err(Error::new(ErrorCode::Aborted));
            self.settle(correlation, RequestState::Aborted, aborted, Some(reason));
        }
        pending
    }

    /// A receiver is gone. Requests that may go to another one wait for [`Self::assign`]; others
    /// settle: as [`ErrorCode::PeerGone`] when nothing was done, else as
    /// [`ErrorCode::OutcomeUnknown`] (rule E3).
    pub fn peer_gone(&mut self, now: Instant, peer: K) {
        self.advance(now);
        for id in self.ids() {
            if self.calls.get(&id).is_some_and(|call| call.peer == Some(peer)) {
                self.lose_receiver(id, ErrorCode::PeerGone);
            }
        }
    }

    /// The transport to all receivers is gone; as [`Self::peer_gone`] for each, with
    /// [`ErrorCode::TransportUnavailable`] for what was not done.
    pub fn transport_closed(&mut self, now: Instant) {
        self.advance(now);
        for id in self.ids() {
            if self.calls.get(&id).is_some_and(|call| call.peer.is_some()) {
                self.lose_receiver(id, ErrorCode::TransportUnavailable);
            }
        }
    }

    /// The page freezes or goes away: everything settles now and nothing is sent again. What may
    /// have been done ends as [`ErrorCode::OutcomeUnknown`], the rest as `code`.
    pub fn settle_all(&mut self, now: Instant, code: ErrorCode) {
        self.advance(now);
        for id in self.ids() {
            self.end_without_answer(id, Error::new(code), Some(CancelReason::Navigation));
        }
    }

    /// Settles everything as [`ErrorCode::Closed`] and takes no further request.
    pub fn close(&mut self, now: Instant) {
        self.closed = true;
        self.settle_all(now, ErrorCode::Closed);
    }

    /// Fires what is due. Harmless when nothing is.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        if !self.waking.may_fire() {
            return;
        }
        let awake = self.waking.now();
        while let Some((due, id)) = self.timers.first().copied() {
            if due > awake {
                return;
            }
            self.expire(id);
        }
    }

    /// When [`Self::handle_timeout`] wants to be called; `None` when nothing is pending.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.waking.next(self.earliest())
    }

    /// The next thing to do. An attempt counts as sent, and its timeouts begin, when its
    /// [`RequestOutput::Send`] is returned.
    pub fn poll_output(&mut self) -> Option<RequestOutput<T, R, K>> {
        if let Some(output) = self.outputs.pop_front() {
            if matches!(output, RequestOutput::Settled(_)) {
                self.unread -= 1;
            }
            return Some(output);
        }
        while let Some(id) = self.ready.pop_front() {
            if let Some(send) = self.start_attempt(id) {
                return Some(send);
            }
        }
        None
    }

    /// The value given with a pending request.
    #[must_use]
    pub fn context(&self, correlation: CorrelationId) -> Option<&T> {
        self.calls.get(&correlation).map(|call| &call.context)
    }

    /// The same, to be changed.
    pub fn context_mut(&mut self, correlation: CorrelationId) -> Option<&mut T> {
        self.calls.get_mut(&correlation).map(|call| &mut call.context)
    }

    /// Every pending request; reading changes nothing.
    #[must_use]
    pub fn pending(&self, now: Instant) -> Vec<PendingRequest> {
        let mut waking = self.waking;
        waking.advance(now, self.earliest());
        let awake = waking.now();
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.calls
            .iter()
            .map(|(id, call)| PendingRequest {
                correlation: *id,
                message_type: call.message_type.clone(),
                state: call.state(),
                attempt: call.attempt,
                age_ms: millis(awake - call.started),
                remaining_ms: millis(call.deadline - awake),
            })
            .collect()
    }

    /// Requests pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether nothing is left: no request, no timer, no output to poll.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
            && self.timers.is_empty()
            && self.ready.is_empty()
            && self.outputs.is_empty()
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> RequestCounters {
        self.counters
    }

    fn advance(&mut self, now: Instant) {
        let earliest = self.earliest();
        self.waking.advance(now, earliest);
    }

    fn earliest(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    fn ids(&self) -> Vec<CorrelationId> {
        self.calls.keys().copied().collect()
    }

    /// The open attempt that an answer is for, if it comes from whom it was sent to.
    fn find(&mut self, from: K, correlation: CorrelationId, call: CallId) -> Option<usize> {
        let pending = self.calls.get(&correlation);
        let Some((pending, index)) = pending.and_then(|c| Some((c, c.position(call)?))) else {
            self.counters.late += 1;
            return None;
        };
        let attempt: &Attempt<K> = &pending.open[index];
        if attempt.peer != from {
            self.counters.foreign += 1;
            return None;
        }
        Some(index)
    }
}

//! Publications on their way: one queue per topic, the oldest at most in flight, each settled once.

use core::time::Duration;
use std::collections::VecDeque;

use litemap::LiteMap;
use motet_protocol::fault::planted;
use motet_protocol::{Backoff, BackoffPolicy, CallId, CorrelationId, Error, ErrorCode, Instant};

use super::api::{ClientOutput, PendingPublish, PublishCall};
use super::outbox::Env;
use crate::frame::{PublishFrame, ToNode};
use crate::name::check_topic;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Not sent, or known not to have been done: may be sent at this time.
    Waiting(Instant),
    /// Sent at this time.
    InFlight(CallId, Instant),
}

#[derive(Debug)]
struct Entry<P> {
    correlation: CorrelationId,
    call: PublishCall<P>,
    key: String,
    /// Order among all topics.
    number: u64,
    asked: Instant,
    deadline: Instant,
    attempt: u32,
    step: Step,
    /// An attempt was made whose outcome is not known.
    exposed: bool,
    backoff: Backoff,
}

/// What an attempt's error says about the publication.
enum Verdict {
    /// It was not done: sending it again is no repeat.
    NotDone,
    /// Nobody knows.
    Unknown,
    /// It was refused.
    Final,
}

fn judge(code: ErrorCode) -> Verdict {
    match code {
        ErrorCode::PeerGone
        | ErrorCode::TransportUnavailable
        | ErrorCode::NodeUnavailable
        // Of this attempt: whether an earlier one was done is told when the call's own time is up.
        | ErrorCode::DeadlineExceeded
        | ErrorCode::ResourceBusy
        | ErrorCode::Backpressure
        | ErrorCode::RateLimited => Verdict::NotDone,
        ErrorCode::OutcomeUnknown | ErrorCode::RequestTimeout => Verdict::Unknown,
        _ => Verdict::Final,
    }
}

#[derive(Debug)]
pub(super) struct Publications<P> {
    topics: LiteMap<String, VecDeque<Entry<P>>>,
    len: usize,
    numbers: u64,
    /// The server is known to drop repeats by idempotency key.
    idempotent: bool,
    /// The node is a cluster member and takes publications.
    open: bool,
}

impl<P: Clone> Publications<P> {
    pub(super) const fn new() -> Self {
        Self { topics: LiteMap::new(), len: 0, numbers: 0, idempotent: false, open: false }
    }

    /// Takes a publication, at the cost of the oldest waiting one when the queue is full.
    pub(super) fn push(
        &mut self,
        env: &mut Env<P>,
        correlation: CorrelationId,
        call: PublishCall<P>,
    ) {
        if let Err(error) = check_topic(&call.topic) {
            settle(env, correlation, Err(error));
            return;
        }
        let deadline = env.now + call.deadline.unwrap_or(env.config.publish_deadline);
        env.wake_at(deadline);
        let drawn = || CorrelationId::random(&mut env.rng).to_hex();
        let key = call.idempotency_key.clone().unwrap_or_else(drawn);
        let topic = call.topic.clone();
        self.numbers += 1;
        self.topics.entry(topic.clone()).or_default().push_back(Entry {
            correlation,
            call,
            key,
            number: self.numbers,
            asked: env.now,
            deadline,
            attempt: 0,
            step: Step::Waiting(env.now),
            exposed: false,
            backoff: Backoff::new(BackoffPolicy::DEFAULT),
        });
        self.len += 1;
        if self.len > env.config.publish_queue {
            self.reject_oldest(env);
        }
        self.pump(env, &topic);
    }

    fn reject_oldest(&mut self, env: &mut Env<P>) {
        let waiting = |entry: &&Entry<P>| entry.is_not_done();
        let oldest = self.topics.iter().filter_map(|(topic, queue)| {
            queue.iter().find(waiting).map(|entry| (entry.number, topic.clone()))
        });
        if let Some((number, topic)) = oldest.min() {
            let error = Error::new(ErrorCode::QueueOverflow).with_detail(topic.as_str());
            self.remove(env, &topic, Err(error), &|entry| entry.number == number);
        }
    }

    /// Settles the first entry of a topic that matches and takes it out.
    fn remove(
        &mut self,
        env: &mut Env<P>,
        topic: &str,
        result: Result<(), Error>,
        matches: &dyn Fn(&Entry<P>) -> bool,
    ) {
        let Some(queue) = self.topics.get_mut(topic) else { return };
        if let Some(index) = queue.iter().position(matches)
            && let Some(entry) = queue.remove(index)
        {
            self.len -= 1;
            settle(env, entry.correlation, result);
        }
        if queue.is_empty() {
            self.topics.remove(topic);
        }
    }

    /// The node became a cluster member: it takes publications from now on.
    pub(super) fn open(&mut self, env: &mut Env<P>) {
        self.open = true;
        self.pump_all(env);
    }

    fn pump_all(&mut self, env: &mut Env<P>) {
        let topics: Vec<String> = self.topics.keys().cloned().collect();
        for topic in topics {
            self.pump(env, &topic);
        }
    }

    /// Sends the topic's oldest entry if its time has come; the others wait for it to settle.
    fn pump(&mut self, env: &mut Env<P>, topic: &str) {
        if !self.open || !env.outbox.is_open() {
            return;
        }
        let Some(queue) = self.topics.get_mut(topic) else { return };
        let in_flight = if planted("publish-two-in-flight") { 2 } else { 1 };
        for entry in queue.iter_mut().take(in_flight) {
            match entry.step {
                Step::Waiting(at) if at.max(env.now) >= entry.deadline => {}
                Step::Waiting(at) if at <= env.now => entry.send(env),
                Step::Waiting(at) => env.wake_at(at),
                Step::InFlight(..) => {}
            }
        }
    }

    /// The node tells the outcome of an attempt.
    pub(super) fn on_published(
        &mut self,
        env: &mut Env<P>,
        call: CallId,
        error: Option<Error>,
        idempotent: bool,
    ) {
        self.idempotent = idempotent;
        let is_it = |entry: &Entry<P>| matches!(entry.step, Step::InFlight(of, _) if of == call);
        let found = self.topics.iter_mut().find_map(|(topic, queue)| {
            let entry = queue.iter_mut().find(|entry| is_it(entry))?;
            Some((topic.clone(), entry))
        });
        let Some((topic, entry)) = found else {
            env.counters.late_publish_answers += 1;
            return;
        };
        match error {
            None => self.remove(env, &topic, Ok(()), &is_it),
            Some(error) => match judge(error.code) {
                Verdict::NotDone => entry.wait(env, &error),
                Verdict::Unknown if idempotent => {
                    entry.exposed = true;
                    entry.wait(env, &error);
                }
                // A refusal speaks of its own attempt: an earlier one may have been accepted.
                Verdict::Final if !entry.exposed => self.remove(env, &topic, Err(error), &is_it),
                Verdict::Final | Verdict::Unknown => {
                    let unknown = Error { code: ErrorCode::OutcomeUnknown, ..error };
                    self.remove(env, &topic, Err(unknown), &is_it);
                }
            },
        }
        self.pump(env, &topic);
    }

    pub(super) fn abort(&mut self, env: &mut Env<P>, correlation: CorrelationId) {
        let is_it = |entry: &Entry<P>| entry.correlation == correlation;
        let mut queues = self.topics.iter();
        let Some((topic, _)) = queues.find(|(_, queue)| queue.iter().any(is_it)) else { return };
        let topic = topic.clone();
        self.remove(env, &topic, Err(ErrorCode::Aborted.into()), &is_it);
        self.pump(env, &topic);
    }

    /// The node is gone: what was in flight is sent again where that is safe.
    pub(super) fn node_lost(&mut self, env: &mut Env<P>) {
        self.open = false;
        let idempotent = self.idempotent;
        self.take_out(env, &|entry, now| {
            if let Step::InFlight(..) = entry.step {
                if !idempotent {
                    return Some(ErrorCode::OutcomeUnknown.into());
                }
                entry.exposed = true;
                entry.step = Step::Waiting(now);
            }
            None
        });
    }

    /// The page goes away or the node stopped for good: everything settles now, with this error
    /// where it is known not to have been done.
    pub(super) fn settle_all(&mut self, env: &mut Env<P>, error: &Error) {
        self.open = false;
        self.take_out(env, &|entry, _| {
            let unknown = || ErrorCode::OutcomeUnknown.into();
            Some(if entry.is_not_done() { error.clone() } else { unknown() })
        });
    }

    /// Settles what is past its deadline and sends what has waited for its time.
    pub(super) fn tick(&mut self, env: &mut Env<P>) {
        self.take_out(env, &|entry, now| {
            (now >= entry.deadline).then(|| {
                let code = if entry.is_not_done() {
                    ErrorCode::DeadlineExceeded
                } else {
                    ErrorCode::OutcomeUnknown
                };
                Error::new(code)
            })
        });
        self.pump_all(env);
        if let Some(first) = self.entries().map(|entry| entry.deadline).min() {
            env.wake_at(first);
        }
    }

    /// Settles every entry for which an error is named.
    fn take_out(
        &mut self,
        env: &mut Env<P>,
        verdict: &dyn Fn(&mut Entry<P>, Instant) -> Option<Error>,
    ) {
        for (_, queue) in &mut self.topics {
            queue.retain_mut(|entry| match verdict(entry, env.now) {
                None => true,
                Some(error) => {
                    settle(env, entry.correlation, Err(error));
                    false
                }
            });
        }
        self.topics.retain(|_, queue| !queue.is_empty());
        self.len = self.topics.values().map(VecDeque::len).sum();
    }

    fn entries(&self) -> impl Iterator<Item = &Entry<P>> {
        self.topics.values().flatten()
    }

    /// When the oldest attempt in flight was sent.
    pub(super) fn in_flight_since(&self) -> Option<Instant> {
        let sent = |entry: &Entry<P>| match entry.step {
            Step::InFlight(_, at) => Some(at),
            Step::Waiting(_) => None,
        };
        self.entries().filter_map(sent).min()
    }

    /// What waits, by topic, in the order in which it will be sent.
    pub(super) fn pending(&self, now: Instant) -> Vec<PendingPublish> {
        let row = |entry: &Entry<P>| PendingPublish {
            correlation: entry.correlation,
            call: match entry.step {
                Step::InFlight(call, _) => Some(call),
                Step::Waiting(_) => None,
            },
            topic: entry.call.topic.clone(),
            attempt: entry.attempt,
            age_ms: millis(now - entry.asked),
            remaining_ms: millis(entry.deadline - now),
        };
        self.entries().map(row).collect()
    }
}

impl<P: Clone> Entry<P> {
    /// Whether it is known that the server does not have it.
    const fn is_not_done(&self) -> bool {
        !self.exposed && matches!(self.step, Step::Waiting(_))
    }

    fn send(&mut self, env: &mut Env<P>) {
        let call = CallId::random(&mut env.rng);
        self.attempt += 1;
        self.step = Step::InFlight(call, env.now);
        let keyed = self.attempt == 1 || !planted("resend-without-key");
        let remaining_ms = u32::try_from(millis(self.deadline - env.now)).unwrap_or(u32::MAX);
        env.outbox.send_with(|packet| {
            ToNode::Publish(PublishFrame {
                call,
                topic: self.call.topic.clone(),
                slot: packet.attach(self.call.payload.clone()),
                size: self.call.size,
                idempotency_key: keyed.then(|| self.key.clone()),
                message_id: self.call.message_id.clone(),
                timestamp_ms: self.call.timestamp_ms,
                remaining_ms,
            })
        });
    }

    fn wait(&mut self, env: &mut Env<P>, error: &Error) {
        let named = error.retry_after_ms.map(|ms| Duration::from_millis(ms.into()));
        let at = env.now + self.backoff.next(&mut env.rng, named);
        self.step = Step::Waiting(at);
        env.wake_at(at);
    }
}

fn settle<P>(env: &mut Env<P>, correlation: CorrelationId, result: Result<(), Error>) {
    env.counters.settled += 1;
    env.outbox.push(ClientOutput::Settled { correlation, result });
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

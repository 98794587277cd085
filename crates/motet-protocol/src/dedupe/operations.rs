//! Dedupe by idempotency key: the receiver's side of a request that may be repeated.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ack::BUSY_RETRY_AFTER;
use crate::error::{Error, ErrorCode};
use crate::time::Instant;

/// What to do with a new operation when no place is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Refuse it as busy until an outcome is old enough to be forgotten: no operation is ever done
    /// twice within the lifetime. For destructive messages (rule E37).
    Refuse,
    /// Forget the oldest outcome early.
    ForgetOldest,
}

/// Bounds of an [`OperationStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationLimits {
    /// How long an outcome is remembered, in waking time since it was known.
    pub lifetime: Duration,
    /// Operations held for one sender, running ones included.
    pub per_sender: usize,
    /// Operations held in all.
    pub total: usize,
    /// Attempts that may wait for one running operation.
    pub waiting: usize,
    /// What happens beyond.
    pub when_full: WhenFull,
}

impl Default for OperationLimits {
    /// 5 minutes; 1,000 for a sender, 10,000 in all; 16 waiting; refuse.
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(300),
            per_sender: 1_000,
            total: 10_000,
            waiting: 16,
            when_full: WhenFull::Refuse,
        }
    }
}

/// A repeatable operation as it arrives. Its identity is the message type with the key, not the
/// sender: a reloaded tab that asks again is the same user with the same wish (rule E26).
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a, S> {
    /// Who asks; counts against that sender's bound.
    pub sender: S,
    /// The message type.
    pub message_type: &'a str,
    /// The idempotency key.
    pub key: &'a str,
    /// Fingerprint of the payload, such as [`crate::payload_hash`].
    pub payload_hash: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    key: Box<str>,
    message_type: Box<str>,
}

/// The right, and the duty, to carry an operation out: give it back to [`OperationStore::finish`]
/// however it ends. Running operations are never forgotten.
#[derive(Debug)]
#[must_use = "an operation that is not finished is held for ever"]
pub struct Running(Arc<Identity>);

/// What is to be done with an operation that arrived. `W` says whom to answer.
#[derive(Debug)]
#[must_use]
pub enum Admission<R, W> {
    /// It is new, or may run again: carry it out.
    Run(Running),
    /// It is running: acknowledge as [`crate::AckStatus::Duplicate`]. `W` is kept, and is among
    /// those that [`OperationStore::finish`] returns.
    Joined,
    /// It is over: answer with the same outcome.
    Finished {
        /// The outcome.
        result: Result<R, Error>,
        /// Whom to answer.
        waiting: W,
    },
    /// It was not taken.
    Refused {
        /// [`ErrorCode::IdempotencyKeyReused`], or [`ErrorCode::ResourceBusy`] with the time after
        /// which there may be a place.
        error: Error,
        /// Whom to answer.
        waiting: W,
    },
}

#[derive(Debug)]
enum Progress<R, W> {
    Running {
        waiting: Vec<W>,
    },
    /// `order` is its place among the outcomes, oldest first.
    Finished {
        result: Result<R, Error>,
        order: u64,
    },
}

#[derive(Debug)]
struct Entry<S, R, W> {
    sender: S,
    payload_hash: u64,
    progress: Progress<R, W>,
}

#[derive(Debug, Default)]
struct Sender {
    operations: usize,
    /// Places of its outcomes.
    finished: BTreeSet<u64>,
}

/// What a receiver knows of the operations it was asked for (rules E7 and E26).
///
/// `S` names senders, `R` is a result, `W` an attempt that waits for one.
///
/// ```
/// use motet_protocol::{Admission, Instant, Operation, OperationLimits, OperationStore};
///
/// let now = Instant::ZERO;
/// let mut store = OperationStore::new(OperationLimits::default());
/// let op = Operation { sender: "tab 1", message_type: "note.add", key: "op-1", payload_hash: 7 };
///
/// let Admission::Run(running) = store.begin(now, op, "first attempt") else { panic!() };
/// // A repeat while it runs does not run; both attempts get the one result.
/// assert!(matches!(store.begin(now, op, "second attempt"), Admission::Joined));
/// assert_eq!(store.finish(now, running, Ok("note 9")), ["first attempt", "second attempt"]);
/// // A repeat after that gets the result at once.
/// assert!(matches!(
///     store.begin(now, op, "third attempt"),
///     Admission::Finished { result: Ok("note 9"), .. }
/// ));
/// ```
#[derive(Debug)]
pub struct OperationStore<S, R, W> {
    limits: OperationLimits,
    entries: BTreeMap<Arc<Identity>, Entry<S, R, W>>,
    senders: BTreeMap<S, Sender>,
    /// Outcomes by age, with the time at which each was known.
    finished: BTreeMap<u64, (Instant, Arc<Identity>)>,
    next_order: u64,
}

impl<S: Clone + Ord, R: Clone, W> OperationStore<S, R, W> {
    /// An empty store.
    #[must_use]
    pub fn new(limits: OperationLimits) -> Self {
        Self {
            limits,
            entries: BTreeMap::new(),
            senders: BTreeMap::new(),
            finished: BTreeMap::new(),
            next_order: 0,
        }
    }

    /// An operation arrived; `waiting` is whom to answer. `awake` is waking time.
    pub fn begin(
        &mut self,
        awake: Instant,
        operation: Operation<'_, S>,
        waiting: W,
    ) -> Admission<R, W> {
        self.expire(awake);
        let identity =
            Identity { key: operation.key.into(), message_type: operation.message_type.into() };
        if let Some((identity, entry)) = self.entries.get_key_value(&identity) {
            if entry.payload_hash != operation.payload_hash {
                let error = Error::new(ErrorCode::IdempotencyKeyReused);
                return Admission::Refused { error, waiting };
            }
            let identity = Arc::clone(identity);
            return self.repeat(identity, waiting);
        }
        if let Err(error) = self.make_room(awake, &operation.sender) {
            return Admission::Refused { error, waiting };
        }
        let identity = Arc::new(identity);
        self.senders.entry(operation.sender.clone()).or_default().operations += 1;
        let entry = Entry {
            sender: operation.sender,
            payload_hash: operation.payload_hash,
            progress: Progress::Running { waiting: vec![waiting] },
        };
        self.entries.insert(Arc::clone(&identity), entry);
        Admission::Run(Running(identity))
    }

    /// The outcome of an operation is known. Returns everybody who waits for it, the first attempt
    /// first. A retryable error lets the next attempt run again; any other outcome is final.
    ///
    /// Whoever carried it out and died is finished with [`ErrorCode::OutcomeUnknown`].
    pub fn finish(&mut self, awake: Instant, running: Running, result: Result<R, Error>) -> Vec<W> {
        let entry = self.entries.get_mut(&running.0).expect("a running operation is never evicted");
        let order = self.next_order;
        self.next_order += 1;
        let finished = Progress::Finished { result, order };
        let before = core::mem::replace(&mut entry.progress, finished);
        let sender = self.senders.get_mut(&entry.sender).expect("a sender with an operation");
        sender.finished.insert(order);
        self.finished.insert(order, (awake, running.0));
        match before {
            Progress::Running { waiting } => waiting,
            Progress::Finished { .. } => unreachable!("the right to run was given away twice"),
        }
    }

    /// Forgets outcomes that are older than their lifetime. [`Self::begin`] does so too; call it
    /// when idle to give memory back.
    pub fn expire(&mut self, awake: Instant) {
        while let Some((order, (known, _))) = self.finished.first_key_value() {
            if awake - *known < self.limits.lifetime {
                return;
            }
            let order = *order;
            self.forget(order);
        }
    }

    /// Operations held, running ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no operation is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn repeat(&mut self, identity: Arc<Identity>, waiting: W) -> Admission<R, W> {
        let limit = self.limits.waiting;
        let entry = self.entries.get_mut(&identity).expect("it was just found");
        let order = match &mut entry.progress {
            Progress::Running { waiting: all } if all.len() < limit => {
                all.push(waiting);
                return Admission::Joined;
            }
            Progress::Running { .. } => {
                return Admission::Refused { error: busy(Duration::ZERO), waiting };
            }
            Progress::Finished { result: Err(error), order } if error.retryable() => *order,
            Progress::Finished { result, .. } => {
                return Admission::Finished { result: result.clone(), waiting };
            }
        };
        entry.progress = Progress::Running { waiting: vec![waiting] };
        let sender = self.senders.get_mut(&entry.sender).expect("a sender with an operation");
        sender.finished.remove(&order);
        self.finished.remove(&order);
        Admission::Run(Running(identity))
    }

    fn make_room(&mut self, awake: Instant, sender: &S) -> Result<(), Error> {
        let own = self.senders.get(sender);
        let sender_full = own.is_some_and(|own| own.operations >= self.limits.per_sender);
        if !sender_full && self.entries.len() < self.limits.total {
            return Ok(());
        }
        // A sender over its own bound pays with its own outcomes, never with another's.
        let own_oldest = own.and_then(|own| own.finished.first());
        let any_oldest = self.finished.keys().next().filter(|_| !sender_full);
        let Some(order) = own_oldest.or(any_oldest).copied() else {
            return Err(busy(Duration::ZERO));
        };
        if self.limits.when_full == WhenFull::Refuse {
            let (known, _) = self.finished[&order];
            return Err(busy((known + self.limits.lifetime) - awake));
        }
        self.forget(order);
        Ok(())
    }

    fn forget(&mut self, order: u64) {
        let (_, identity) = self.finished.remove(&order).expect("an outcome that is held");
        let entry = self.entries.remove(&identity).expect("an outcome has its entry");
        let sender = self.senders.get_mut(&entry.sender).expect("a sender with an operation");
        sender.finished.remove(&order);
        sender.operations -= 1;
        if sender.operations == 0 {
            self.senders.remove(&entry.sender);
        }
    }
}

fn busy(wait: Duration) -> Error {
    let wait = wait.max(BUSY_RETRY_AFTER).as_millis();
    let mut error = Error::new(ErrorCode::ResourceBusy);
    error.retry_after_ms = Some(u32::try_from(wait).unwrap_or(u32::MAX));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    type Store = OperationStore<u8, u32, u32>;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn operation(sender: u8, key: &str) -> Operation<'_, u8> {
        Operation { sender, message_type: "note.add", key, payload_hash: 1 }
    }

    fn store(per_sender: usize, when_full: WhenFull) -> Store {
        Store::new(OperationLimits { per_sender, when_full, ..OperationLimits::default() })
    }

    fn run(store: &mut Store, now: Instant, operation: Operation<'_, u8>) -> Running {
        match store.begin(now, operation, 0) {
            Admission::Run(running) => running,
            other => panic!("did not run: {other:?}"),
        }
    }

    fn refusal(admission: Admission<u32, u32>) -> Error {
        match admission {
            Admission::Refused { error, .. } => error,
            other => panic!("was taken: {other:?}"),
        }
    }

    #[test]
    fn another_payload_under_the_same_key_is_refused_whatever_the_state() {
        let mut store = Store::new(OperationLimits::default());
        let other = Operation { payload_hash: 2, ..operation(1, "k") };
        let running = run(&mut store, at(0), operation(1, "k"));
        let code = |store: &mut Store| refusal(store.begin(at(1), other, 0)).code;
        assert_eq!(code(&mut store), ErrorCode::IdempotencyKeyReused);
        store.finish(at(1), running, Ok(5));
        assert_eq!(code(&mut store), ErrorCode::IdempotencyKeyReused);
    }

    #[test]
    fn the_same_key_under_another_message_type_is_another_operation() {
        let mut store = Store::new(OperationLimits::default());
        let _first = run(&mut store, at(0), operation(1, "k"));
        let other = Operation { message_type: "note.remove", ..operation(1, "k") };
        let _second = run(&mut store, at(0), other);
        assert_eq!(store.len(), 2);
    }

    #[test]
    fn another_sender_with_the_same_key_gets_the_same_result() {
        let mut store = Store::new(OperationLimits::default());
        let running = run(&mut store, at(0), operation(1, "k"));
        store.finish(at(0), running, Ok(5));
        let repeat = store.begin(at(1), operation(2, "k"), 9);
        assert!(matches!(repeat, Admission::Finished { result: Ok(5), waiting: 9 }));
    }

    #[test]
    fn a_retryable_failure_runs_again_and_a_final_one_is_repeated() {
        let mut store = Store::new(OperationLimits::default());
        let running = run(&mut store, at(0), operation(1, "k"));
        store.finish(at(0), running, Err(Error::new(ErrorCode::ResourceBusy)));
        let running = run(&mut store, at(1), operation(1, "k"));
        store.finish(at(1), running, Err(Error::new(ErrorCode::HandlerFailed)));
        let repeat = store.begin(at(2), operation(1, "k"), 0);
        assert!(
            matches!(repeat, Admission::Finished { result: Err(e), .. } if e.code == ErrorCode::HandlerFailed)
        );
    }

    #[test]
    fn an_outcome_is_forgotten_after_its_lifetime_and_running_work_never_is() {
        let mut store = Store::new(OperationLimits::default());
        let finished = run(&mut store, at(0), operation(1, "done"));
        store.finish(at(0), finished, Ok(1));
        let running = run(&mut store, at(0), operation(1, "running"));
        store.expire(at(299));
        assert_eq!(store.len(), 2);
        store.expire(at(100_000));
        assert_eq!(store.len(), 1);
        assert!(matches!(store.begin(at(100_000), operation(1, "running"), 0), Admission::Joined));
        store.finish(at(100_000), running, Ok(2));
        store.expire(at(100_300));
        assert!(store.is_empty() && store.senders.is_empty() && store.finished.is_empty());
    }

    #[test]
    fn a_full_sender_is_told_when_there_will_be_a_place() {
        let mut store = store(2, WhenFull::Refuse);
        for key in ["a", "b"] {
            let running = run(&mut store, at(0), operation(1, key));
            store.finish(at(0), running, Ok(1));
        }
        let error = refusal(store.begin(at(100), operation(1, "c"), 0));
        assert_eq!((error.code, error.retry_after_ms), (ErrorCode::ResourceBusy, Some(200_000)));
        let _running = run(&mut store, at(300), operation(1, "c"));
    }

    #[test]
    fn a_noisy_sender_does_not_take_the_places_of_another() {
        let mut store = store(2, WhenFull::Refuse);
        let _one = run(&mut store, at(0), operation(1, "a"));
        let _two = run(&mut store, at(0), operation(1, "b"));
        let error = refusal(store.begin(at(0), operation(1, "c"), 0));
        assert_eq!((error.code, error.retry_after_ms), (ErrorCode::ResourceBusy, Some(1_000)));
        let _other = run(&mut store, at(0), operation(2, "c"));
    }

    #[test]
    fn forgetting_early_takes_the_senders_own_oldest_outcome_and_no_running_work() {
        let mut store = store(2, WhenFull::ForgetOldest);
        let other = run(&mut store, at(0), operation(2, "other"));
        store.finish(at(0), other, Ok(7));
        let _running = run(&mut store, at(1), operation(1, "a"));
        let done = run(&mut store, at(1), operation(1, "b"));
        store.finish(at(1), done, Ok(1));
        let _third = run(&mut store, at(2), operation(1, "c"));
        assert!(matches!(store.begin(at(2), operation(1, "a"), 0), Admission::Joined));
        assert!(matches!(store.begin(at(2), operation(2, "other"), 0), Admission::Finished { .. }));
        let full = refusal(store.begin(at(2), operation(1, "b"), 0));
        assert_eq!(full.code, ErrorCode::ResourceBusy);
    }

    #[test]
    fn attempts_that_wait_for_one_operation_are_bounded() {
        let mut store = Store::new(OperationLimits { waiting: 2, ..OperationLimits::default() });
        let running = run(&mut store, at(0), operation(1, "k"));
        assert!(matches!(store.begin(at(0), operation(1, "k"), 1), Admission::Joined));
        let full = refusal(store.begin(at(0), operation(1, "k"), 2));
        assert_eq!(full.code, ErrorCode::ResourceBusy);
        assert_eq!(store.finish(at(0), running, Ok(1)), [0, 1]);
    }
}

//! Deciders that wait for their transaction.
//!
//! They stay here until this process has its turn, so that the keeper can answer for a turn that
//! does not come: what it has answered is gone from here and is never asked.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_channel::oneshot;

use crate::Error;
use crate::engine::{Commit, Decide};

pub(super) type Outcome = Result<Commit, Error>;

/// A decider that waits to be asked.
pub(super) struct Ask {
    pub(super) decider: Box<dyn Decide>,
    reply: oneshot::Sender<Outcome>,
    since: Instant,
}

impl Ask {
    /// Whoever asked may have stopped waiting; what was written stays written.
    pub(super) fn answer(self, outcome: Outcome) {
        let _ = self.reply.send(outcome);
    }
}

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Something was queued, or the queue was closed.
    work: Condvar,
    /// Something was answered by the keeper, or the committer ended.
    progress: Condvar,
}

#[derive(Default)]
struct State {
    asks: VecDeque<Ask>,
    /// The committer waits on `work`.
    idle: bool,
    /// The committer waits for the turn.
    waits_for_turn: bool,
    closed: bool,
    ended: bool,
}

impl Queue {
    /// Queues deciders, all or none.
    pub(super) fn submit(
        &self,
        deciders: Vec<Box<dyn Decide>>,
    ) -> Result<Vec<oneshot::Receiver<Outcome>>, Error> {
        let since = Instant::now();
        let (replies, receivers): (Vec<_>, Vec<_>) =
            deciders.iter().map(|_| oneshot::channel()).unzip();
        let asks =
            deciders.into_iter().zip(replies).map(|(decider, reply)| Ask { decider, reply, since });
        let mut state = self.lock();
        if state.closed || state.ended {
            return Err(Error::Closed);
        }
        let waiting = state.asks.len();
        if waiting + receivers.len() > ASKS_MAX {
            return Err(Error::WriteQueueFull { waiting });
        }
        state.asks.extend(asks);
        if state.idle {
            self.work.notify_one();
        }
        Ok(receivers)
    }

    /// Waits until something is queued. False once the queue is closed and empty.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.lock();
        state.idle = true;
        let mut state = self
            .work
            .wait_while(state, |state| state.asks.is_empty() && !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        state.idle = false;
        !state.asks.is_empty()
    }

    /// The next decider to ask. Only who has the turn may call this.
    pub(super) fn next(&self) -> Option<Ask> {
        self.lock().asks.pop_front()
    }

    /// The committer begins to wait for the turn.
    pub(super) fn waits_for_turn(&self) {
        self.lock().waits_for_turn = true;
        self.progress.notify_all();
    }

    /// The turn came, or could not be waited for.
    pub(super) fn turn_came(&self) {
        self.lock().waits_for_turn = false;
    }

    /// Whether the committer waits for the turn.
    pub(super) fn is_waiting_for_turn(&self) -> bool {
        self.lock().waits_for_turn
    }

    /// Answers all that have waited at least so long, unless the turn has come meanwhile.
    pub(super) fn give_up(&self, waited: Duration, error: impl Fn(Duration) -> Error) {
        let mut state = self.lock();
        if !state.waits_for_turn {
            return;
        }
        let now = Instant::now();
        let count = state.asks.partition_point(|ask| now - ask.since >= waited);
        let overdue: Vec<_> = state.asks.drain(..count).collect();
        drop(state);
        for ask in overdue {
            let error = error(now - ask.since);
            ask.answer(Err(error));
        }
        self.progress.notify_all();
    }

    /// Takes no more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_all();
    }

    /// The committer ends: what is still queued is never asked.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let asks = std::mem::take(&mut state.asks);
        drop(state);
        self.progress.notify_all();
        for ask in asks {
            ask.answer(Err(Error::Closed));
        }
    }

    /// Waits until everything queued has been answered. False if the committer still waits for a
    /// turn then, as it may for ever.
    pub(super) fn wait_for_end(&self) -> bool {
        let state = self
            .progress
            .wait_while(self.lock(), |state| {
                !(state.ended || state.waits_for_turn && state.asks.is_empty())
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.ended
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const ASKS_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Answer, Decision, Transaction};

    struct Nothing;

    impl Decide for Nothing {
        fn decide<'a>(&'a mut self, _: &'a dyn Transaction) -> Answer<'a, Result<Decision, Error>> {
            Answer::now(Ok(Decision::default()))
        }
    }

    fn submit(queue: &Queue, count: usize) -> Vec<oneshot::Receiver<Outcome>> {
        let deciders = (0..count).map(|_| Box::new(Nothing) as Box<dyn Decide>);
        queue.submit(deciders.collect()).unwrap()
    }

    fn answer(reply: oneshot::Receiver<Outcome>) -> Outcome {
        pollster::block_on(reply).unwrap()
    }

    #[test]
    fn who_has_waited_too_long_is_answered_and_never_asked() {
        let queue = Queue::default();
        let old = submit(&queue, 2);
        queue.lock().asks.iter_mut().for_each(|ask| ask.since -= Duration::from_secs(31));
        let young = submit(&queue, 1);
        let busy = |waited: Duration| Error::WriterBusy { waited_ms: waited.as_millis() as u64 };
        queue.give_up(Duration::from_secs(30), busy);
        assert_eq!(queue.lock().asks.len(), 3, "nobody waits for a turn");
        queue.waits_for_turn();
        queue.give_up(Duration::from_secs(30), busy);
        for reply in old {
            let given_up = answer(reply);
            assert!(matches!(given_up, Err(Error::WriterBusy { waited_ms: 31_000..32_000 })));
        }
        assert!(queue.next().is_some() && queue.next().is_none());
        drop(young);
    }

    #[test]
    fn a_closed_queue_takes_nothing_and_gives_out_what_it_has() {
        let queue = Queue::default();
        let _reply = submit(&queue, 1);
        queue.close();
        assert!(matches!(queue.submit(vec![Box::new(Nothing)]), Err(Error::Closed)));
        assert!(queue.wait() && queue.next().is_some());
        assert!(!queue.wait());
    }

    #[test]
    fn what_a_committer_leaves_behind_is_answered_as_closed() {
        let queue = Queue::default();
        let reply = submit(&queue, 1).remove(0);
        queue.end();
        assert!(matches!(answer(reply), Err(Error::Closed)));
        assert!(queue.wait_for_end());
    }
}

//! Followers of the log: woken by pokes that may get lost, and by themselves after the backstop.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use motet_protocol::Rng;
use motet_store::{Env, Error, Tail, Wake};

use super::engine::Core;
use super::judge::Verdict;
use super::judge::reads::is_same;
use super::model::Model;

/// How long a lost signal may go unnoticed, milliseconds.
pub(crate) const BACKSTOP_MS: u64 = 30_000;
/// How long a poke is on its way at most, milliseconds.
const WIRE_MS_MAX: u64 = 50;

/// A process's end of the signal plane: notes when it poked the others.
pub(crate) struct Poker {
    core: Arc<Core>,
    /// The commit that was the last one at each poke.
    pokes: Mutex<Vec<u64>>,
}

impl Poker {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, pokes: Mutex::default() }
    }

    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.pokes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Wake for Poker {
    fn wake(&self) {
        let committed = self.core.committed();
        self.pokes.lock().unwrap_or_else(PoisonError::into_inner).push(committed);
    }
}

/// What a look came to.
pub(crate) enum Looked {
    /// It has read everything.
    UpToDate,
    /// What it asked for is no longer kept: it has to begin anew.
    Truncated,
}

/// The failed check and what was seen.
type Failed = (&'static str, String);

/// Follows the log in one process.
pub(crate) struct Follower {
    tail: Tail,
    /// Where it must be by when: clocks and milliseconds.
    due: VecDeque<(u64, u64)>,
    wakes: Vec<u64>,
    /// When it looks for itself.
    backstop: u64,
}

impl Follower {
    /// Begins at the log's beginning, or where it has no gaps.
    pub(crate) fn new(env: &Env, model: &Model, now_ms: u64) -> Self {
        let after = if model.has_all_after(0) { 0 } else { model.kept_from() - 1 };
        let tail = env.log().tail(motet_store::Clock::new(after));
        Self { tail, due: VecDeque::new(), wakes: vec![now_ms], backstop: now_ms + BACKSTOP_MS }
    }

    /// The same place in the log, in another process's hands.
    pub(crate) fn reopened(&self, env: &Env, now_ms: u64) -> Self {
        let tail = env.log().tail(self.tail.position());
        let due = VecDeque::new();
        Self { tail, due, wakes: vec![now_ms], backstop: now_ms + BACKSTOP_MS }
    }

    /// A commit up to this clock was told to its writer.
    pub(crate) fn expect(&mut self, clock: u64, lossy: bool, now_ms: u64) {
        let soon = if lossy { self.backstop } else { now_ms + WIRE_MS_MAX };
        self.due.push_back((clock, soon));
    }

    /// A poke comes in, unless the wire loses it.
    pub(crate) fn poke(&mut self, lossy: bool, now_ms: u64, rng: &mut Rng) {
        let times = if lossy { rng.below(3) } else { 1 };
        for _ in 0..times {
            let late = if lossy && rng.below(4) == 0 { 5_000 } else { WIRE_MS_MAX };
            self.wakes.push(now_ms + rng.below(late));
        }
    }

    /// Nothing happens in its process until then.
    pub(crate) fn pause(&mut self, until_ms: u64) {
        for (_, by) in &mut self.due {
            *by = (*by).max(until_ms);
        }
        self.backstop = self.backstop.max(until_ms);
    }

    /// When it looks next.
    pub(crate) fn next_look(&self) -> u64 {
        self.wakes.iter().copied().min().unwrap_or(u64::MAX).min(self.backstop)
    }

    /// Reads what is there, in order and each once, and is where it has to be.
    pub(crate) fn look(&mut self, model: &Model, now_ms: u64) -> Result<Looked, Failed> {
        self.wakes.retain(|at| *at > now_ms);
        self.backstop = now_ms + BACKSTOP_MS;
        let mut at = self.tail.position().number();
        loop {
            match self.tail.next_within(Duration::ZERO) {
                Ok(None) => break,
                Ok(Some(change)) => {
                    let next = model.entries_after(at).next();
                    if !next.is_some_and(|entry| is_same(entry, &change)) {
                        return Err(("tail", format!("after {at} it was given {change:?}")));
                    }
                    at = change.clock.number();
                }
                Err(Error::LogTruncated { kept_from, .. }) => {
                    let gone = !model.has_all_after(at) && kept_from.number() == model.kept_from();
                    if !gone {
                        let kept = model.kept_from();
                        return Err(("tail", format!("{at} is gone, kept is from {kept}")));
                    }
                    return Ok(Looked::Truncated);
                }
                Err(error) => return Err(("tail", format!("after {at}: {error}"))),
            }
        }
        let at = self.tail.position().number();
        if at != model.head {
            return Err(("tail", format!("it ends at {at}, the log at {}", model.head)));
        }
        Ok(Looked::UpToDate)
    }

    /// It has read what it had to read by now.
    pub(crate) fn check(&mut self, now_ms: u64) -> Verdict {
        let at = self.tail.position().number();
        while let Some((clock, by)) = self.due.front() {
            if at < *clock && *by < now_ms {
                return Err(("tail", format!("{clock} was due by {by}, it is at {at}")));
            }
            if at < *clock {
                break;
            }
            self.due.pop_front();
        }
        Ok(())
    }
}

//! Following the log.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Change, Log, Position};
use crate::{Clock, Error};

/// Follows a log: gives the changes that are there, then waits for more.
///
/// As an iterator it waits without end, and ends after an error; [`next_within`](Self::next_within) waits for a bounded
/// time.
pub struct Tail {
    log: Log,
    at: Position,
    ready: VecDeque<Change>,
    /// Whether the iterator has given an error, and so its last item.
    failed: bool,
}

impl Tail {
    pub(super) fn new(log: Log, after: Clock) -> Self {
        Self { log, at: after.into(), ready: VecDeque::new(), failed: false }
    }

    /// Where to go on later: the clock of the last change that was given. Within the
    /// [compacted](crate::Retention::latest) part of a log that is its beginning, [`Clock::ZERO`]: who
    /// comes later has to read that part as it is then.
    #[must_use]
    pub fn position(&self) -> Clock {
        if self.at.after < self.at.compacted_to { Clock::ZERO } else { self.at.after }
    }

    /// The next change, or `None` if none comes within this time.
    ///
    /// # Errors
    /// [`Error::LogTruncated`] if the next change is no longer kept; [`Error::LogPositionAhead`] if
    /// the log ends before the tail's position, as it does after a backup was restored.
    pub fn next_within(&mut self, time: Duration) -> Result<Option<Change>, Error> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(change) = self.ready.pop_front() {
                self.at.after = change.clock;
                return Ok(Some(change));
            }
            let seen = self.log.shared.signal.count();
            let (changes, compacted_to) = self.log.page(self.at, TAIL_CHANGES_MAX)?;
            (self.ready, self.at.compacted_to) = (changes.into(), compacted_to);
            if self.ready.is_empty() {
                if Instant::now() >= deadline {
                    return Ok(None);
                }
                self.log.shared.signal.wait(seen, deadline);
            }
        }
    }
}

impl Iterator for Tail {
    type Item = Result<Change, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            match self.next_within(crate::signal::BACKSTOP) {
                Ok(None) => {}
                Ok(Some(change)) => return Some(Ok(change)),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// How many changes a tail reads at once.
const TAIL_CHANGES_MAX: usize = 256;

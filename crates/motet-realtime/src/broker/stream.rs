//! One channel's stream: numbered publications, and the position that outlives them.

use std::collections::VecDeque;

use motet_protocol::{Instant, Rng};

use super::{HistoryPage, HistoryQuery, Retention, Version};
use crate::message::{Publication, StreamPosition};

/// Length of a random epoch, in letters.
const EPOCH_LENGTH: usize = 8;

pub(super) struct Stream<P> {
    epoch: String,
    top: u64,
    entries: VecDeque<Entry<P>>,
    /// When position and epoch are forgotten.
    meta_expires: Instant,
    version: Option<Version>,
    /// When the broker looks at this stream next.
    pub(super) scheduled: Option<Instant>,
}

struct Entry<P> {
    publication: Publication<P>,
    expires: Instant,
}

impl<P: Clone> Stream<P> {
    pub(super) fn new(now: Instant, retention: &Retention, rng: &mut Rng) -> Self {
        let letter = |rng: &mut Rng| {
            let index = rng.below(52);
            let base = if index < 26 { b'a' } else { b'A' };
            char::from(base + u8::try_from(index % 26).expect("below 26"))
        };
        Self {
            epoch: (0..EPOCH_LENGTH).map(|_| letter(rng)).collect(),
            top: 0,
            entries: VecDeque::new(),
            meta_expires: now + retention.meta_ttl.max(retention.ttl),
            version: None,
            scheduled: None,
        }
    }

    /// Numbers and keeps a publication.
    pub(super) fn push(
        &mut self,
        now: Instant,
        retention: &Retention,
        publication: &mut Publication<P>,
    ) -> StreamPosition {
        self.top += 1;
        publication.offset = self.top;
        publication.epoch.clone_from(&self.epoch);
        let mut kept = publication.clone();
        kept.epoch.clear();
        self.entries.push_back(Entry { publication: kept, expires: now + retention.ttl });
        while self.entries.len() > retention.size {
            self.entries.pop_front();
        }
        self.touch(now, retention);
        self.position()
    }

    /// Whether `version` is newer than the last one; if so it becomes the last one.
    pub(super) fn advance_version(&mut self, version: &Version) -> bool {
        let stale = self
            .version
            .as_ref()
            .is_some_and(|last| last.epoch == version.epoch && last.number >= version.number);
        if !stale {
            self.version = Some(version.clone());
        }
        !stale
    }

    pub(super) fn position(&self) -> StreamPosition {
        StreamPosition { offset: self.top, epoch: self.epoch.clone() }
    }

    pub(super) fn read(&mut self, now: Instant, query: &HistoryQuery) -> HistoryPage<P> {
        self.expire(now);
        let limit = query.limit.unwrap_or(usize::MAX);
        let publications = if query.reverse {
            let below = query.since.unwrap_or(u64::MAX);
            let newest_first = self.entries.iter().rev().map(|entry| &entry.publication);
            newest_first.filter(|p| p.offset < below).take(limit).cloned().collect()
        } else {
            let after = query.since.unwrap_or(0);
            // Offsets are contiguous, so the first wanted entry is found by subtraction.
            let first = self.entries.front().map_or(0, |entry| entry.publication.offset);
            let skip = usize::try_from(after.saturating_add(1).saturating_sub(first))
                .unwrap_or(usize::MAX);
            let rest = self.entries.iter().skip(skip).map(|entry| &entry.publication);
            rest.take(limit).cloned().collect()
        };
        HistoryPage { publications, top: self.position() }
    }

    /// Removes the publications; the position stays.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Drops expired publications; true when the whole stream may be forgotten.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        while self.entries.front().is_some_and(|entry| entry.expires <= now) {
            self.entries.pop_front();
        }
        self.entries.is_empty() && self.meta_expires <= now
    }

    /// Being used keeps the position alive.
    pub(super) fn touch(&mut self, now: Instant, retention: &Retention) {
        self.meta_expires = self.meta_expires.max(now + retention.meta_ttl.max(retention.ttl));
    }

    pub(super) fn next_expiry(&self) -> Instant {
        self.entries.front().map_or(self.meta_expires, |entry| entry.expires)
    }
}

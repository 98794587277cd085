//! One channel's stream: numbered publications, and the position that outlives them.

use std::collections::VecDeque;

use motet_protocol::Instant;

use super::{HistoryPage, HistoryQuery, Retention, Version};
use crate::message::{Publication, StreamPosition};
use crate::payload::Payload;

pub(super) struct Stream<P> {
    epoch: String,
    top: u64,
    entries: VecDeque<Entry<P>>,
    /// When position and epoch are forgotten.
    meta_expires: Instant,
    version: Option<Version>,
    /// When the broker looks at this stream next, and whether it has publications to drop then.
    pub(super) scheduled: Option<(Instant, Due)>,
}

/// What a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The end of its oldest publication.
    Publication,
    /// The end of its position, the last thing it has.
    Position,
}

struct Entry<P> {
    publication: Publication<P>,
    size: usize,
    expires: Instant,
}

impl<P: Payload> Stream<P> {
    pub(super) fn new(now: Instant, retention: &Retention, epoch: String) -> Self {
        Self {
            epoch,
            top: 0,
            entries: VecDeque::new(),
            meta_expires: now + retention.meta_ttl.max(retention.ttl),
            version: None,
            scheduled: None,
        }
    }

    /// Numbers and keeps a publication. Returns by how many bytes the stream grew and shrank.
    pub(super) fn push(
        &mut self,
        now: Instant,
        retention: &Retention,
        publication: &mut Publication<P>,
    ) -> (usize, usize) {
        self.top += 1;
        publication.offset = self.top;
        publication.epoch.clone_from(&self.epoch);
        let mut kept = publication.clone();
        kept.epoch.clear();
        let size = kept_size(&kept);
        self.entries.push_back(Entry { publication: kept, size, expires: now + retention.ttl });
        let mut freed = 0;
        while self.entries.len() > retention.size {
            freed += self.entries.pop_front().map_or(0, |entry| entry.size);
        }
        self.touch(now, retention);
        (size, freed)
    }

    /// Bytes that the next publication pushes out.
    pub(super) fn next_freed(&self, retention: &Retention) -> usize {
        let surplus = (self.entries.len() + 1).saturating_sub(retention.size);
        self.entries.iter().take(surplus).map(|entry| entry.size).sum()
    }

    /// Whether `version` is older than the last one, or the same.
    pub(super) fn knows_version(&self, version: &Version) -> bool {
        self.version
            .as_ref()
            .is_some_and(|last| last.epoch == version.epoch && last.number >= version.number)
    }

    pub(super) fn set_version(&mut self, version: Version) {
        self.version = Some(version);
    }

    pub(super) fn position(&self) -> StreamPosition {
        StreamPosition { offset: self.top, epoch: self.epoch.clone() }
    }

    pub(super) fn read(&self, query: &HistoryQuery) -> HistoryPage<P> {
        let publications = if query.reverse {
            let below = query.since.unwrap_or(u64::MAX);
            let newest_first = self.entries.iter().rev();
            page(newest_first.filter(|entry| entry.publication.offset < below), query)
        } else {
            let after = query.since.unwrap_or(0);
            // Offsets are contiguous, so the first wanted entry is found by subtraction.
            let first = self.entries.front().map_or(0, |entry| entry.publication.offset);
            let skip = usize::try_from(after.saturating_add(1).saturating_sub(first))
                .unwrap_or(usize::MAX);
            page(self.entries.iter().skip(skip), query)
        };
        HistoryPage { publications, top: self.position() }
    }

    /// Removes the publications; the position stays. Returns their bytes.
    pub(super) fn clear(&mut self) -> usize {
        self.entries.drain(..).map(|entry| entry.size).sum()
    }

    /// Drops expired publications and returns their bytes.
    pub(super) fn expire(&mut self, now: Instant) -> usize {
        let mut freed = 0;
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.expires <= now) {
            freed += entry.size;
        }
        freed
    }

    /// Whether nothing was ever published here.
    pub(super) const fn is_unused(&self) -> bool {
        self.top == 0
    }

    /// Whether the whole stream may be forgotten.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.entries.is_empty() && self.meta_expires <= now
    }

    /// Being used keeps the position alive.
    pub(super) fn touch(&mut self, now: Instant, retention: &Retention) {
        self.meta_expires = self.meta_expires.max(now + retention.meta_ttl.max(retention.ttl));
    }

    pub(super) fn next_expiry(&self) -> (Instant, Due) {
        match self.entries.front() {
            Some(entry) => (entry.expires, Due::Publication),
            None => (self.meta_expires, Due::Position),
        }
    }
}

/// Bytes that a kept publication counts for.
pub(super) fn kept_size<P: Payload>(publication: &Publication<P>) -> usize {
    publication.encoded_size_max(0)
}

fn page<'a, P: Payload + 'a>(
    entries: impl Iterator<Item = &'a Entry<P>>,
    query: &HistoryQuery,
) -> Vec<Publication<P>> {
    let mut room = query.bytes_max.unwrap_or(usize::MAX);
    let mut page = Vec::new();
    for entry in entries.take(query.limit.unwrap_or(usize::MAX)) {
        if entry.size > room && !page.is_empty() {
            break;
        }
        room = room.saturating_sub(entry.size);
        page.push(entry.publication.clone());
    }
    page
}

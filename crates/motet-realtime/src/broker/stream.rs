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
    /// Bytes on the wire, at most.
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
        let size = kept.encoded_size_max(0);
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(1 + self.entries.len() / 4);
        }
        let entry = Entry { publication: kept, size, expires: now + retention.ttl };
        let grown = entry.kept_size();
        self.entries.push_back(entry);
        let mut freed = 0;
        while self.entries.len() > retention.size {
            freed += self.entries.pop_front().map_or(0, |entry| entry.kept_size());
        }
        self.give_back();
        self.touch(now, retention);
        (grown, freed)
    }

    /// Gives back places that are no longer needed, so that no more than half as many as the
    /// publications are empty, and none without publications.
    fn give_back(&mut self) {
        let kept = self.entries.len();
        if kept == 0 {
            self.entries = VecDeque::new();
        } else if self.entries.capacity() > kept + kept.div_ceil(2) {
            self.entries.shrink_to_fit();
        }
    }

    /// Bytes that the next publication pushes out.
    pub(super) fn next_freed(&self, retention: &Retention) -> usize {
        let surplus = (self.entries.len() + 1).saturating_sub(retention.size);
        self.entries.iter().take(surplus).map(Entry::kept_size).sum()
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
        let freed = self.entries.drain(..).map(|entry| entry.kept_size()).sum();
        self.give_back();
        freed
    }

    /// Drops expired publications and returns their bytes.
    pub(super) fn expire(&mut self, now: Instant) -> usize {
        let mut freed = 0;
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.expires <= now) {
            freed += entry.kept_size();
        }
        if freed > 0 {
            self.give_back();
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

impl<P> Entry<P> {
    const fn kept_size(&self) -> usize {
        self.size + PLACE_BYTES
    }
}

/// Bytes that a kept publication counts for.
pub(super) fn kept_size<P: Payload>(publication: &Publication<P>) -> usize {
    publication.encoded_size_max(0) + PLACE_BYTES
}

/// Bytes that a stream counts for besides its publications.
pub(super) const fn stream_size(channel: &str) -> usize {
    STREAM_BYTES + channel.len()
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

/// A stream by itself, up to 500 bytes of memory as measured with 230,000 to 460,000 of them: its
/// place in a hash table that has just grown, its place among what expires, its epoch and what the
/// allocator adds. Its name is counted in addition.
const STREAM_BYTES: usize = 512;
/// What a small publication takes beyond its size on the wire, which counts 256 for its framing: a
/// place and the half of another that may be empty, and what the allocator adds to its payload.
const PLACE_BYTES: usize = 176;

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;

    const RETENTION: Retention =
        Retention { size: 1_000, ttl: Duration::from_secs(60), meta_ttl: Duration::from_secs(60) };
    /// Beside each allocation, and what it is rounded up to.
    const ALLOCATOR_BYTES: usize = 32;

    /// Bytes of the queue, and those that its publications are counted for.
    fn held(stream: &Stream<Bytes>) -> (usize, usize) {
        let payloads = stream.entries.len() * ALLOCATOR_BYTES;
        let places = stream.entries.capacity() * size_of::<Entry<Bytes>>();
        (places + payloads, stream.entries.iter().map(Entry::kept_size).sum())
    }

    #[test]
    fn small_publications_count_for_no_less_than_they_take_however_many_there_are() {
        let mut stream = Stream::new(Instant::ZERO, &RETENTION, "epoch".into());
        let mut publication = Publication::new(Bytes::from_static(b"1"));
        let at = |number: u64| Instant::ZERO + Duration::from_millis(number);
        for number in 0..2_000 {
            stream.push(at(number), &RETENTION, &mut publication);
            let (taken, counted) = held(&stream);
            assert!(taken <= counted, "{taken} of {counted} after {number}");
        }
        for number in 1_000..2_000 {
            assert!(stream.expire(at(number) + RETENTION.ttl) > 0);
            let (taken, counted) = held(&stream);
            assert!(taken <= counted, "{taken} of {counted} after {number} expired");
        }
        assert_eq!(held(&stream), (0, 0));
    }

    #[test]
    fn a_stream_counts_for_no_less_than_its_parts_take() {
        // A hash table is less than half full after it has grown, of seven eighths that it fills.
        let in_table = size_of::<(Arc<str>, Stream<Bytes>)>() * 16 / 7;
        let in_expiries = 2 * size_of::<(Instant, Arc<str>)>();
        let allocated = 2 * ALLOCATOR_BYTES;
        let bytes = in_table + in_expiries + allocated;
        assert!(bytes <= STREAM_BYTES, "{bytes} bytes");
    }
}

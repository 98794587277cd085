//! `ordered-once` and `no-silent-loss`: each subscriber gets what the server accepted, in its
//! order, once, or is told of a gap.

use std::collections::BTreeMap;

use motet_cluster::client::{Delivery, Gap, HandlerId, Recipients, SubscriptionState};
use motet_cluster::frame::GapReason;
use motet_protocol::{Offset, Position};

use super::Verdict;
use super::log::Log;
use crate::world::SECOND;
use crate::world::context::ContextId;

/// So long after the last fault a hole that was not filled in time is inexcusable.
const REPAIR_GRACE: u64 = 12 * SECOND;

/// A page's subscription of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) page: ContextId,
    pub(crate) topic: usize,
}

/// What the server still has of a topic.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) epoch: String,
    /// Offset of the oldest publication it keeps; one past the newest when it keeps none.
    pub(crate) oldest: Offset,
}

/// Which message of the log must come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing was promised yet.
    Any,
    /// This one.
    Exactly(usize),
    /// Not before the first, and not after the second: the promise began somewhere between.
    Between(usize, usize),
    /// This one or a later one: a gap without a known end was reported.
    AtLeast(usize),
}

#[derive(Debug)]
struct Stream {
    /// The page has a handler.
    heard: bool,
    next: Next,
    /// Last position handed out or covered; `None` while nothing was promised.
    position: Option<Position>,
    /// A gap without a known end is the newest event.
    gap_open: bool,
    /// The next `Ready` begins the promise anew.
    fresh: bool,
    /// The application knows that the server refuses the topic.
    refused: bool,
    /// Last replayed message of each handler that catches up.
    replays: BTreeMap<HandlerId, usize>,
}

impl Stream {
    const fn new() -> Self {
        Self {
            heard: true,
            next: Next::Any,
            position: None,
            gap_open: false,
            fresh: true,
            refused: false,
            replays: BTreeMap::new(),
        }
    }
}

/// All subscriptions of all pages.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    streams: BTreeMap<StreamKey, Stream>,
    /// Messages handed to applications.
    pub(crate) handed: u64,
    /// Gaps reported.
    pub(crate) gaps: u64,
}

fn unordered(key: StreamKey, text: &str) -> Verdict {
    Err(("ordered-once", format!("page {} topic {}: {text}", key.page, key.topic)))
}

fn lost(key: StreamKey, text: &str) -> Verdict {
    Err(("no-silent-loss", format!("page {} topic {}: {text}", key.page, key.topic)))
}

impl Streams {
    pub(crate) fn subscribed(&mut self, key: StreamKey) {
        self.streams.entry(key).or_insert_with(Stream::new).heard = true;
    }

    /// The page's last handler left: what comes next is a new promise.
    pub(crate) fn unsubscribed(&mut self, key: StreamKey) {
        if let Some(stream) = self.streams.get_mut(&key) {
            *stream = Stream { heard: false, refused: stream.refused, ..Stream::new() };
        }
    }

    pub(crate) fn page_gone(&mut self, page: ContextId) {
        self.streams.retain(|key, _| key.page != page);
    }

    /// Topics that a page's application listens on and has not been refused.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = StreamKey> {
        let wanted = self.streams.iter().filter(|(_, stream)| stream.heard && !stream.refused);
        wanted.map(|(key, _)| *key)
    }

    pub(crate) fn delivered(
        &mut self,
        key: StreamKey,
        delivery: &Delivery<u64>,
        log: &Log,
    ) -> Verdict {
        let Some(stream) = self.streams.get_mut(&key) else { return Ok(()) };
        self.handed += 1;
        let expected = match stream.next {
            Next::Exactly(next) => Some(next),
            _ => None,
        };
        let Some((topic, index, entry)) = log.meant(delivery.payload, expected) else {
            return unordered(key, &format!("{} was never accepted", delivery.payload));
        };
        if topic != key.topic {
            return unordered(key, &format!("{} belongs to topic {topic}", delivery.payload));
        }
        if entry.position.as_ref().is_some_and(|position| *position != delivery.position) {
            let text = format!(
                "{} is at {:?}, not at {:?}",
                entry.payload, entry.position, delivery.position
            );
            return unordered(key, &text);
        }
        if let Recipients::One(handler) = delivery.to {
            return stream.replayed_to_one(key, handler, index, log.history(topic));
        }
        if delivery.replayed && !stream.fresh {
            // Earlier than the promise, although that has begun.
            return stream.replayed_to_all(key, index);
        }
        if delivery.replayed && !log.history(topic) {
            // What several owners kept, with what was lost between them left out: nothing was
            // promised of it.
            return stream.kept_tail(key, delivery, index, log);
        }
        stream.live(key, delivery, index)
    }

    pub(crate) fn gap(
        &mut self,
        key: StreamKey,
        gap: &Gap,
        kept: Option<&Kept>,
        calm: u64,
        log: &Log,
    ) -> Verdict {
        self.gaps += 1;
        let Some(stream) = self.streams.get_mut(&key).filter(|stream| stream.heard) else {
            return Ok(());
        };
        needed(key, gap, kept, calm, log)?;
        let index = match stream.next {
            Next::Any => 0,
            Next::Exactly(index) | Next::AtLeast(index) => index,
            Next::Between(first, _) => first,
        };
        if let Some(position) = &stream.position
            && !stream.gap_open
            && *position != gap.from
        {
            return unordered(key, &format!("{gap:?} does not begin at {position:?}"));
        }
        match &gap.to {
            Some(to) if to.epoch == gap.from.epoch && to.offset <= gap.from.offset => {
                return unordered(key, &format!("{gap:?} covers nothing"));
            }
            Some(to) => {
                stream.position = Some(to.clone());
                stream.gap_open = false;
                stream.next = match log.following(key.topic, to) {
                    Some(next) if log.history(key.topic) => Next::Exactly(next),
                    _ => Next::AtLeast(index),
                };
            }
            None => {
                stream.gap_open = true;
                stream.next = Next::AtLeast(index);
            }
        }
        Ok(())
    }

    pub(crate) fn state(
        &mut self,
        key: StreamKey,
        state: &SubscriptionState,
        log: &Log,
    ) -> Verdict {
        let Some(stream) = self.streams.get_mut(&key) else { return Ok(()) };
        match state {
            SubscriptionState::Ready(position) => {
                stream.refused = false;
                if !stream.fresh || !stream.heard {
                    return Ok(());
                }
                stream.fresh = false;
                // What was replayed before lies before the promise.
                let first = match stream.next {
                    Next::Exactly(next) if log.history(key.topic) => {
                        return stream.stands(key, position, next);
                    }
                    Next::Exactly(next) | Next::AtLeast(next) | Next::Between(next, _) => next,
                    Next::Any => 0,
                };
                stream.position = Some(position.clone());
                let end = log.len(key.topic);
                stream.next = match log.following(key.topic, position) {
                    Some(next) => Next::Exactly(next),
                    None if log.history(key.topic) && position.offset > 0 => {
                        let text = format!("ready at {position:?}, which the server never reached");
                        return unordered(key, &text);
                    }
                    None => Next::Between(first, end),
                };
            }
            SubscriptionState::Failed(_) => {
                *stream = Stream { heard: stream.heard, refused: true, ..Stream::new() };
            }
            SubscriptionState::Pending | SubscriptionState::Recovering => stream.refused = false,
        }
        Ok(())
    }

    /// At rest nobody is behind what the server keeps, also where nothing follows that would show it.
    pub(crate) fn caught_up(&self, log: &Log) -> Verdict {
        for (key, stream) in &self.streams {
            let end = log.len(key.topic);
            if let Next::Exactly(next) = stream.next
                && stream.heard
                && !stream.refused
                && log.history(key.topic)
                && next < end
            {
                let text = format!("{next} of {end} messages were handed over, and nothing comes");
                return lost(*key, &text);
            }
        }
        Ok(())
    }

    /// At rest, everything accepted has been handed to everybody who listens.
    pub(crate) fn complete(&self, log: &Log) -> Verdict {
        for (key, stream) in &self.streams {
            if !stream.heard || stream.refused {
                continue;
            }
            let end = log.len(key.topic);
            if stream.next != Next::Exactly(end) {
                let text = format!("the server accepted {end} messages, next is {:?}", stream.next);
                return lost(*key, &text);
            }
        }
        Ok(())
    }
}

impl Stream {
    /// After a replay the promise begins right behind it.
    fn stands(&self, key: StreamKey, position: &Position, next: usize) -> Verdict {
        if self.position.as_ref() == Some(position) {
            return Ok(());
        }
        let text =
            format!("ready at {position:?}, though {next} was replayed up to {:?}", self.position);
        unordered(key, &text)
    }

    fn replayed_to_one(
        &mut self,
        key: StreamKey,
        handler: HandlerId,
        index: usize,
        history: bool,
    ) -> Verdict {
        let before = self.replays.insert(handler, index);
        match before {
            Some(before) if index <= before || (history && index != before + 1) => {
                unordered(key, &format!("handler {handler} is replayed {index} after {before}"))
            }
            _ => Ok(()),
        }
    }

    fn kept_tail(
        &mut self,
        key: StreamKey,
        delivery: &Delivery<u64>,
        index: usize,
        log: &Log,
    ) -> Verdict {
        // Before anything is expected, the first of two equal messages is taken for the second.
        let next_copy = |next: usize| {
            index + 1 == next
                && log.copies(delivery.payload) > 1
                && self.position.as_ref().is_some_and(|at| at.offset < delivery.position.offset)
        };
        if let Next::Exactly(next) = self.next
            && index < next
            && !next_copy(next)
        {
            return unordered(key, &format!("{} is replayed after {next}", delivery.payload));
        }
        self.position = Some(delivery.position.clone());
        self.next = Next::Exactly(index + 1);
        Ok(())
    }

    fn replayed_to_all(&mut self, key: StreamKey, index: usize) -> Verdict {
        match self.next {
            Next::Exactly(next) | Next::AtLeast(next) if index >= next => {
                unordered(key, &format!("{index} counts as replayed, but {next} was still to come"))
            }
            _ => Ok(()),
        }
    }

    fn live(&mut self, key: StreamKey, delivery: &Delivery<u64>, index: usize) -> Verdict {
        let what = format!("message {index} ({} at {:?})", delivery.payload, delivery.position);
        match self.next {
            Next::Exactly(next) | Next::AtLeast(next) | Next::Between(next, _) if index < next => {
                return unordered(key, &format!("{what} was handed out or covered before"));
            }
            Next::Exactly(next) if index > next => {
                return lost(key, &format!("{what} comes, but {next} is missing"));
            }
            Next::Between(_, next) if index > next => {
                return lost(key, &format!("{what} comes, but the promise began at {next}"));
            }
            _ => {}
        }
        if let Some(last) = &self.position
            && !self.gap_open
            && !delivery.replayed
        {
            let same = last.epoch == delivery.position.epoch;
            if !same || delivery.position.offset != last.offset + 1 {
                return unordered(key, &format!("{what} follows {last:?} without a gap"));
            }
        }
        self.position = Some(delivery.position.clone());
        self.gap_open = false;
        self.next = Next::Exactly(index + 1);
        Ok(())
    }
}

/// A gap is only for what the server cannot give any more.
fn needed(key: StreamKey, gap: &Gap, kept: Option<&Kept>, calm: u64, log: &Log) -> Verdict {
    if !log.history(key.topic) {
        return Ok(());
    }
    let same = kept.filter(|kept| kept.epoch == gap.from.epoch.as_str());
    let needless = match gap.reason {
        GapReason::NotRetained => same.is_some_and(|kept| kept.oldest <= gap.from.offset + 1),
        GapReason::StreamReset => same.is_some(),
        GapReason::OwnerChanged | GapReason::ConnectionLost => true,
        GapReason::RepairTimeout => calm > REPAIR_GRACE,
        GapReason::Overflow => true,
    };
    if needless { lost(key, &format!("{gap:?}, though the server keeps {kept:?}")) } else { Ok(()) }
}

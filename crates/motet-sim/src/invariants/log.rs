//! Every publication that the server has accepted, in its order: what judges compare with.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use motet_protocol::{Offset, Position};

use crate::setup::Topic;

/// An accepted publication.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) payload: u64,
    /// Its place, where the topic has history.
    pub(crate) position: Option<Position>,
    /// How often the server had started with an empty memory by then.
    pub(crate) server_life: u32,
}

/// The log of one topic.
#[derive(Debug, Default)]
struct TopicLog {
    history: bool,
    entries: Vec<Accepted>,
    /// Index of the first entry of each stream epoch.
    epochs: Vec<(String, usize)>,
}

/// The log of all topics.
#[derive(Debug)]
pub(crate) struct Log {
    topics: Vec<TopicLog>,
    index_of: HashMap<u64, (usize, usize)>,
    /// Payloads that a server with an empty memory took once more: their later places.
    again: HashMap<u64, Vec<usize>>,
}

impl Log {
    pub(crate) fn new(topics: &[Topic]) -> Self {
        let topics =
            topics.iter().map(|topic| TopicLog { history: topic.history, ..TopicLog::default() });
        Self { topics: topics.collect(), index_of: HashMap::new(), again: HashMap::new() }
    }

    pub(crate) fn append(&mut self, topic: usize, entry: Accepted) {
        let log = &mut self.topics[topic];
        let index = log.entries.len();
        if let Some(position) = &entry.position
            && log.epochs.last().is_none_or(|(epoch, _)| epoch != position.epoch.as_str())
        {
            log.epochs.push((position.epoch.as_str().to_owned(), index));
        }
        match self.index_of.entry(entry.payload) {
            Entry::Occupied(_) => self.again.entry(entry.payload).or_default().push(index),
            Entry::Vacant(place) => {
                place.insert((topic, index));
            }
        }
        log.entries.push(entry);
    }

    pub(crate) fn len(&self, topic: usize) -> usize {
        self.topics[topic].entries.len()
    }

    pub(crate) fn history(&self, topic: usize) -> bool {
        self.topics[topic].history
    }

    /// Where a payload stands, if the server ever accepted it.
    pub(crate) fn find(&self, payload: u64) -> Option<(usize, usize, &Accepted)> {
        let (topic, index) = *self.index_of.get(&payload)?;
        Some((topic, index, &self.topics[topic].entries[index]))
    }

    /// The entry of a payload that a delivery at this position means: one whose index is `expected`
    /// if there is one, else the last.
    pub(crate) fn meant(
        &self,
        payload: u64,
        expected: Option<usize>,
    ) -> Option<(usize, usize, &Accepted)> {
        let (topic, first) = *self.index_of.get(&payload)?;
        let later = self.again.get(&payload).map_or(&[][..], Vec::as_slice);
        let places = || core::iter::once(first).chain(later.iter().copied());
        let index = places().find(|index| Some(*index) == expected).or_else(|| places().last())?;
        Some((topic, index, &self.topics[topic].entries[index]))
    }

    /// How often the server accepted a payload.
    pub(crate) fn copies(&self, payload: u64) -> usize {
        let later = self.again.get(&payload).map_or(0, Vec::len);
        usize::from(self.index_of.contains_key(&payload)) + later
    }

    /// Index of the message that follows a position: `None` when the log does not know its epoch,
    /// which has had no message yet.
    pub(crate) fn following(&self, topic: usize, position: &Position) -> Option<usize> {
        let log = &self.topics[topic];
        let epoch = log.epochs.iter().position(|(epoch, _)| epoch == position.epoch.as_str())?;
        let start = log.epochs[epoch].1;
        let end = log.epochs.get(epoch + 1).map_or(log.entries.len(), |(_, next)| *next);
        let first = log.entries.get(start).and_then(|entry| entry.position.as_ref())?;
        let behind = (position.offset + 1).checked_sub(first.offset)?;
        let index = start + usize::try_from(behind).ok()?;
        (index <= end).then_some(index)
    }

    /// The stream that a life of the server keeps of a topic: its epoch, its newest and its first
    /// offset. `None` before its first publication.
    pub(crate) fn stream_of(&self, topic: usize, life: u32) -> Option<(String, Offset, Offset)> {
        let entries = &self.topics[topic].entries;
        let newest = entries.last().filter(|entry| entry.server_life == life)?.position.as_ref()?;
        let epoch = newest.epoch.as_str();
        let (_, start) = self.topics[topic].epochs.iter().rev().find(|(name, _)| name == epoch)?;
        let first = entries.get(*start)?.position.as_ref()?;
        Some((epoch.to_owned(), newest.offset, first.offset))
    }
}

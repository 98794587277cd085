//! A channel as this hub sees it: who listens, and how far the stream has come.

use std::collections::BTreeMap;
use std::sync::Arc;

use motet_protocol::Instant;

use super::SessionId;
use crate::message::{Publication, StreamPosition};

/// A channel, or a pattern, with at least one subscription.
///
/// Everybody in `live` has been sent everything up to `top`. So one comparison per publication,
/// not one per subscriber, tells whether somebody missed something.
pub(crate) struct Channel<P> {
    /// Who gets each publication as it comes; sorted.
    pub(crate) live: Arc<Vec<SessionId>>,
    /// Who gets joins and leaves; sorted.
    pub(crate) audience: Arc<Vec<SessionId>>,
    /// Newest position that this hub was told; `None` until somebody cares.
    pub(crate) top: Option<StreamPosition>,
    /// Watched subscriptions that are on their way, with what came in the meantime.
    pub(crate) arriving: BTreeMap<SessionId, Vec<Publication<P>>>,
    /// Watched subscriptions that have read further than this hub was told, and how far.
    pub(crate) ahead: BTreeMap<SessionId, u64>,
    /// Subscriptions of every kind and state.
    pub(crate) subscriptions: usize,
    /// Live subscriptions whose place is watched.
    pub(crate) positioned: usize,
    pub(crate) check: PositionCheck,
}

/// The periodic comparison of a channel's position with the broker's.
#[derive(Clone, Debug, Default)]
pub(crate) struct PositionCheck {
    pub(crate) due: Option<Instant>,
    /// A position that the broker had and this hub had not, at the last look.
    pub(crate) suspect: Option<StreamPosition>,
}

/// Where a publication stands against what this hub was told before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The next one, or one of a channel without a stream.
    Next,
    /// Known already.
    Old,
    /// Something before it was missed, or the stream began anew.
    Gap,
}

impl<P> Channel<P> {
    pub(crate) fn new() -> Self {
        Self {
            live: Arc::default(),
            audience: Arc::default(),
            top: None,
            arriving: BTreeMap::new(),
            ahead: BTreeMap::new(),
            subscriptions: 0,
            positioned: 0,
            check: PositionCheck::default(),
        }
    }

    /// Takes note of a publication.
    pub(crate) fn advance(&mut self, publication: &Publication<P>) -> Place {
        if publication.offset == 0 {
            return Place::Next;
        }
        let place = match &self.top {
            None => Place::Next,
            Some(top) if top.epoch != publication.epoch => Place::Gap,
            Some(top) if publication.offset <= top.offset => Place::Old,
            Some(top) if publication.offset == top.offset + 1 => Place::Next,
            Some(_) => Place::Gap,
        };
        if place != Place::Old {
            self.top = Some(StreamPosition {
                offset: publication.offset,
                epoch: publication.epoch.clone(),
            });
        }
        place
    }

    /// Moves into `live` whom the stream has caught up with.
    pub(crate) fn promote(&mut self) {
        let Some(top) = self.top.as_ref().map(|top| top.offset) else { return };
        let caught_up: Vec<_> =
            self.ahead.iter().filter(|(_, at)| **at <= top).map(|(session, _)| *session).collect();
        for session in caught_up {
            self.ahead.remove(&session);
            insert(&mut self.live, session);
        }
    }

    /// Forgets a connection, whatever it was here.
    pub(crate) fn remove(&mut self, session: SessionId) {
        self.arriving.remove(&session);
        self.ahead.remove(&session);
        remove(&mut self.live, session);
        remove(&mut self.audience, session);
    }
}

/// Adds to a sorted list. It is copied only while a fan-out still holds it.
pub(crate) fn insert(list: &mut Arc<Vec<SessionId>>, session: SessionId) {
    if let Err(at) = list.binary_search(&session) {
        Arc::make_mut(list).insert(at, session);
    }
}

/// Takes from a sorted list.
pub(crate) fn remove(list: &mut Arc<Vec<SessionId>>, session: SessionId) {
    if let Ok(at) = list.binary_search(&session) {
        Arc::make_mut(list).remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication(offset: u64, epoch: &str) -> Publication<u64> {
        Publication { offset, epoch: epoch.to_owned(), ..Publication::new(0) }
    }

    #[test]
    fn a_publication_is_next_old_or_shows_a_gap() {
        let mut channel = Channel::new();
        assert_eq!(channel.advance(&publication(5, "a")), Place::Next, "nobody knows better");
        assert_eq!(channel.advance(&publication(6, "a")), Place::Next);
        assert_eq!(channel.advance(&publication(6, "a")), Place::Old);
        assert_eq!(channel.advance(&publication(8, "a")), Place::Gap);
        assert_eq!(channel.advance(&publication(9, "a")), Place::Next, "the gap is told once");
        assert_eq!(channel.advance(&publication(1, "b")), Place::Gap, "another life");
        assert_eq!(channel.advance(&publication(0, "")), Place::Next, "no stream, no gap");
    }

    #[test]
    fn a_list_stays_sorted_and_holds_nobody_twice() {
        let mut list = Arc::new(Vec::new());
        for id in [3, 1, 2, 1] {
            insert(&mut list, SessionId(id));
        }
        assert_eq!(*list, [SessionId(1), SessionId(2), SessionId(3)]);
        let held = list.clone();
        remove(&mut list, SessionId(2));
        assert_eq!(held.len(), 3, "a fan-out keeps the list it was given");
        assert_eq!(*list, [SessionId(1), SessionId(3)]);
    }
}

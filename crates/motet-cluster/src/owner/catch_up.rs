//! Answering those who join: from the ring, else from the server's history, else with a gap.

use motet_protocol::fault::planted;
use motet_protocol::transport::{HistoryPage, HistoryRequest, Publication};
use motet_protocol::{CallId, Error, ErrorCode, Offset, Position, Rng};

use super::head_of;
use super::topic::{Owned, Phase, Waiting};
use crate::frame::{Frame, GapReason, JoinedFrame};
use crate::node::Out;

/// A page of history holds at most so many publications (the protocol's own limit).
const PAGE_MAX: u32 = 300;

/// A question that fails so often in a row while the subscription stands has no answer.
const FETCH_TRIES: u32 = 3;

/// A history request on its way.
pub(super) struct Fetch {
    pub(super) topic: String,
    since: Option<Offset>,
}

/// What a page is told, before its payloads are attached.
struct Answer<'a, P> {
    position: Position,
    missing: Option<GapReason>,
    replayed: u32,
    messages: Vec<&'a Publication<P>>,
    more: bool,
}

impl<P: Clone> Owned<P> {
    /// Answers every waiting page that needs no history.
    pub(super) fn answer_from_ring(&mut self, topic: &str, out: &mut Out<P>) {
        let Some(top) = self.position() else { return };
        for waiting in core::mem::take(&mut self.joins) {
            match self.answer(&waiting, &top) {
                Some(answer) => send(topic, self, &waiting, answer, out),
                None => self.joins.push(waiting),
            }
        }
    }

    fn answer(&self, waiting: &Waiting, top: &Position) -> Option<Answer<'_, P>> {
        let at_top = |missing, messages| Answer {
            position: top.clone(),
            missing,
            replayed: 0,
            messages,
            more: false,
        };
        let Some(from) = &waiting.join.position else {
            let wanted = waiting.join.replay as usize;
            let enough = self.ring.len() >= wanted
                || waiting.tail_fetched
                || !self.history
                || top.offset == 0;
            return enough.then(|| {
                let messages: Vec<_> = self.ring.tail(wanted).collect();
                Answer { replayed: messages.len() as u32, ..at_top(None, messages) }
            });
        };
        if from.epoch != top.epoch {
            if self.history && !waiting.stream_asked {
                return None;
            }
            return Some(at_top(Some(self.reason_of_new_stream(from)), Vec::new()));
        }
        let lost = waiting.lost;
        if from.offset >= top.offset {
            // History can be ahead of what has come live: then the page is where history took it.
            return Some(Answer { position: from.clone(), ..at_top(lost, Vec::new()) });
        }
        if let Some(messages) = self.ring.after(from.offset) {
            return Some(at_top(lost, messages.collect()));
        }
        if !self.history || planted("skip-history-paging") {
            return Some(at_top(Some(GapReason::NotRetained), Vec::new()));
        }
        None
    }

    fn reason_of_new_stream(&self, from: &Position) -> GapReason {
        if self.history {
            GapReason::StreamReset
        } else if self.counted_here(&from.epoch) {
            GapReason::ConnectionLost
        } else {
            GapReason::OwnerChanged
        }
    }

    /// The history request that helps the page furthest behind, if any needs one.
    pub(super) fn next_fetch(
        &mut self,
        topic: &str,
        rng: &mut Rng,
    ) -> Option<(Fetch, HistoryRequest)> {
        let top = self.position()?;
        let positions = self.joins.iter().filter_map(|waiting| waiting.join.position.as_ref());
        // Those of another stream only wait to hear which is the present one.
        let behind = positions.filter(|position| position.epoch == top.epoch);
        let since = behind.map(|position| position.offset).min();
        let replay = self.joins.iter().map(|waiting| waiting.join.replay).max()?;
        let older = replay.saturating_sub(self.ring.len() as u32);
        let request = HistoryRequest {
            call: CallId::random(rng),
            topic: topic.to_owned(),
            since: since
                .or_else(|| (self.ring.len() > 0).then(|| self.ring_first(top.offset)))
                .map(|offset| Position::new(top.epoch.clone(), offset)),
            limit: if since.is_some() { PAGE_MAX } else { older.min(PAGE_MAX) },
            reverse: since.is_none(),
        };
        self.joins.iter_mut().for_each(|waiting| waiting.asked = true);
        Some((Fetch { topic: topic.to_owned(), since }, request))
    }

    /// Uses a page of history for everyone it helps.
    pub(super) fn fetched(
        &mut self,
        fetch: &Fetch,
        result: Result<HistoryPage<P>, Error>,
        out: &mut Out<P>,
    ) {
        let Some(top) = self.position() else { return };
        if result.as_ref().err().is_some_and(|error| self.may_ask_again(error)) {
            return;
        }
        self.joins.iter_mut().for_each(|waiting| waiting.stream_asked |= waiting.asked);
        match result {
            Ok(page) if page.position.epoch == top.epoch => {
                self.fetch_failures = 0;
                self.use_page(fetch, page, top.offset, out);
            }
            Err(error) if error.retryable() => {
                self.history_is_lost(fetch.since, GapReason::RepairTimeout)
            }
            _ => self.history_is_lost(fetch.since, GapReason::NotRetained),
        }
    }

    /// Only the server's own answer tells that history is lost. After a lost connection or a
    /// timeout the question stands; the page's patience with its hole is the bound.
    fn may_ask_again(&mut self, error: &Error) -> bool {
        self.fetch_failures += 1;
        let passing = error.retryable() || error.code == ErrorCode::OutcomeUnknown;
        passing && (self.phase != Phase::Live || self.fetch_failures < FETCH_TRIES)
    }

    fn use_page(&mut self, fetch: &Fetch, page: HistoryPage<P>, top: Offset, out: &mut Out<P>) {
        match fetch.since {
            Some(since) => self.forward_page(&fetch.topic, since, &page.publications, out),
            None => self.tail_page(page.publications, top),
        }
    }

    fn tail_page(&mut self, newest_first: Vec<Publication<P>>, top: Offset) {
        let (kept, ring_first) = (self.ring.len(), self.ring_first(top));
        // A server may give less than it was asked for and has; where it has no more it gives none.
        let oldest = newest_first.last().map_or(0, |message| message.offset);
        let ascending = newest_first.into_iter().rev();
        self.ring.prepend(ascending.filter(|message| message.offset < ring_first).collect(), top);
        if oldest > 1 && self.ring.len() > kept {
            return;
        }
        for waiting in &mut self.joins {
            waiting.tail_fetched |= waiting.asked && waiting.join.position.is_none();
        }
    }

    fn ring_first(&self, top: Offset) -> Offset {
        top + 1 - self.ring.len() as Offset
    }

    fn history_is_lost(&mut self, since: Option<Offset>, reason: GapReason) {
        let Some(top) = self.position() else { return };
        let resume = top.offset - self.ring.len() as Offset;
        for waiting in &mut self.joins {
            match (&mut waiting.join.position, since) {
                (Some(position), Some(_))
                    if position.epoch == top.epoch && position.offset < resume =>
                {
                    position.offset = resume;
                    waiting.lost = Some(reason);
                }
                _ => waiting.tail_fetched |= waiting.asked,
            }
        }
    }

    fn is_in_stream(&self, position: &Position) -> bool {
        self.position().is_some_and(|top| top.epoch == position.epoch)
    }

    /// Sends each waiting page what it misses of `[since, ...]` and moves it on. Pages at the end
    /// are finished from the ring by the next round.
    fn forward_page(
        &mut self,
        topic: &str,
        since: Offset,
        page: &[Publication<P>],
        out: &mut Out<P>,
    ) {
        let (Some(first), Some(last)) =
            (page.first(), page.last().filter(|last| last.offset > since))
        else {
            return self.history_is_lost(Some(since), GapReason::NotRetained);
        };
        let mut joins = core::mem::take(&mut self.joins);
        for waiting in &mut joins {
            let Some(from) =
                waiting.join.position.clone().filter(|p| {
                    self.is_in_stream(p) && p.offset >= since && p.offset < last.offset
                })
            else {
                continue;
            };
            let skipped = first.offset > from.offset + 1;
            let missing = waiting.lost.take().or(skipped.then_some(GapReason::NotRetained));
            let messages: Vec<_> =
                page.iter().filter(|message| message.offset > from.offset).collect();
            let position = Position::new(from.epoch, last.offset);
            waiting.join.position = Some(position.clone());
            send(
                topic,
                self,
                waiting,
                Answer { position, missing, replayed: 0, messages, more: true },
                out,
            );
        }
        self.joins = joins;
    }
}

fn send<P: Clone>(
    topic: &str,
    owned: &Owned<P>,
    waiting: &Waiting,
    answer: Answer<'_, P>,
    out: &mut Out<P>,
) {
    out.send_with(waiting.node, |packet| {
        Frame::Joined(JoinedFrame {
            topic: topic.to_owned(),
            client: waiting.join.client,
            call: waiting.join.call,
            fence: owned.fence,
            position: answer.position,
            missing: answer.missing,
            replayed: answer.replayed,
            messages: answer.messages.into_iter().map(|message| head_of(message, packet)).collect(),
            more: answer.more,
            history: owned.history,
        })
    });
}

//! What happens when nothing happens.

use core::time::Duration;

use motet_protocol::{ErrorCode, Instant, STALL_THRESHOLD};

use super::Client;
use super::io::Output;
use super::link::Link;
use super::subscription::{Phase, Subscription};
use crate::message::Verdict;

/// How long a client that was stalled listens before it judges the silence of others.
const STALL_GRACE: Duration = Duration::from_secs(3);

/// A context that slept finds every deadline overdue while the messages that would have met them
/// lie unread in its socket. It reads first, once: a link that stays silent then is dead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stall {
    judge_after: Option<Instant>,
    /// When the server said anything last.
    heard: Instant,
}

impl Stall {
    /// The link is alive, so the next stall is granted its grace again.
    pub(super) const fn heard(&mut self, now: Instant) {
        self.judge_after = None;
        self.heard = now;
    }

    /// Whether the silence of others may be judged now.
    fn judges(&mut self, now: Instant, due: Option<Instant>) -> bool {
        match self.judge_after {
            Some(after) => now >= after,
            None if due.is_some_and(|due| now - due > STALL_THRESHOLD) => {
                self.judge_after = Some(now + STALL_GRACE);
                false
            }
            None => true,
        }
    }
}

impl<P: Clone> Client<P> {
    /// When to call [`Client::handle`] with [`Input::Tick`](super::Input::Tick), at the latest.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let judged =
            self.judged_due().map(|due| self.stall.judge_after.map_or(due, |after| after.max(due)));
        let own = match self.link {
            Link::AwaitingToken { until }
            | Link::BackingOff { until }
            | Link::Closing { until, .. } => Some(until),
            _ => None,
        };
        [judged, own, self.refresh.due(), self.topics_due, self.held.due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The first deadline that judges somebody else's silence.
    fn judged_due(&self) -> Option<Instant> {
        let opening = match self.link {
            Link::Opening { until, .. } => Some(until),
            _ => None,
        };
        [opening, self.ping.deadline, self.calls.next_deadline()].into_iter().flatten().min()
    }

    pub(super) fn tick(&mut self, now: Instant) {
        let due = self.judged_due();
        if due.is_some_and(|due| due <= now) && self.stall.judges(now, due) {
            self.judge_silence(now);
        }
        // Before anything that may make the connection stand, so that nothing late is written.
        self.expire_held(now);
        self.link_due(now);
        if self.refresh.due().is_some_and(|due| due <= now) {
            self.refresh_due(now);
        }
        if self.topics_due.is_some_and(|due| due <= now) {
            self.topics_due(now);
        }
    }

    fn judge_silence(&mut self, now: Instant) {
        let opening = matches!(self.link, Link::Opening { until, .. } if until <= now);
        let silent = self.ping.deadline.is_some_and(|deadline| deadline <= now);
        if opening || silent {
            return self.lose(now, ErrorCode::TransportUnavailable.into(), Verdict::Retry);
        }
        let mut unanswered = false;
        while let Some(call) = self.calls.take_overdue(now) {
            unanswered = true;
            self.overdue(now, call);
        }
        // A server that is slow with one answer still talks; a link without a word for as long as
        // an answer may take is dead, long before its pings are missed.
        let mute = now - self.stall.heard >= self.config.command_timeout;
        if unanswered
            && mute
            && matches!(self.link, Link::Connecting { .. } | Link::Connected { .. })
        {
            self.lose(now, ErrorCode::TransportUnavailable.into(), Verdict::Retry);
        }
    }

    fn link_due(&mut self, now: Instant) {
        match self.link {
            Link::AwaitingToken { until } if until <= now => {
                self.lose(now, ErrorCode::TokenUnavailable.into(), Verdict::Retry);
            }
            Link::BackingOff { until } if until <= now => self.attempt(now),
            Link::Closing { until, then, .. } if until <= now => self.go_on(now, then),
            _ => {}
        }
    }

    fn topics_due(&mut self, now: Instant) {
        let due = |s: &Subscription| s.due().is_some_and(|due| due <= now);
        let topics: Vec<_> =
            self.topics.iter().filter(|(_, s)| due(s)).map(|(topic, _)| topic.clone()).collect();
        for topic in topics {
            match self.topics.get(&topic).map(|subscription| subscription.phase) {
                Some(Phase::BackingOff { .. }) => self.subscribe(now, &topic),
                Some(Phase::AwaitingToken { .. }) => {
                    self.back_off(now, &topic, ErrorCode::TokenUnavailable.into());
                }
                Some(Phase::Live) => self.sub_refresh_due(now, &topic),
                _ => {}
            }
        }
        self.topics_due = self.topics.values().filter_map(Subscription::due).min();
    }

    /// Takes every output at once.
    pub fn drain(&mut self) -> Vec<Output<P>> {
        core::iter::from_fn(|| self.poll_output()).collect()
    }
}

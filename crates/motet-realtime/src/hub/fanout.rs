//! From one event of a channel to everybody who listens.

use std::sync::Arc;

use super::channel::Place;
use super::{Hub, Output, SessionId};
use crate::message::{ClientInfo, Publication, Push, PushEvent};
use crate::pattern;
use crate::payload::Payload;

/// Publications kept back for one subscription on its way; one more and its place is lost.
const KEPT_BACK_MAX: usize = 1_000;

impl<P: Payload> Hub<P> {
    pub(super) fn deliver(&mut self, channel: &Arc<str>, publication: Publication<P>) {
        if self.patterns > 0 {
            self.deliver_to_patterns(channel, &publication);
        }
        let Some(entry) = self.channels.get_mut(channel) else { return };
        let place = entry.advance(&publication);
        let mut lost = Vec::new();
        for (session, kept_back) in &mut entry.arriving {
            if kept_back.len() < KEPT_BACK_MAX {
                kept_back.push(publication.clone());
            } else {
                lost.push(*session);
            }
        }
        if place == Place::Gap {
            lost.extend(self.watched(channel));
        }
        for session in lost {
            self.lost_place(session, channel);
        }
        let Some(entry) = self.channels.get_mut(channel) else { return };
        if place != Place::Old && !entry.live.is_empty() {
            let push = exact_push(channel, publication);
            self.outputs.push_back(Output::Fanout(push, entry.live.clone()));
        }
        entry.promote();
    }

    /// Live subscriptions of a channel whose place is watched.
    fn watched(&self, channel: &Arc<str>) -> Vec<SessionId> {
        let Some(entry) = self.channels.get(channel) else { return Vec::new() };
        let members = entry.live.iter().chain(entry.ahead.keys());
        let positioned = members.filter(|id| {
            let sub = self.sessions.get(id).and_then(|session| session.subs.get(channel));
            sub.is_some_and(|sub| sub.traits.positioned)
        });
        positioned.copied().collect()
    }

    pub(super) fn watched_lost_place(&mut self, channel: &Arc<str>) {
        for session in self.watched(channel) {
            self.lost_place(session, channel);
        }
    }

    fn deliver_to_patterns(&mut self, channel: &Arc<str>, publication: &Publication<P>) {
        for pattern in pattern::matching(channel) {
            let Some(entry) = self.channels.get(pattern.as_str()) else { continue };
            if entry.live.is_empty() {
                continue;
            }
            let publication = Publication { channel: channel.to_string(), ..publication.clone() };
            let push = Push::publication(pattern, publication);
            self.outputs.push_back(Output::Fanout(push, entry.live.clone()));
        }
    }

    pub(super) fn announce(
        &mut self,
        channel: &Arc<str>,
        info: Box<ClientInfo<P>>,
        event: fn(Box<ClientInfo<P>>) -> PushEvent<P>,
    ) {
        let Some(entry) = self.channels.get(channel) else { return };
        if entry.audience.is_empty() {
            return;
        }
        let push = Push { channel: channel.to_string(), event: event(info) };
        self.outputs.push_back(Output::Fanout(push, entry.audience.clone()));
    }
}

/// A publication as subscribers of its very channel see it: only the first of a stream names the
/// stream's life.
pub(super) fn exact_push<P>(channel: &Arc<str>, mut publication: Publication<P>) -> Push<P> {
    if publication.offset != 1 {
        publication.epoch.clear();
    }
    Push::publication(channel.as_ref(), publication)
}

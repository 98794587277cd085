//! Live publications.

use motet_protocol::Instant;
use motet_protocol::transport::TransportEvent;

use super::Client;
use super::subscription::{Afterwards, Fit, Phase, hand_out};
use crate::message::Publication;

impl<P: Clone> Client<P> {
    /// Hands a live publication out if it is the next one of its topic. A repeat is dropped; a
    /// hole makes the client subscribe again and recover what is missing, in order.
    pub(super) fn published_live(
        &mut self,
        now: Instant,
        channel: String,
        publication: Publication<P>,
        bytes: u32,
    ) {
        let Some(subscription) = self.topics.get_mut(&channel) else { return };
        if subscription.phase != Phase::Live {
            return;
        }
        if !publication.channel.is_empty() && publication.channel != channel {
            // Of a pattern: it has a place in its own channel's stream, which is not followed here.
            let topic = publication.channel.clone();
            let publication = hand_out(publication, true, bytes);
            return self.event(TransportEvent::Publication { topic, publication });
        }
        match subscription.advance(&publication) {
            Fit::Next => {
                let positioned = subscription.position.is_some();
                let publication = hand_out(publication, positioned, bytes);
                self.event(TransportEvent::Publication { topic: channel, publication });
            }
            Fit::Repeat => {}
            Fit::Hole => self.leave(now, &channel, Afterwards::Repair),
        }
    }
}

//! One topic that is, or shall be, subscribed.

use motet_protocol::transport::Publication;
use motet_protocol::{BackoffPolicy, Instant, Position, StreamEpoch};

use super::retry::Retry;
use crate::message::{self, SubscribeResult, TAG_MESSAGE_ID, TAG_TIMESTAMP_MS};

/// Where a subscription stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// For a connection.
    Waiting,
    /// For a token.
    AwaitingToken { until: Instant },
    /// For the reply to the command with this id.
    Subscribing { id: u32 },
    /// Nothing: it stands.
    Live,
    /// For the reply to the unsubscribe command with this id.
    Leaving { id: u32, then: Afterwards },
    /// For the next attempt.
    BackingOff { until: Instant },
}

/// What follows when the server has confirmed an unsubscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Afterwards {
    /// The node gave the topic up.
    Forget,
    /// The node gave the topic up, and wanted it again before the server had answered.
    SubscribeAnew,
    /// The server's view of the subscription was wrong or had a hole: subscribe again after a
    /// moment, without a word to the node.
    Repair,
}

/// Keeping a token fresh: of the connection, or of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Refresh {
    /// Nothing expires.
    #[default]
    None,
    /// A new token is wanted at this time.
    At(Instant),
    /// The application was asked for it.
    AwaitingToken { until: Instant },
    /// The server has it, in the command with this id.
    InFlight { id: u32 },
}

impl Refresh {
    /// When something is to be done.
    pub(super) const fn due(self) -> Option<Instant> {
        match self {
            Self::At(until) | Self::AwaitingToken { until } => Some(until),
            Self::None | Self::InFlight { .. } => None,
        }
    }
}

/// What a live publication is to the place where a subscription stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// The next one, or one that has no place.
    Next,
    /// One that was handed out before.
    Repeat,
    /// Something before it is missing, or it is of another life of the stream.
    Hole,
}

/// One topic that is, or shall be, subscribed.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    pub(super) phase: Phase,
    /// Last position handed out, or the one to start from.
    pub(super) position: Option<Position>,
    /// Whether the server can recover from `position`, as far as is known.
    pub(super) recoverable: bool,
    /// Whether the request in flight asked for a recovery.
    pub(super) recovering: bool,
    pub(super) token: Option<String>,
    /// A token was used before, so one is needed again.
    pub(super) token_seen: bool,
    pub(super) refresh: Refresh,
    pub(super) retry: Retry,
}

impl Subscription {
    pub(super) fn new(since: Option<Position>, backoff: BackoffPolicy) -> Self {
        Self {
            phase: Phase::Waiting,
            recoverable: since.is_some(),
            position: since,
            recovering: false,
            token: None,
            token_seen: false,
            refresh: Refresh::None,
            retry: Retry::new(backoff),
        }
    }

    /// Starts from `since` whatever was known before.
    pub(super) fn restart(&mut self, since: Option<Position>) {
        self.recoverable = since.is_some();
        self.position = since;
    }

    /// Token and place are void.
    pub(super) fn invalidate(&mut self) {
        self.restart(None);
        self.token = None;
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::AwaitingToken { until } | Phase::BackingOff { until } => Some(until),
            Phase::Live => self.refresh.due(),
            Phase::Waiting | Phase::Subscribing { .. } | Phase::Leaving { .. } => None,
        }
    }

    /// Takes the server's word on where the subscription stands. True when the recovery that was
    /// asked for is complete.
    pub(super) fn stand<P>(&mut self, result: &SubscribeResult<P>) -> bool {
        self.phase = Phase::Live;
        self.recoverable = result.recoverable;
        let recovered = self.recovering && result.recovered;
        self.position = (result.recoverable || result.positioned).then(|| {
            let last = result.publications.last().map_or(0, |publication| publication.offset);
            Position::new(StreamEpoch::new(result.epoch.as_str()), last.max(result.offset))
        });
        recovered
    }

    /// Judges a live publication and moves on if it is the next one.
    pub(super) fn advance<P>(&mut self, publication: &message::Publication<P>) -> Fit {
        let Some(position) = &mut self.position else { return Fit::Next };
        if publication.offset == 0 {
            return Fit::Next;
        }
        let known = position.epoch.as_str();
        if !publication.epoch.is_empty() && publication.epoch != known {
            if !known.is_empty() {
                return Fit::Hole;
            }
            position.epoch = StreamEpoch::new(publication.epoch.as_str());
        }
        if publication.offset <= position.offset {
            return Fit::Repeat;
        }
        if publication.offset > position.offset + 1 {
            return Fit::Hole;
        }
        position.offset = publication.offset;
        Fit::Next
    }
}

/// A publication as the node wants it.
pub(super) fn hand_out<P>(
    publication: message::Publication<P>,
    positioned: bool,
    bytes: u32,
) -> Publication<P> {
    let mut tags = publication.tags;
    Publication {
        offset: if positioned { publication.offset } else { 0 },
        message_id: tags.remove(TAG_MESSAGE_ID),
        timestamp_ms: tags.get(TAG_TIMESTAMP_MS).and_then(|text| text.parse().ok()),
        size: bytes,
        payload: publication.data,
    }
}

/// Several publications that came in one message of `bytes`: each counts an equal share.
pub(super) fn hand_out_all<P>(
    publications: Vec<message::Publication<P>>,
    positioned: bool,
    bytes: u32,
) -> Vec<Publication<P>> {
    let share = bytes / u32::try_from(publications.len()).unwrap_or(u32::MAX).max(1);
    publications.into_iter().map(|publication| hand_out(publication, positioned, share)).collect()
}

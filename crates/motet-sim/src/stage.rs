//! How far a route is.

/// How far a route is, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Decided, not yet confirmed.
    Assigned,
    /// The owner is subscribing.
    Subscribing,
    /// The owner is subscribed.
    Subscribed,
    /// The server refused it.
    Failed,
    /// The old owner has yet to release it.
    Handoff,
}

impl Stage {
    /// Every stage.
    pub(crate) const ALL: [Self; 5] =
        [Self::Assigned, Self::Subscribing, Self::Subscribed, Self::Failed, Self::Handoff];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Assigned => "assigned",
            Self::Subscribing => "subscribing",
            Self::Subscribed => "subscribed",
            Self::Failed => "failed",
            Self::Handoff => "handoff",
        }
    }
}

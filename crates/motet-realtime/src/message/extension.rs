//! The Motet extension: negotiated at connect, invisible to every other client and server.
//!
//! It travels under the JSON key `motet` and the Protobuf field 1000, which peers that do not know
//! it ignore. Towards subscribers a publication's message id and timestamp are ordinary tags, so
//! that any client can read them.

/// Tag that carries the application's message id of a publication.
pub const TAG_MESSAGE_ID: &str = "motet_id";

/// Tag that carries the application's timestamp, decimal milliseconds since 1970.
pub const TAG_TIMESTAMP_MS: &str = "motet_ts";

/// What both sides of a connection can do beyond the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// A publication's idempotency key makes sending it again safe.
    pub idempotency: bool,
    /// Publications of one connection are applied in the order in which they were sent.
    pub ordered_publish: bool,
    /// Patterns can be subscribed; their publications name channel and position.
    pub wildcards: bool,
}

impl Features {
    /// Every feature.
    pub const ALL: Self = Self { idempotency: true, ordered_publish: true, wildcards: true };

    /// What both sides can do.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self {
            idempotency: self.idempotency && other.idempotency,
            ordered_publish: self.ordered_publish && other.ordered_publish,
            wildcards: self.wildcards && other.wildcards,
        }
    }
}

/// What the extension adds to a publish request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishExtension {
    /// Idempotency key.
    pub key: Option<String>,
    /// The application's message id.
    pub message_id: Option<String>,
    /// The application's timestamp, milliseconds since 1970.
    pub timestamp_ms: Option<i64>,
}

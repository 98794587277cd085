//! Prolonging connections and subscriptions with new tokens.

/// Prolongs the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefreshRequest {
    /// The new connection token.
    pub token: String,
}

/// The connection was prolonged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefreshResult {
    /// Id of this connection.
    pub client: String,
    /// The server's version.
    pub version: String,
    /// Whether the connection expires again.
    pub expires: bool,
    /// Seconds until it does.
    pub ttl: u32,
}

/// Prolongs a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubRefreshRequest {
    /// The channel.
    pub channel: String,
    /// The new subscription token.
    pub token: String,
    /// 0 prolongs; other kinds track keys of polled channels.
    pub kind: i32,
}

/// The subscription was prolonged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubRefreshResult {
    /// Whether the subscription expires again.
    pub expires: bool,
    /// Seconds until it does.
    pub ttl: u32,
}

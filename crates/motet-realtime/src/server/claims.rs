//! What a verified token says. Checking signatures is the driver's part.

use core::time::Duration;
use std::collections::BTreeMap;

use thiserror::Error;

/// Which kind of token is to be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Opens or prolongs a connection.
    Connection,
    /// Opens or prolongs a subscription.
    Subscription,
}

/// Claims of a verified token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenClaims<P> {
    /// Of a connection token.
    Connection(Box<ConnectionClaims<P>>),
    /// Of a subscription token.
    Subscription(Box<SubscriptionClaims<P>>),
}

/// Claims of a connection token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionClaims<P> {
    /// The user; empty for an anonymous one.
    pub user: String,
    /// How long the connection may last without a refresh; `None` for ever.
    pub expires_in: Option<Duration>,
    /// Told to others in presence, joins and publications.
    pub info: Option<P>,
    /// Server-side subscriptions.
    pub subs: BTreeMap<String, ServerSubscription<P>>,
}

impl<P> ConnectionClaims<P> {
    /// Claims that name a user and nothing else.
    #[must_use]
    pub fn user(user: impl Into<String>) -> Self {
        Self { user: user.into(), expires_in: None, info: None, subs: BTreeMap::new() }
    }
}

/// A subscription that the server makes for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSubscription<P> {
    /// Told to others in presence and joins of the channel.
    pub info: Option<P>,
    /// Handed to the client.
    pub data: Option<P>,
    /// Deviations from the namespace.
    pub overrides: SubscriptionOverride,
}

impl<P> Default for ServerSubscription<P> {
    fn default() -> Self {
        Self { info: None, data: None, overrides: SubscriptionOverride::default() }
    }
}

/// Deviations of one subscription from its namespace; `None` deviates not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionOverride {
    /// Overrides `presence`.
    pub presence: Option<bool>,
    /// Overrides `join_leave`.
    pub join_leave: Option<bool>,
    /// Overrides `force_push_join_leave`.
    pub force_push_join_leave: Option<bool>,
    /// Overrides `force_recovery`.
    pub force_recovery: Option<bool>,
    /// Overrides `force_positioning`.
    pub force_positioning: Option<bool>,
}

/// Claims of a subscription token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionClaims<P> {
    /// The user it was made for.
    pub user: String,
    /// The channel it opens.
    pub channel: String,
    /// The connection it was made for; `None` for any of the user's.
    pub client: Option<String>,
    /// How long the subscription may last without a refresh; `None` for ever.
    pub expires_in: Option<Duration>,
    /// Told to others in presence and joins of the channel.
    pub info: Option<P>,
    /// Deviations from the namespace.
    pub overrides: SubscriptionOverride,
}

/// Why a token was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Malformed, wrongly signed, or meant for something else.
    #[error("the token is malformed, wrongly signed, or meant for something else")]
    Invalid,
    /// Past its expiry.
    #[error("the token is past its expiry")]
    Expired,
    /// The keys to check it with cannot be had now.
    #[error("the keys to check the token with cannot be had now")]
    KeysUnavailable,
}

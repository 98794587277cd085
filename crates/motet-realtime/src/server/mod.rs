//! The server's side of one connection: what a session knows, what its user may do.
//!
//! Sessions live inside the [`Hub`](crate::hub::Hub), which drives them; this module holds their
//! state, their rules and the plain data that configures them.

mod channel_name;
mod claims;
mod namespace;
mod options;
mod permission;
mod session;
mod subscription;

pub use channel_name::ChannelName;
pub use claims::{
    ConnectionClaims, ServerSubscription, SubscriptionClaims, SubscriptionOverride, TokenClaims,
    TokenError, TokenKind,
};
pub use namespace::{Allow, Namespace, Namespaces, RecoveryMode};
pub use options::HubOptions;

pub(crate) use permission::{Right, may_subscribe};
pub(crate) use session::{Allowance, Phase, Session, Step, Waiting};
pub(crate) use subscription::{
    ConnectProgress, Origin, Subscribing, Subscription, SubscriptionState, Traits,
};

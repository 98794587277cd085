//! One page's handle on the bus.

mod api;

pub use api::{
    ClientConfig, ClientIdentity, ClientInput, ClientOutput, ClientStatus, Delivery, ErrorSource,
    Gap, HandlerId, PageEvent, PendingPublish, PublishCall, Recipients, SubscriptionState,
};

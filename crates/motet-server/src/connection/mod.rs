//! One WebSocket connection: a lean task between the socket and the hub.

mod backlog;
mod queue;
mod stream;
mod task;
mod upgrade;

pub use backlog::Backlog;
pub use queue::{Kind, Next, Outgoing, Pushed};
pub use stream::ServerStream;
pub use upgrade::{Upgrade, UpgradeError};

pub(crate) use task::{ConnectionLimits, run};

//! One WebSocket connection: a lean task between the socket and the hub.

mod queue;
mod stream;
mod task;
mod upgrade;

pub use queue::{Kind, Next, Outgoing, Pushed};
pub use stream::ServerStream;
pub use upgrade::{Upgrade, UpgradeError};

pub(crate) use task::{ConnectionLimits, run};

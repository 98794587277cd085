//! One WebSocket connection: a lean task between the socket and the hub.

mod backlog;
mod patient;
mod queue;
mod stream;
mod task;
mod upgrade;

pub use backlog::Backlog;
pub use patient::Patient;
pub use queue::{Kind, Next, Outgoing, Pushed};
pub use stream::{ServerStream, Transport};
pub use upgrade::{Upgrade, UpgradeError};

pub(crate) use task::{ConnectionLimits, run};

//! The lock seam: what a node asks of the platform's lock manager (Web Locks in a browser).

use crate::name::LockName;

/// Number of a lock request, unique within its node.
pub type LockRequest = u32;

/// How a lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// One holder.
    Exclusive,
    /// Many holders, while no exclusive one is ahead in the queue.
    Shared,
    /// Exclusive, but refused at once when it cannot be granted now.
    ExclusiveIfAvailable,
    /// Exclusive and now: present holders lose the lock.
    Steal,
}

/// What a node asks of the lock manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOp {
    /// Ask for a lock; answered by `Granted` or, with `ExclusiveIfAvailable`, `Refused`.
    Request {
        /// The request.
        request: LockRequest,
        /// The lock.
        name: LockName,
        /// How.
        mode: LockMode,
    },
    /// Let go of a granted lock, or give up a queued request. No event follows.
    Release {
        /// The request.
        request: LockRequest,
    },
    /// List what is held; answered by `Snapshot`.
    Query,
}

/// One row of the list of held locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The lock.
    pub name: LockName,
    /// Whose it is: opaque text that is the same for all locks of one context.
    pub holder: String,
}

/// What a node hears from the lock manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockEvent {
    /// The lock is held.
    Granted {
        /// The request.
        request: LockRequest,
    },
    /// The lock was not available.
    Refused {
        /// The request.
        request: LockRequest,
    },
    /// A held lock was taken away (stolen), or the lock manager failed.
    Lost {
        /// The request.
        request: LockRequest,
    },
    /// Answer to `Query`: the cluster's held locks.
    Snapshot {
        /// Held locks.
        held: Vec<HeldLock>,
    },
}

//! What each of a node's lock requests is for.

use litemap::LiteMap;
use motet_protocol::{ClientId, Fence, NodeId};

use super::out::Out;
use crate::lock::{LockMode, LockOp, LockRequest};
use crate::name::LockName;

/// Why a lock was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// The node's own life.
    Life,
    /// To become coordinator.
    Office,
    /// To hold a term as coordinator.
    Term(Fence),
    /// To learn that the coordinator of this fence is gone.
    TermEnd(Fence),
    /// To leave a trace of the fence that is followed.
    Known(Fence),
    /// To learn that a member is gone.
    Death(NodeId),
    /// To learn that a page of a shared node is gone.
    PageEnd(ClientId),
}

/// Requests that are queued or granted.
#[derive(Default)]
pub(super) struct Locks {
    last: LockRequest,
    purposes: LiteMap<LockRequest, Purpose>,
}

impl Locks {
    pub(super) fn request<P: Clone>(
        &mut self,
        purpose: Purpose,
        steal: bool,
        me: NodeId,
        out: &mut Out<P>,
    ) {
        let (name, mode) = match purpose {
            Purpose::Life => (LockName::Node(me), LockMode::Exclusive),
            Purpose::Office if steal => (LockName::Coordinator, LockMode::Steal),
            Purpose::Office => (LockName::Coordinator, LockMode::Exclusive),
            Purpose::Term(fence) => (LockName::Term(fence), LockMode::ExclusiveIfAvailable),
            Purpose::TermEnd(fence) => (LockName::Term(fence), LockMode::Shared),
            Purpose::Known(fence) => (LockName::Known(fence), LockMode::Shared),
            // Shared: the node's own page waits for the same lock, and a frozen page that is
            // granted it must not keep the coordinator waiting.
            Purpose::Death(node) => (LockName::Node(node), LockMode::Shared),
            Purpose::PageEnd(client) => (LockName::Page(client), LockMode::Shared),
        };
        self.last += 1;
        self.purposes.insert(self.last, purpose);
        out.lock(LockOp::Request { request: self.last, name, mode });
    }

    pub(super) fn purpose(&self, request: LockRequest) -> Option<Purpose> {
        self.purposes.get(&request).copied()
    }

    /// Forgets a request that the lock manager has ended.
    pub(super) fn forget(&mut self, request: LockRequest) {
        self.purposes.remove(&request);
    }

    pub(super) fn has(&self, purpose: Purpose) -> bool {
        self.purposes.values().any(|known| *known == purpose)
    }

    /// Releases every request whose purpose is among the chosen.
    pub(super) fn release<P: Clone>(&mut self, chosen: impl Fn(Purpose) -> bool, out: &mut Out<P>) {
        self.purposes.retain(|request, purpose| {
            let released = chosen(*purpose);
            if released {
                out.lock(LockOp::Release { request: *request });
            }
            !released
        });
    }
}

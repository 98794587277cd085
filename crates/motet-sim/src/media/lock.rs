//! Web Locks: one manager for all contexts of the origin.
//!
//! Grants are FIFO. A context that cannot run is granted like any other, and blocks the queue
//! behind it. Stealing takes a lock from its holders at once; what they are told about it waits
//! in their event loops.

use std::collections::{BTreeMap, VecDeque};

use motet_cluster::ClusterName;
use motet_cluster::lock::{HeldLock, LockEvent, LockMode, LockOp, LockRequest};
use motet_cluster::name::LockName;

use crate::world::context::ContextId;

/// One user of the lock manager: a page's or a host's driver. Never used again.
pub(crate) type Agent = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    agent: Agent,
    request: LockRequest,
    shared: bool,
}

#[derive(Debug, Default)]
struct Lock {
    holders: Vec<Claim>,
    queue: VecDeque<Claim>,
}

impl Lock {
    fn grantable(&self, claim: &Claim) -> bool {
        self.holders.is_empty() || (claim.shared && self.holders.iter().all(|held| held.shared))
    }

    /// Grants from the head of the queue as far as possible.
    fn advance(&mut self, news: &mut Vec<News>) {
        while let Some(claim) = self.queue.front().copied() {
            if !self.grantable(&claim) {
                break;
            }
            self.queue.pop_front();
            self.grant(claim, news);
        }
    }

    fn grant(&mut self, claim: Claim, news: &mut Vec<News>) {
        self.holders.push(claim);
        news.push(News {
            agent: claim.agent,
            event: LockEvent::Granted { request: claim.request },
        });
    }
}

/// Something that an agent is to be told.
#[derive(Clone, Debug)]
pub(crate) struct News {
    pub(crate) agent: Agent,
    pub(crate) event: LockEvent,
}

/// The lock manager.
#[derive(Debug)]
pub(crate) struct LockManager {
    cluster: ClusterName,
    locks: BTreeMap<LockName, Lock>,
    /// The context of each agent, `None` once it is gone.
    agents: Vec<Option<ContextId>>,
}

impl LockManager {
    pub(crate) fn new(cluster: ClusterName) -> Self {
        Self { cluster, locks: BTreeMap::new(), agents: Vec::new() }
    }

    pub(crate) fn agent(&mut self, context: ContextId) -> Agent {
        self.agents.push(Some(context));
        self.agents.len() - 1
    }

    pub(crate) fn context_of(&self, agent: Agent) -> Option<ContextId> {
        self.agents[agent]
    }

    pub(crate) fn handle(&mut self, agent: Agent, op: &LockOp) -> Vec<News> {
        let mut news = Vec::new();
        // A request that was on its way when its context died comes to nothing.
        if self.agents[agent].is_none() {
            return news;
        }
        match *op {
            LockOp::Request { request, name, mode } => {
                self.request(
                    Claim { agent, request, shared: mode == LockMode::Shared },
                    name,
                    mode,
                    &mut news,
                );
            }
            LockOp::Release { request } => {
                self.remove(&mut news, |claim| claim.agent == agent && claim.request == request);
            }
            LockOp::Query => {
                news.push(News { agent, event: LockEvent::Snapshot { held: self.snapshot() } });
            }
        }
        news
    }

    fn request(&mut self, claim: Claim, name: LockName, mode: LockMode, news: &mut Vec<News>) {
        // The name travels as text, as it does in a browser.
        let name = self.cluster.parse_lock(&self.cluster.lock(name)).expect("names read back");
        let lock = self.locks.entry(name).or_default();
        let free = lock.queue.is_empty() && lock.grantable(&claim);
        match mode {
            LockMode::Steal => {
                for held in core::mem::take(&mut lock.holders) {
                    let event = LockEvent::Lost { request: held.request };
                    news.push(News { agent: held.agent, event });
                }
                lock.grant(claim, news);
            }
            LockMode::ExclusiveIfAvailable if !free => {
                let event = LockEvent::Refused { request: claim.request };
                news.push(News { agent: claim.agent, event });
            }
            _ if free => lock.grant(claim, news),
            _ => lock.queue.push_back(claim),
        }
    }

    /// Everything of an agent is free: its context ended or its driver let go.
    pub(crate) fn agent_gone(&mut self, agent: Agent) -> Vec<News> {
        let mut news = Vec::new();
        self.agents[agent] = None;
        self.remove(&mut news, |claim| claim.agent == agent);
        news
    }

    /// The manager itself starts anew: every holder and every waiter is told that it lost.
    pub(crate) fn vanish(&mut self) -> Vec<News> {
        let locks = core::mem::take(&mut self.locks);
        let claims =
            locks.into_values().flat_map(|lock| lock.holders.into_iter().chain(lock.queue));
        claims
            .map(|claim| News {
                agent: claim.agent,
                event: LockEvent::Lost { request: claim.request },
            })
            .collect()
    }

    fn remove(&mut self, news: &mut Vec<News>, gone: impl Fn(&Claim) -> bool) {
        for lock in self.locks.values_mut() {
            let before = lock.holders.len() + lock.queue.len();
            lock.holders.retain(|claim| !gone(claim));
            lock.queue.retain(|claim| !gone(claim));
            if lock.holders.len() + lock.queue.len() < before {
                lock.advance(news);
            }
        }
        self.locks.retain(|_, lock| !lock.holders.is_empty() || !lock.queue.is_empty());
    }

    fn snapshot(&self) -> Vec<HeldLock> {
        let rows = self.locks.iter().flat_map(|(name, lock)| {
            lock.holders.iter().map(|claim| HeldLock {
                name: *name,
                holder: self.agents[claim.agent]
                    .map_or_else(String::new, |context| context.to_string()),
            })
        });
        rows.collect()
    }

    /// Locks that an agent holds or waits for.
    pub(crate) fn claims_of(&self, agent: Agent) -> Vec<LockName> {
        let claimed = self.locks.iter().filter(|(_, lock)| {
            lock.holders.iter().chain(&lock.queue).any(|claim| claim.agent == agent)
        });
        claimed.map(|(name, _)| *name).collect()
    }

    /// The agent that holds the coordinator's lock.
    pub(crate) fn coordinator(&self) -> Option<Agent> {
        let lock = self.locks.get(&LockName::Coordinator)?;
        lock.holders.first().map(|claim| claim.agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(request: LockRequest, mode: LockMode) -> LockOp {
        LockOp::Request { request, name: LockName::Coordinator, mode }
    }

    fn granted(news: &[News]) -> Vec<Agent> {
        let granted = news.iter().filter(|news| matches!(news.event, LockEvent::Granted { .. }));
        granted.map(|news| news.agent).collect()
    }

    fn manager() -> LockManager {
        let mut manager = LockManager::new(ClusterName::new("test"));
        for context in 0..4 {
            manager.agent(context);
        }
        manager
    }

    #[test]
    fn grants_are_first_in_first_out_and_shared_waiters_do_not_overtake() {
        let mut manager = manager();
        assert_eq!(granted(&manager.handle(0, &request(1, LockMode::Shared))), [0]);
        assert!(manager.handle(1, &request(1, LockMode::Exclusive)).is_empty());
        assert!(manager.handle(2, &request(1, LockMode::Shared)).is_empty());
        assert_eq!(granted(&manager.agent_gone(0)), [1]);
        assert_eq!(granted(&manager.handle(1, &LockOp::Release { request: 1 })), [2]);
    }

    #[test]
    fn an_aborted_waiter_is_passed_over_and_an_unavailable_lock_is_refused() {
        let mut manager = manager();
        manager.handle(0, &request(1, LockMode::Exclusive));
        manager.handle(1, &request(7, LockMode::Exclusive));
        manager.handle(2, &request(1, LockMode::Exclusive));
        manager.handle(1, &LockOp::Release { request: 7 });
        let refused = manager.handle(3, &request(1, LockMode::ExclusiveIfAvailable));
        assert!(matches!(refused[0].event, LockEvent::Refused { request: 1 }));
        assert_eq!(granted(&manager.agent_gone(0)), [2]);
    }

    #[test]
    fn stealing_takes_the_lock_at_once_and_the_queue_stays() {
        let mut manager = manager();
        manager.handle(0, &request(1, LockMode::Exclusive));
        manager.handle(1, &request(1, LockMode::Exclusive));
        let news = manager.handle(2, &request(5, LockMode::Steal));
        assert!(matches!(news[0], News { agent: 0, event: LockEvent::Lost { request: 1 } }));
        assert_eq!(granted(&news), [2]);
        assert_eq!(granted(&manager.agent_gone(2)), [1]);
    }
}

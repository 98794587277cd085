//! How contexts stop, go on and end.

use super::context::{ContextId, Kind, Life};
use super::event::{Event, Later};
use super::tab::TabState;
use super::{MS, World};

/// A node that slept longer than this knows it: its next timer is at most a beat away.
const STALL: u64 = 4_000 * MS;
/// After this long a context that was suspended is expected to know what it missed.
const RECOVERY: u64 = 1_500 * MS;

impl World {
    /// A page and its dedicated worker stop running.
    pub(crate) fn suspend(&mut self, id: ContextId, life: Life) {
        for id in self.with_worker(id) {
            let context = &mut self.contexts[id];
            if context.alive() {
                context.life = if context.kind == Kind::Page { life } else { Life::Frozen };
                context.impaired_until = u64::MAX;
                context.suspended_at = Some(self.now);
            }
        }
    }

    /// They run again, with all that has queued up.
    pub(crate) fn resume(&mut self, id: ContextId) {
        for id in self.with_worker(id) {
            let context = &mut self.contexts[id];
            if context.alive() {
                context.life = Life::Running;
                context.thawed = true;
                context.impaired_until = self.now + RECOVERY;
                let slept = context.suspended_at.take().map_or(0, |since| self.now - since);
                if slept > STALL
                    && let Some(host) = &context.host
                {
                    self.checks.owners.woke(host.id);
                }
                self.wake(id);
            }
        }
    }

    /// A worker is terminated by its page.
    pub(crate) fn terminate(&mut self, worker: ContextId) {
        let locks_after =
            if self.chance(30) { self.rng.below(300 * MS) } else { MS + self.rng.below(8 * MS) };
        self.end_context(worker, locks_after, false);
    }

    /// A context is gone, with everything in it. After a crash its last posts may be lost, and
    /// nobody says goodbye on its connection.
    pub(crate) fn end_context(&mut self, id: ContextId, locks_after: u64, crashed: bool) {
        if !self.contexts[id].alive() {
            return;
        }
        self.note(|| format!("context {id} ends, crashed: {crashed}"));
        let lost = self.rng.below(2 * MS);
        let context = &mut self.contexts[id];
        context.life = Life::Dead;
        context.impaired_until = u64::MAX;
        if crashed {
            context.lost_after = self.now.saturating_sub(lost);
        }
        context.messages.clear();
        context.locks.clear();
        context.network.clear();
        context.timers.clear();
        let page = context.page.take();
        let host = context.host.take();
        self.channels.context_gone(id);
        if let Some(host) = host {
            self.let_host_go(id, &host, locks_after, !crashed);
        }
        if self.shared == Some(id) {
            self.shared = None;
        }
        if let Some(page) = page {
            self.forget_agent(page.agent, locks_after);
            self.checks.page_gone(id);
            if let Some(port) = page.port {
                self.ports[port].page_open = false;
            }
            if let Some(worker) = page.worker() {
                self.end_context(worker, locks_after, crashed);
            }
            self.shared_may_be_idle();
        }
    }

    /// A shared worker ends soon after its last client.
    pub(crate) fn shared_may_be_idle(&mut self) {
        if let Some(shared) = self.shared {
            let after = 20 * MS + self.rng.below(40 * MS);
            self.agenda.insert(self.now + after, Event::Later(Later::SharedIdle(shared)));
        }
    }

    fn shared_is_idle(&self, shared: ContextId) -> bool {
        let clients = self.ports.iter().filter(|port| port.host == shared);
        !clients.into_iter().any(|port| self.contexts[port.page].alive())
    }

    pub(crate) fn later(&mut self, later: Later) {
        match later {
            Later::Thaw(tab) => self.thaw_tab(tab),
            Later::Restore(tab) => self.restore_tab(tab),
            Later::Load(tab) => self.load_tab(tab),
            Later::Unthrottle(tab) => self.unthrottle_tab(tab),
            Later::Strike(step) => self.strike_waiting(step),
            Later::ServerUp => self.server_starts(),
            Later::NetworkUp => self.network_returns(),
            Later::TokensValid => self.tokens_return(),
            Later::SharedIdle(shared) => {
                if self.shared == Some(shared) && self.shared_is_idle(shared) {
                    self.end_context(shared, 2 * MS, false);
                }
            }
        }
    }

    /// Every fault ends: what is frozen goes on, what is down comes back.
    pub(crate) fn heal(&mut self) {
        self.note(|| "all faults end".to_owned());
        self.waiting.clear();
        for tab in 0..self.tabs.len() {
            match self.tabs[tab].state {
                TabState::Frozen(_) => self.thaw_tab(tab),
                // If it was cached this moment, what it lets go of is still on its way: a worker that
                // was ended keeps its locks for up to 300 ms.
                TabState::Cached => {
                    self.agenda.insert(self.now + 310 * MS, Event::Later(Later::Restore(tab)));
                }
                TabState::Empty | TabState::Open => {}
            }
            self.unthrottle_tab(tab);
            if let Some(page) = self.tabs[tab].page {
                // Its next task may be planned for the end of the long one.
                self.contexts[page].blocked_until = self.now;
                self.contexts[page].run_planned = false;
                self.wake(page);
            }
        }
        self.server_starts();
        self.network_returns();
        self.tokens_return();
    }
}

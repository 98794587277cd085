//! Tabs, as their user and the browser treat them.

use motet_cluster::client::PageEvent;
use motet_protocol::TabId;

use super::context::{ContextId, Kind, Life, Task};
use super::event::{Event, Later};
use super::{MS, SECOND, World};
use crate::setup::{CacheRule, HostMode};

/// Timers of a page that was hidden for long fire once a minute.
const THROTTLED_GRID: u64 = 60 * SECOND;

/// What the browser has done with a tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TabState {
    /// No page: not opened yet, loading, crashed or closed.
    Empty,
    /// A page that may run.
    Open,
    /// A frozen page; `true` when it was told before.
    Frozen(bool),
    /// Its page is in the back/forward cache.
    Cached,
}

/// A tab.
#[derive(Debug)]
pub(crate) struct Tab {
    pub(crate) mode: HostMode,
    /// What its session storage holds.
    pub(crate) identity: TabId,
    pub(crate) state: TabState,
    pub(crate) page: Option<ContextId>,
    pub(crate) visible: bool,
    /// What its application subscribes when it loads: topic and earlier messages wanted.
    pub(crate) wanted: Vec<(usize, u32)>,
}

impl World {
    /// A tab without a page yet.
    pub(crate) fn add_tab(&mut self, mode: HostMode, identity: Option<TabId>) -> usize {
        let identity = identity.unwrap_or_else(|| TabId::random(&mut self.rng));
        let mut wanted = Vec::new();
        for topic in 0..self.setup.topics.len() {
            if self.chance(650) {
                wanted.push((topic, if self.chance(300) { 10 } else { 0 }));
            }
        }
        let visible = self.chance(600);
        let state = TabState::Empty;
        self.tabs.push(Tab { mode, identity, state, page: None, visible, wanted });
        self.tabs.len() - 1
    }

    /// The tab loads its page.
    pub(crate) fn load_tab(&mut self, tab: usize) {
        if self.tabs[tab].state == TabState::Empty {
            let page = self.create_page(tab);
            self.tabs[tab].page = Some(page);
            self.tabs[tab].state = TabState::Open;
            self.note(|| format!("tab {tab} loads page {page}"));
        }
    }

    /// The page of a tab that may run.
    pub(crate) fn open_page(&self, tab: usize) -> Option<ContextId> {
        (self.tabs[tab].state == TabState::Open).then_some(self.tabs[tab].page).flatten()
    }

    /// `pagehide`, run to its end as browsers do; not while a long task is in the way.
    fn hide_page(&mut self, page: ContextId) {
        if self.contexts[page].acting(self.now) {
            self.page_input(page, motet_cluster::client::ClientInput::Page(PageEvent::Hide));
            self.page_rests(page);
        }
    }

    /// The renderer of a tab dies, with all that runs in it.
    pub(crate) fn crash_tab(&mut self, tab: usize) -> bool {
        let Some(page) = self.tabs[tab].page else { return false };
        let locks_after = self.crash_delay();
        if let Some(shared) = self.shared
            && self.contexts[shared].tab == tab
        {
            self.end_context(shared, locks_after, true);
        }
        self.end_context(page, locks_after, true);
        self.empty_tab(tab);
        true
    }

    /// How long after a crash the lock manager knows.
    pub(crate) fn crash_delay(&mut self) -> u64 {
        if self.chance(50) {
            40 * MS + self.rng.below(230 * MS)
        } else {
            4 * MS + self.rng.below(26 * MS)
        }
    }

    fn empty_tab(&mut self, tab: usize) {
        self.tabs[tab].page = None;
        self.tabs[tab].state = TabState::Empty;
    }

    /// The user closes a tab; `told` is whether `pagehide` ran.
    pub(crate) fn close_tab(&mut self, tab: usize, told: bool) -> bool {
        let Some(page) = self.open_page(tab) else { return false };
        if told {
            self.hide_page(page);
        }
        let locks_after = 8 * MS + self.rng.below(25 * MS);
        self.end_context(page, locks_after, false);
        self.empty_tab(tab);
        true
    }

    /// The tab loads its page anew.
    pub(crate) fn reload_tab(&mut self, tab: usize) -> bool {
        if !self.close_tab(tab, true) {
            return false;
        }
        let after = 20 * MS + self.rng.below(130 * MS);
        self.agenda.insert(self.now + after, Event::Later(Later::Load(tab)));
        true
    }

    /// The tab navigates away and its page is kept in the back/forward cache.
    pub(crate) fn cache_tab(&mut self, tab: usize, duration: u64) -> bool {
        let Some(page) = self.open_page(tab) else { return false };
        if !self.contexts[page].acting(self.now) {
            return false;
        }
        self.hide_page(page);
        self.tabs[tab].state = TabState::Cached;
        self.suspend(page, Life::Cached);
        self.agenda.insert(self.now + duration, Event::Later(Later::Restore(tab)));
        true
    }

    /// A message reached a channel that a cached page left open.
    pub(crate) fn disturb_cached(&mut self, page: ContextId) {
        if self.setup.cache_rule == CacheRule::Evict {
            self.checks.fail(
                "settles",
                self.now,
                &format!("page {page} left a channel open and was evicted from the cache"),
            );
        }
    }

    /// A cached page is shown again.
    pub(crate) fn restore_tab(&mut self, tab: usize) {
        if self.tabs[tab].state != TabState::Cached {
            return;
        }
        let Some(page) = self.tabs[tab].page else { return };
        let agent = self.contexts[page].page.as_ref().map(|page| page.agent);
        let claims = agent.map_or_else(Vec::new, |agent| self.locks.claims_of(agent));
        if !claims.is_empty() {
            let text = format!("page {page} kept {claims:?} in the back/forward cache");
            self.checks.fail("settles", self.now, &text);
        }
        self.tabs[tab].state = TabState::Open;
        self.resume(page);
        self.page_wakes(page);
        self.page_input(page, motet_cluster::client::ClientInput::Page(PageEvent::Show));
    }

    /// The browser freezes a tab, with or without the event; a stopped process also stops the
    /// shared worker that runs in it.
    pub(crate) fn freeze_tab(&mut self, tab: usize, told: bool, duration: u64) -> bool {
        let Some(page) = self.open_page(tab) else { return false };
        let told = told && self.contexts[page].acting(self.now);
        if told {
            self.page_input(page, motet_cluster::client::ClientInput::Page(PageEvent::Freeze));
            self.page_rests(page);
        } else if let Some(shared) = self.shared
            && self.contexts[shared].tab == tab
        {
            self.suspend(shared, Life::Frozen);
        }
        self.tabs[tab].state = TabState::Frozen(told);
        self.suspend(page, Life::Frozen);
        self.agenda.insert(self.now + duration, Event::Later(Later::Thaw(tab)));
        true
    }

    /// A frozen tab goes on.
    pub(crate) fn thaw_tab(&mut self, tab: usize) {
        let TabState::Frozen(told) = self.tabs[tab].state else { return };
        let Some(page) = self.tabs[tab].page else { return };
        self.tabs[tab].state = TabState::Open;
        if let Some(shared) = self.shared
            && self.contexts[shared].tab == tab
            && self.contexts[shared].life == Life::Frozen
        {
            self.resume(shared);
        }
        self.resume(page);
        if told {
            self.page_wakes(page);
            self.page_input(page, motet_cluster::client::ClientInput::Page(PageEvent::Resume));
        }
    }

    /// A long task occupies the page's main thread.
    pub(crate) fn block_tab(&mut self, tab: usize, duration: u64) -> bool {
        let Some(page) = self.open_page(tab) else { return false };
        let context = &mut self.contexts[page];
        context.blocked_until = context.blocked_until.max(self.now + duration);
        context.impaired_until = context.impaired_until.max(context.blocked_until);
        true
    }

    /// The tab is hidden so long that its page's timers fire once a minute.
    pub(crate) fn throttle_tab(&mut self, tab: usize, duration: u64) -> bool {
        let Some(page) = self.open_page(tab) else { return false };
        self.show_tab(tab, false);
        self.contexts[page].timer_grid = THROTTLED_GRID;
        self.arm_anew(page);
        self.agenda.insert(self.now + duration, Event::Later(Later::Unthrottle(tab)));
        true
    }

    pub(crate) fn unthrottle_tab(&mut self, tab: usize) {
        let Some(page) = self.tabs[tab].page else { return };
        if self.contexts[page].timer_grid == 0 {
            return;
        }
        self.contexts[page].timer_grid = 0;
        self.contexts[page].impaired_until = self.contexts[page].impaired_until.max(self.now);
        self.arm_anew(page);
        self.show_tab(tab, true);
    }

    /// The tab becomes visible or hidden.
    pub(crate) fn show_tab(&mut self, tab: usize, visible: bool) {
        let Some(page) = self.open_page(tab) else { return };
        if self.tabs[tab].visible != visible {
            self.tabs[tab].visible = visible;
            self.send(page, 500, Task::Browser(PageEvent::Visible(visible)));
        }
    }

    /// The tab is duplicated, with its session storage.
    pub(crate) fn duplicate_tab(&mut self, tab: usize) -> bool {
        if self.open_page(tab).is_none() || self.tabs.len() >= self.setup.tabs.len() + 3 {
            return false;
        }
        let copy = self.add_tab(self.tabs[tab].mode, Some(self.tabs[tab].identity));
        self.tabs[copy].wanted = self.tabs[tab].wanted.clone();
        self.load_tab(copy);
        true
    }

    /// The dedicated worker of a tab dies (or, in a page that hosts its node, the node fails).
    pub(crate) fn crash_worker(&mut self, tab: usize) -> bool {
        let Some(page) = self.open_page(tab) else { return false };
        let told = self.chance(500);
        let Some(driver) = self.contexts[page].page.as_ref() else { return false };
        let start = driver.start();
        let worker = driver.worker();
        let in_page = driver.mode == HostMode::Page && self.contexts[page].host.is_some();
        match (worker, start) {
            (Some(worker), Some(start)) if self.contexts[worker].alive() => {
                let locks_after = self.crash_delay();
                self.end_context(worker, locks_after, true);
                if told {
                    let after = self.rng.below(20 * MS);
                    self.send(page, after, Task::NodeDown(start));
                }
                true
            }
            (None, Some(start)) if in_page => {
                self.drop_page_host(page);
                self.send(page, 100, Task::NodeDown(start));
                true
            }
            _ => false,
        }
    }

    /// The shared worker dies without a word.
    pub(crate) fn crash_shared(&mut self) -> bool {
        let Some(shared) = self.shared else { return false };
        let locks_after = self.crash_delay();
        self.end_context(shared, locks_after, true);
        true
    }

    /// The clocks of one tab's contexts, or of all, jump ahead.
    pub(crate) fn jump_clocks(&mut self, tab: Option<usize>, distance: u64) -> bool {
        let mut any = false;
        for id in 0..self.contexts.len() {
            let context = &mut self.contexts[id];
            if context.alive() && tab.is_none_or(|tab| tab == context.tab) {
                context.clock.jump(distance);
                context.impaired_until = context.impaired_until.max(self.now);
                any = true;
                self.arm_anew(id);
            }
        }
        any
    }

    /// Contexts of the same renderer as this page: itself and its dedicated worker.
    pub(crate) fn with_worker(&self, page: ContextId) -> Vec<ContextId> {
        let worker = self.contexts[page].page.as_ref().and_then(|page| page.worker());
        let worker = worker.filter(|worker| self.contexts[*worker].kind == Kind::Worker);
        core::iter::once(page).chain(worker).collect()
    }
}

impl World {
    /// The tabs of the setup exist; the schedule opens them.
    pub(crate) fn begin(&mut self) {
        for mode in self.setup.tabs.clone() {
            self.add_tab(mode, None);
        }
    }
}

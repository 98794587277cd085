//! One process: its handle on the environment, its clock, its transaction, its follower.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use motet_store::{Driver, Env, Limits};

use super::engine::{Core, Door};
use super::model::Model;
use super::pager::Pager;
use super::tail::{Follower, Poker};
use super::transaction::OpenTransaction;

pub(crate) struct Process {
    pub(crate) env: Env,
    /// The number of its handle.
    pub(crate) instance: u64,
    /// How far its wall clock is from true time, milliseconds.
    pub(crate) offset_ms: i64,
    wall: Arc<AtomicU64>,
    pub(crate) poker: Arc<Poker>,
    pub(crate) transaction: Option<OpenTransaction>,
    pub(crate) follower: Option<Follower>,
    /// Who reads the log from its beginning, page by page.
    pub(crate) pager: Option<Pager>,
    /// Nothing happens in it until then.
    pub(crate) paused_until: u64,
    /// The catalogue's epoch when it last looked.
    pub(crate) seen_epoch: u64,
}

impl Process {
    /// Opens a handle. Every handle of a run has a number of its own.
    pub(crate) fn open(core: &Arc<Core>, place: usize, instance: u64, batch_max: usize) -> Self {
        let wall = Arc::new(AtomicU64::new(0));
        let poker = Arc::new(Poker::new(Arc::clone(core)));
        let door = Door { core: Arc::clone(core), process: place, wall: Arc::clone(&wall) };
        let shown = Arc::clone(&wall);
        let driver = Driver {
            instance,
            limits: Limits { background_batch_max: batch_max, ..Limits::default() },
            wall_clock: Box::new(move || shown.load(Ordering::Relaxed)),
            outward: Some(Arc::clone(&poker) as Arc<_>),
        };
        Self {
            env: Env::on_engine("simulated", Arc::new(door), driver),
            instance,
            offset_ms: 0,
            wall,
            poker,
            transaction: None,
            follower: None,
            pager: None,
            paused_until: 0,
            seen_epoch: 0,
        }
    }

    /// The same process with a new handle, after it ended.
    pub(crate) fn reopened(
        &self,
        core: &Arc<Core>,
        place: usize,
        instance: u64,
        batch_max: usize,
        now_ms: u64,
    ) -> Self {
        let mut next = Self::open(core, place, instance, batch_max);
        next.offset_ms = self.offset_ms;
        next.paused_until = self.paused_until;
        next.set_time(now_ms);
        next.pager.clone_from(&self.pager);
        next.follower = self.follower.as_ref().map(|one| one.reopened(&next.env, now_ms));
        next
    }

    pub(crate) fn follow(&mut self, model: &Model, now_ms: u64) {
        self.follower = Some(Follower::new(&self.env, model, now_ms));
    }

    /// True time goes on, and so does the process's clock.
    pub(crate) fn set_time(&self, now_ms: u64) {
        self.wall.store(now_ms.saturating_add_signed(self.offset_ms), Ordering::Relaxed);
    }

    pub(crate) fn wall_ms(&self) -> u64 {
        self.wall.load(Ordering::Relaxed)
    }

    pub(crate) const fn is_paused(&self, now_ms: u64) -> bool {
        self.paused_until > now_ms
    }

    /// When its follower looks next.
    pub(crate) fn next_look(&self) -> u64 {
        let next = self.follower.as_ref().map_or(u64::MAX, Follower::next_look);
        next.max(self.paused_until)
    }
}

//! The tab's identity: survives a reload, and is never used by two tabs at once.
//!
//! Session storage survives a reload, but a duplicated tab starts with a copy of it. Hence the
//! lock: a tab that cannot get the lock of its id takes a new id. (B27)

use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::rc::Rc;

use motet_cluster::ClusterName;
use motet_cluster::lock::LockMode;
use motet_cluster::name::LockName;
use motet_protocol::{Rng, TabId};
use wasm_bindgen::prelude::*;

use crate::clock::now;
use crate::lock::{LockNews, LockRequest};
use crate::timer::Timer;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_namespace = sessionStorage, js_name = getItem)]
    fn read(key: &str) -> Result<Option<String>, JsValue>;

    #[wasm_bindgen(catch, js_namespace = sessionStorage, js_name = setItem)]
    fn write(key: &str, value: &str) -> Result<(), JsValue>;
}

const KEY: &str = "motet/tab";

/// The page that a reload replaces may hold the lock a little longer.
const RELOAD_GRACE: Duration = Duration::from_millis(250);

/// An id that is this tab's.
#[derive(Clone, Copy)]
pub(super) struct Claimed {
    pub(super) tab: TabId,
    /// It survives a reload.
    pub(super) stored: bool,
}

/// The claim to an id; given up when dropped.
pub(super) struct TabClaim(Rc<State>);

struct State {
    cluster: ClusterName,
    tab: Cell<TabId>,
    fallback: Cell<Option<TabId>>,
    lock: RefCell<Option<LockRequest>>,
    grace: RefCell<Option<Timer>>,
    done: Box<dyn Fn(Option<Claimed>)>,
}

impl TabClaim {
    /// Claims the stored id, or a new one when there is none or another tab uses it. `done` hears
    /// of nothing when the browser refuses locks.
    pub(super) fn new(
        cluster: &ClusterName,
        rng: &mut Rng,
        done: impl Fn(Option<Claimed>) + 'static,
    ) -> Self {
        let stored = read(KEY).ok().flatten().and_then(|text| text.parse().ok());
        let drawn = TabId::random(rng);
        let state = Rc::new(State {
            cluster: cluster.clone(),
            tab: Cell::new(stored.unwrap_or(drawn)),
            fallback: Cell::new(stored.map(|_| drawn)),
            lock: RefCell::new(None),
            grace: RefCell::new(None),
            done: Box::new(done),
        });
        let weak = Rc::downgrade(&state);
        let grace = Timer::new(move || {
            if let Some(state) = weak.upgrade() {
                state.grace_is_over();
            }
        });
        if stored.is_some() {
            let at = now();
            grace.arm(at, Some(at + RELOAD_GRACE));
        }
        *state.grace.borrow_mut() = Some(grace);
        state.request();
        Self(state)
    }
}

impl Drop for TabClaim {
    fn drop(&mut self) {
        self.0.lock.take();
        self.0.grace.take();
    }
}

impl State {
    fn request(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        let name = self.cluster.lock(LockName::Tab(self.tab.get()));
        let lock = LockRequest::new(&name, LockMode::Exclusive, move |news| {
            let Some(state) = weak.upgrade() else { return };
            match news {
                LockNews::Granted => state.granted(),
                LockNews::Refused | LockNews::Lost => state.refused(),
            }
        });
        *self.lock.borrow_mut() = Some(lock);
    }

    fn granted(&self) {
        self.grace.take();
        let tab = self.tab.get();
        // Without storage the id lasts as long as the page: nothing else depends on it.
        let stored = write(KEY, &tab.to_hex()).is_ok();
        (self.done)(Some(Claimed { tab, stored }));
    }

    /// Nobody steals this lock, so it is the browser that says no.
    fn refused(&self) {
        self.grace.take();
        (self.done)(None);
    }

    fn grace_is_over(self: &Rc<Self>) {
        if let Some(fallback) = self.fallback.take() {
            self.lock.take();
            self.tab.set(fallback);
            self.request();
        }
    }
}

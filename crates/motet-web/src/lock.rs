//! Web Locks: requests that can be released at any time, granted or not.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Function, Object, Promise, Set};
use motet_cluster::lock::LockMode;
use wasm_bindgen::prelude::*;
use web_sys::AbortController;

use crate::platform::{LockOptions, detached, queue_microtask, request_lock};

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockNews {
    /// The lock is held.
    Granted,
    /// It was not available.
    Refused,
    /// It was stolen, or the browser refuses locks here.
    Lost,
}

/// A queued or granted lock; let go when dropped.
pub(crate) struct LockRequest(Rc<State>);

struct State {
    /// Only queued requests can be aborted; stealing and asking once cannot carry a signal.
    abort: Option<AbortController>,
    /// Resolves the promise for which the browser keeps the lock.
    release: RefCell<Option<Function>>,
    over: Cell<bool>,
}

thread_local! {
    /// The release functions of all held locks, where JavaScript can reach them when this module
    /// cannot run any more.
    static HELD: Set = Set::new(&JsValue::UNDEFINED);
}

/// The release functions of all locks held by this module, kept up to date. Whoever ends the
/// context after a panic calls them all: Firefox keeps the locks of a closed SharedWorker.
#[cfg(feature = "node")]
#[wasm_bindgen(js_name = heldLocks)]
#[must_use]
pub fn held_locks() -> Set {
    HELD.with(Set::clone)
}

impl LockRequest {
    /// Asks for a lock. News come later, never during this call; none after the request is dropped.
    pub(crate) fn new(name: &str, mode: LockMode, news: impl Fn(LockNews) + 'static) -> Self {
        let queued = matches!(mode, LockMode::Exclusive | LockMode::Shared);
        let abort = if queued { AbortController::new().ok() } else { None };
        let options = options(mode, abort.as_ref());
        let state = Rc::new(State { abort, release: RefCell::new(None), over: Cell::new(false) });
        let news = Rc::new(news);
        let granted = on_granted(&state, news.clone());
        let failed = {
            let state = state.clone();
            detached(move |_| {
                if !state.over.replace(true) {
                    state.forget_release();
                    news(LockNews::Lost);
                }
            })
        };
        match request_lock(name, &options, &granted) {
            Ok(request) => request.then(&JsValue::UNDEFINED, &failed),
            Err(_) => queue_microtask(&failed),
        }
        Self(state)
    }
}

impl Drop for LockRequest {
    fn drop(&mut self) {
        self.0.over.set(true);
        match self.0.forget_release() {
            Some(release) => drop(release.call0(&JsValue::UNDEFINED)),
            None => {
                if let Some(abort) = &self.0.abort {
                    abort.abort();
                }
            }
        }
    }
}

impl State {
    fn forget_release(&self) -> Option<Function> {
        let release = self.release.take();
        if let Some(release) = &release {
            HELD.with(|held| held.delete(release));
        }
        release
    }
}

fn on_granted(state: &Rc<State>, news: Rc<impl Fn(LockNews) + 'static>) -> JsValue {
    let state = state.clone();
    let granted: Closure<dyn Fn(JsValue) -> JsValue> = Closure::new(move |lock: JsValue| {
        if state.over.get() {
            return JsValue::UNDEFINED;
        }
        if lock.is_null() {
            state.over.set(true);
            news(LockNews::Refused);
            return JsValue::UNDEFINED;
        }
        let held = Promise::new(&mut |resolve, _| {
            HELD.with(|held| held.add(&resolve));
            *state.release.borrow_mut() = Some(resolve);
        });
        news(LockNews::Granted);
        held.into()
    });
    granted.into_js_value()
}

fn options(mode: LockMode, abort: Option<&AbortController>) -> Object {
    let options: LockOptions = Object::new().unchecked_into();
    match mode {
        LockMode::Exclusive => {}
        LockMode::Shared => options.set_mode("shared"),
        LockMode::ExclusiveIfAvailable => options.set_if_available(true),
        LockMode::Steal => options.set_steal(true),
    }
    if let Some(abort) = abort {
        options.set_signal(&abort.signal());
    }
    options.unchecked_into()
}

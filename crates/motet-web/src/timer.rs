//! One timer per core, armed for what `next_timeout` names.

use core::cell::Cell;
use core::time::Duration;

use motet_protocol::Instant;

use crate::platform::{Callback, clear_timeout, set_timeout};

/// The longest delay that browsers keep; a longer one is armed again when it fires.
const DELAY_MS_MAX: u128 = i32::MAX as u128;

/// A timer of this context. It may fire early: its owner looks at the clock.
pub(crate) struct Timer {
    armed: Cell<Option<(Instant, i32)>>,
    callback: Callback,
}

impl Timer {
    pub(crate) fn new(fire: impl Fn() + 'static) -> Self {
        Self { armed: Cell::new(None), callback: Callback::new(move |_| fire()) }
    }

    /// Fires at `due` or shortly after; not at all for `None`.
    ///
    /// A timer that is armed for an earlier time is left alone: setting one anew for every message
    /// costs more than a call that finds nothing to do.
    pub(crate) fn arm(&self, now: Instant, due: Option<Instant>) {
        match (due, self.armed.get()) {
            (None, _) => self.disarm(),
            (Some(due), Some((armed, _))) if armed <= due => {}
            (Some(due), _) => {
                self.disarm();
                let delay_ms = (due - now + Duration::from_micros(999)).as_millis();
                let delay_ms = delay_ms.min(DELAY_MS_MAX) as i32;
                let timer = set_timeout(self.callback.as_ref(), delay_ms);
                self.armed.set(Some((due, timer)));
            }
        }
    }

    /// To be called first when the timer fired.
    pub(crate) fn fired(&self) {
        self.armed.set(None);
    }

    pub(crate) fn disarm(&self) {
        if let Some((_, timer)) = self.armed.take() {
            clear_timeout(timer);
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.disarm();
    }
}

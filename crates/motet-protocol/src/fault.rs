//! Planted faults: wrong behaviour that the simulator must notice.
//!
//! With the feature `planted-faults` a test run can switch one fault on for its thread; without
//! it, [`planted`] is the constant `false` and the wrong branch disappears.

#[cfg(feature = "planted-faults")]
thread_local! {
    static ACTIVE: core::cell::Cell<Option<&'static str>> = const { core::cell::Cell::new(None) };
}

/// Whether the fault called `name` is switched on for this thread.
#[cfg(feature = "planted-faults")]
#[must_use]
pub fn planted(name: &'static str) -> bool {
    ACTIVE.with(|active| active.get() == Some(name))
}

/// Whether the fault called `name` is switched on: never, in a build without the feature.
#[cfg(not(feature = "planted-faults"))]
#[must_use]
#[inline(always)]
pub const fn planted(_name: &'static str) -> bool {
    false
}

/// Switches one fault on for this thread, or all off.
#[cfg(feature = "planted-faults")]
pub fn plant(name: Option<&'static str>) {
    ACTIVE.with(|active| active.set(name));
}

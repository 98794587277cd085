//! Planted faults: wrong behaviour of the cores that the checks must see.

/// Every planted fault of the cores, by name.
pub const ALL: &[&str] = &[
    "broadcast-while-revalidating",
    "deliver-repeats",
    "forget-gap-on-reset",
    "ignore-death",
    "ignore-handoff",
    "ignore-route-fence-on-data",
    "keep-governing-without-lock",
    "keep-position-after-show-without-join",
    "never-replace-frozen-owner",
    "never-steal",
    "obey-lower-fence",
    "publish-two-in-flight",
    "release-before-unsubscribe",
    "repeat-epoch",
    "resend-without-key",
    "reuse-generation",
    "skip-history-paging",
    "skip-hole-check",
    "skip-released",
    "skip-revalidate",
];

/// The planted fault with this name, of those that there are.
///
/// # Errors
///
/// A sentence for people when there is none, or when this build has none at all.
pub fn find(name: Option<&str>, all: &[&'static str]) -> Result<Option<&'static str>, String> {
    let Some(name) = name else { return Ok(None) };
    if !cfg!(feature = "plants") {
        return Err("this build has no planted faults; build it with --features plants".to_owned());
    }
    match all.iter().find(|plant| **plant == name) {
        Some(plant) => Ok(Some(plant)),
        None => Err(format!("no planted fault is called {name}; there are: {}", all.join(", "))),
    }
}

/// Switches a planted fault on for this thread, or all off.
#[cfg(feature = "plants")]
pub fn switch_on(name: Option<&'static str>) {
    motet_protocol::fault::plant(name);
}

/// A build without planted faults has nothing to switch.
#[cfg(not(feature = "plants"))]
pub fn switch_on(_name: Option<&'static str>) {}

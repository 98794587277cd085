//! Filling a log and looking at what is left of it.

use motet_store::{Clock, Env, Write};
use serde_json::json;

/// Writes so many changes of about 155 bytes each, and does what is due then.
pub(crate) fn write_changes(env: &Env, count: usize) {
    let value = json!("x".repeat(100));
    let writes = (0..count).map(|n| Write::put("Order", format!("o-{n}"), value.clone()));
    env.write_all(writes.collect()).unwrap();
    env.maintain().unwrap();
}

pub(crate) fn clocks_after(env: &Env, after: u64) -> Vec<u64> {
    let changes = env.log().read(Clock::new(after), usize::MAX).unwrap();
    changes.iter().map(|change| change.clock.number()).collect()
}

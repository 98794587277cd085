//! The indexes, and how far they are.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use motet_store::{Env, IndexSpec, IndexState, IndexStatus, Store};

use crate::work::FLIGHT;

/// Longer than this no index of the show takes.
const PATIENCE: Duration = Duration::from_secs(120);

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Builds the indexes and waits until queries use them.
pub(crate) fn build(data: &Path) -> Result<()> {
    let env = Store::open(data)?.env("default")?;
    env.create_index(
        FLIGHT,
        "origin_delay",
        &IndexSpec::new().field("origin").descending("delay"),
    )?;
    env.create_index(FLIGHT, "destination", &IndexSpec::new().field("destination"))?;
    let begun = Instant::now();
    while !ready(&env)? {
        if begun.elapsed() > PATIENCE {
            bail!("the indexes are not ready after {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    println!("indexes ready in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

fn ready(env: &Env) -> Result<bool> {
    let statuses = env.indexes(FLIGHT)?;
    let parts: Vec<_> = statuses.iter().map(progress).collect();
    println!("{}", parts.join(", "));
    Ok(statuses.iter().all(|status| status.state == IndexState::Ready))
}

fn progress(status: &IndexStatus) -> String {
    match status.scanned {
        Some(scanned) => format!("{}: {scanned} documents", status.name),
        None => format!("{}: {:?}", status.name, status.state).to_lowercase(),
    }
}

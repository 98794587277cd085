//! Systems that take turns, so that whatever else the machine does meets all of them.

use std::time::Instant;

use anyhow::Result;

/// What each round gave for one system.
#[derive(Default)]
pub(crate) struct Runs(Vec<f64>);

impl Runs {
    /// Does `count` things and notes how many a second.
    pub(crate) fn time(&mut self, count: u64, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let started = Instant::now();
        work()?;
        #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        self.0.push(count as f64 / started.elapsed().as_secs_f64());
        Ok(())
    }

    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }

    pub(crate) fn all(&self) -> &[f64] {
        &self.0
    }
}

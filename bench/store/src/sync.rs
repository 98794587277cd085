//! What a sync costs on this disk: every durable write waits for one.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use motet_bench_figures::Figure;

const SYNCS: usize = 500;

/// How long it takes to write 4 KiB and have them on the disk.
pub(crate) fn syncs(folder: &Path) -> Result<Vec<Figure>> {
    let mut file = File::create(folder.join("sync"))?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let started = Instant::now();
        file.write_all(&[7; 4_096])?;
        file.sync_data()?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(vec![
        Figure::new("the disk: 4 KiB written and synced, p50", times[SYNCS / 2], "ms"),
        Figure::new("the disk: 4 KiB written and synced, p99", times[SYNCS * 99 / 100], "ms"),
    ])
}

//! Point reads and log reads a second, in process.

use core::ops::ControlFlow;
use std::hint::black_box;
use std::path::Path;

use anyhow::{Context as _, Result};
use heed::types::Bytes;
use motet_bench_figures::Figure;
use motet_store::{Clock, Store};

use crate::bare::Bare;
use crate::peers::Redb;
use crate::rounds::Runs;
use crate::sample::Sample;
use crate::writes::write;
use crate::{Scale, TYPE};

/// Reads what was written, in another order, beside the floor and redb.
pub(crate) fn reads(folder: &Path, scale: &Scale) -> Result<Vec<Figure>> {
    let env = Store::open(folder.join("reads/motet"))?.env("bench")?;
    let mut bare = Bare::open(&folder.join("reads/bare"))?;
    let mut redb = Redb::open(&folder.join("reads/redb"))?;
    for first in (0..scale.documents).step_by(1_000) {
        let samples: Vec<_> = (first..first + 1_000).map(Sample::new).collect();
        write(&env, &samples)?;
        bare.write(&samples, false)?;
        redb.write(&samples, false)?;
    }
    let keys: Vec<_> = (0..scale.documents)
        .map(|number| Sample::new(number.wrapping_mul(7_919) % scale.documents).key)
        .collect();
    let count = scale.documents;
    let mut points = [(); 4].map(|()| Runs::default());
    let mut logs = [(); 3].map(|()| Runs::default());
    for _ in 0..scale.rounds {
        points[0].time(count, || read_raw(&env, &keys))?;
        points[1].time(count, || read_bare(&bare, &keys))?;
        points[2].time(count, || {
            keys.iter().try_for_each(|key| {
                redb.read(key).map(|bytes| {
                    black_box(bytes);
                })
            })
        })?;
        points[3].time(count, || {
            keys.iter().try_for_each(|key| {
                black_box(env.get(TYPE, key)?.context("it was written")?);
                Ok(())
            })
        })?;
        logs[0].time(count, || {
            let mut bytes = 0;
            env.log().visit(Clock::ZERO, |change| {
                bytes += black_box(change.key).len();
                ControlFlow::Continue(())
            })?;
            anyhow::ensure!(bytes > 0, "the log has entries");
            Ok(())
        })?;
        logs[1].time(count, || scan_bare(&bare))?;
        logs[2].time(count, || {
            let mut after = Clock::ZERO;
            loop {
                let changes = env.log().read(after, 1_000)?;
                let Some(last) = changes.last() else { return Ok(()) };
                after = last.clock;
                black_box(changes);
            }
        })?;
    }
    let [ours, bares, redbs, parsed] = &points;
    let [headers, scans, changes] = &logs;
    Ok(vec![
        Figure::new("point reads/s, raw", ours.median(), "/s")
            .beside("bare LMDB", bares.median())
            .ratio_at_least(0.8)
            .of_runs(ours.all()),
        Figure::new("point reads/s, raw", ours.median(), "/s").beside("redb", redbs.median()),
        Figure::new("point reads/s, parsed", parsed.median(), "/s").at_least(400_000.0),
        Figure::new("log entries/s, headers", headers.median(), "/s")
            .beside("bare LMDB, bytes only", scans.median())
            .at_least(4_000_000.0),
        Figure::new("log entries/s, parsed", changes.median(), "/s").at_least(800_000.0),
    ])
}

fn read_raw(env: &motet_store::Env, keys: &[String]) -> Result<()> {
    keys.iter().try_for_each(|key| {
        black_box(env.get_json(TYPE, key)?.context("it was written")?);
        Ok(())
    })
}

/// Each read in a transaction of its own and with a copy of what it found, as the store's are.
fn read_bare(bare: &Bare, keys: &[String]) -> Result<()> {
    keys.iter().try_for_each(|key| {
        let key = [&[0, 0, 0, 1], key.as_bytes()].concat();
        let txn = bare.env.read_txn()?;
        let value = bare.documents.get(&txn, &key)?.context("it was written")?;
        black_box(value.to_vec());
        Ok(())
    })
}

fn scan_bare(bare: &Bare) -> Result<()> {
    let txn = bare.env.read_txn()?;
    for entry in bare.log.remap_types::<Bytes, Bytes>().iter(&txn)? {
        black_box(entry?);
    }
    Ok(())
}

//! Documents a second: in batches, and one by one from many threads.

use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result};
use motet_bench_figures::Figure;
use motet_store::{Env, IndexSpec, IndexState, Store, Write};

use crate::bare::Bare;
use crate::lmdb_js::LmdbJs;
use crate::peers::{Redb, Sqlite};
use crate::rounds::Runs;
use crate::sample::Sample;
use crate::{Scale, TYPE};

const BATCH: u64 = 1_000;
const WRITERS: u64 = 64;

/// Batches of 1,000, durable, with the log and its values.
pub(crate) fn batches(folder: &Path, scale: &Scale, indexed: bool) -> Result<Vec<Figure>> {
    let what = if indexed { "with 2 indexes" } else { "without index" };
    let folder = folder.join(if indexed { "batches-indexed" } else { "batches" });
    let env = Store::open(folder.join("motet"))?.env("bench")?;
    let mut bare = Bare::open(&folder.join("bare"))?;
    let mut redb = Redb::open(&folder.join("redb"))?;
    let mut sqlite = Sqlite::open(&folder.join("sqlite"))?;
    let mut lmdb_js = LmdbJs::open(&folder.join("lmdb-js"), indexed)?;
    if indexed {
        index(&env)?;
        sqlite.add_indexes()?;
    }
    let [mut ours, mut bares, mut redbs, mut sqlites, mut lmdb_jss] =
        [(); 5].map(|()| Runs::default());
    for round in 0..scale.rounds {
        for batch in 0..scale.batches {
            let first = (round * scale.batches + batch) * BATCH;
            let samples: Vec<_> = (first..first + BATCH).map(Sample::new).collect();
            ours.time(BATCH, || write(&env, &samples))?;
            bares.time(BATCH, || bare.write(&samples, indexed))?;
            redbs.time(BATCH, || redb.write(&samples, indexed))?;
            sqlites.time(BATCH, || sqlite.write(&samples))?;
            lmdb_js.prepare(first, BATCH)?;
            lmdb_jss.time(BATCH, || lmdb_js.write())?;
        }
    }
    let figure = |value: &Runs, peer: &str, of: &Runs| {
        let name = format!("documents/s, batches of 1,000, {what}");
        Figure::new(name, value.median(), "/s").beside(peer, of.median())
    };
    let floor = figure(&ours, "bare LMDB", &bares).ratio_at_least(0.7).of_runs(ours.all());
    Ok(vec![
        floor,
        figure(&ours, "redb", &redbs),
        figure(&ours, "SQLite", &sqlites),
        figure(&ours, "lmdb-js", &lmdb_jss),
    ])
}

/// Single writes from 64 threads at once, with 2 indexes.
pub(crate) fn singles(folder: &Path, scale: &Scale) -> Result<Vec<Figure>> {
    let env = Store::open(folder.join("singles/motet"))?.env("bench")?;
    index(&env)?;
    let mut bare = Bare::open(&folder.join("singles/bare"))?;
    let (mut ours, mut bares) = (Runs::default(), Runs::default());
    let (mut waits, mut commits) = (Vec::new(), Vec::new());
    let each = scale.singles / WRITERS;
    for round in 0..scale.rounds {
        let first = round * scale.singles;
        ours.time(each * WRITERS, || {
            waits.extend(concurrent(&env, first, each)?);
            Ok(())
        })?;
        let samples: Vec<_> = (first..first + each * WRITERS).map(Sample::new).collect();
        // The best that a group commit can do: all that wait at once, in one transaction.
        bares.time(each * WRITERS, || {
            samples.chunks(WRITERS as usize).try_for_each(|group| {
                let started = Instant::now();
                bare.write(group, true)?;
                commits.push(started.elapsed());
                Ok(())
            })
        })?;
    }
    waits.sort_unstable();
    commits.sort_unstable();
    let p99 = waits[waits.len() * 99 / 100].as_secs_f64() * 1e3;
    let commit = commits[commits.len() / 2].as_secs_f64() * 1e3;
    Ok(vec![
        Figure::new("documents/s, 64 concurrent single writes, 2 indexes", ours.median(), "/s")
            .beside("bare LMDB, 64 to a commit", bares.median())
            .ratio_at_least(0.6)
            .of_runs(ours.all()),
        Figure::new("a single write among 64, p99", p99, "ms")
            .beside("median commit of the floor", commit)
            .at_most((commit * 3.0 * 1e3).round() / 1e3),
    ])
}

fn concurrent(env: &Env, first: u64, each: u64) -> Result<Vec<std::time::Duration>> {
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let numbers = first + writer * each..first + (writer + 1) * each;
                    let timed = numbers.map(|number| {
                        let sample = Sample::new(number);
                        let started = Instant::now();
                        env.put(TYPE, &sample.key, sample.value)?;
                        Ok(started.elapsed())
                    });
                    timed.collect::<Result<Vec<_>>>()
                })
            })
            .collect();
        let mut waits = Vec::new();
        for writer in writers {
            waits.extend(writer.join().ok().context("a writer panicked")??);
        }
        Ok(waits)
    })
}

pub(crate) fn write(env: &Env, samples: &[Sample]) -> Result<()> {
    let writes = samples.iter().map(|one| Write::put(TYPE, one.key.as_str(), one.value.clone()));
    env.write_all(writes.collect())?;
    Ok(())
}

fn index(env: &Env) -> Result<()> {
    for field in ["city", "total"] {
        env.create_index(TYPE, field, &IndexSpec::new().field(field))?;
    }
    let ready = env.indexes(TYPE)?.iter().all(|index| index.state == IndexState::Ready);
    anyhow::ensure!(ready, "an index of an empty type is ready at once");
    Ok(())
}

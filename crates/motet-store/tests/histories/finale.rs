//! What the processes left, and whether it is what the replayed log makes.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use motet_store::engine::lmdb::{Lmdb, Options};
use motet_store::{Clock, Driver, Env, Hlc, IndexState, KeyRange, Limits, Op};
use serde_json::json;

use super::recorder::Seen;
use super::replay::Replay;
use super::verdict::Faults;
use super::writes::GROUPS;
use super::{views, workload};

/// The store when all processes are dead, with a wall clock at the beginning of time, so that only
/// what had expired by the log's last change has.
pub(crate) struct Left {
    env: Env,
    engine: Lmdb,
    pub(crate) log: Vec<Seen>,
}

impl Left {
    pub(crate) fn read(directory: &Path) -> Self {
        Self::read_at(&directory.join("store/env/main"))
    }

    fn read_at(path: &Path) -> Self {
        // Views last while the work that they hold pages of is done, on any machine.
        let options = Options { view_max: Duration::from_secs(60), ..Options::default() };
        let engine = Lmdb::open(path, &options).expect("the environment");
        let driver = Driver {
            instance: 1,
            limits: Limits::default(),
            wall_clock: Box::new(|| 0),
            outward: None,
        };
        let env = Env::on_engine("main", Arc::new(engine.clone()), driver);
        let mut log = Vec::new();
        env.log()
            .visit(Clock::ZERO, |header| {
                log.push(Seen {
                    clock: header.clock.number(),
                    of: header.type_name.into(),
                    key: header.key.into(),
                    op: format!("{:?}", header.op),
                    previous: header.previous.map(Clock::number),
                    time: header.time.number(),
                    transaction: header.transaction.number(),
                    value: header.json.map(|json| serde_json::from_slice(json).expect("JSON")),
                });
                ControlFlow::Continue(())
            })
            .expect("the whole log");
        Self { env, engine, log }
    }

    /// Documents, indexes and the file, against the replayed log.
    pub(crate) fn check(&self, replay: &Replay, stopped_max: Duration, faults: &mut Faults) {
        let head = self.env.log().head().expect("the head");
        let last = self.log.last().map_or(0, |last| last.clock);
        faults.expect(head.clock.number() == last, || format!("{head:?} after {last}"));
        let times = self.log.iter().map(|seen| (Hlc::from_number(seen.time), seen.transaction));
        let grows = times.collect::<Vec<_>>().is_sorted();
        faults.expect(grows, || "the log's time goes back".into());
        self.check_documents(replay, faults);
        self.env.maintain().expect("indexes are built");
        self.check_documents(replay, faults);
        self.check_swept(replay, faults);
        self.check_indexes(replay, faults);
        self.check_size(stopped_max, faults);
    }

    /// The time by which documents have expired.
    fn now_ms(&self) -> u64 {
        self.env.log().head().expect("the head").time.unix_ms()
    }

    fn check_documents(&self, replay: &Replay, faults: &mut Faults) {
        let now_ms = self.now_ms();
        for of in ["Item", "User", "Lease", "Shape"] {
            let found = self.env.range(of, &KeyRange::all()).expect("documents");
            let found: Vec<_> = found
                .iter()
                .map(|one| (one.key.as_str(), one.version.number(), &one.value, one.expires_ms))
                .collect();
            let replayed: Vec<_> = replay
                .all_at(of, u64::MAX)
                .filter(|(_, state)| !views::can_have_ended(state, now_ms))
                .map(|(key, state)| (key, state.version, &state.value, state.expires_ms))
                .collect();
            faults.expect(found == replayed, || format!("{of}: {found:?} is not {replayed:?}"));
        }
    }

    /// After the processes' last change the log has the ends of the leases that had expired, each
    /// once.
    fn check_swept(&self, replay: &Replay, faults: &mut Faults) {
        let now_ms = self.now_ms();
        let last = self.log.last().map_or(0, |last| last.clock);
        let swept = self.env.log().read(Clock::new(last), usize::MAX).expect("the log");
        let mut found: Vec<_> =
            swept.iter().map(|change| (&*change.type_name, &*change.key, change.op)).collect();
        found.sort_unstable_by_key(|(_, key, _)| *key);
        let expired: Vec<_> = replay
            .all_at("Lease", u64::MAX)
            .filter(|(_, state)| views::can_have_ended(state, now_ms))
            .map(|(key, _)| ("Lease", key, Op::Expire))
            .collect();
        faults.expect(found == expired, || format!("swept {found:?} and not {expired:?}"));
    }

    fn check_indexes(&self, replay: &Replay, faults: &mut Faults) {
        for of in ["Item", "User"] {
            for index in self.env.indexes(of).expect("indexes") {
                let ready = index.state == IndexState::Ready;
                faults.expect(ready, || format!("it was not built: {index:?}"));
            }
        }
        let names = replay.all_at("User", u64::MAX).map(|(_, user)| user.value["name"].clone());
        let names = names.map(|name| ("User", "name", name));
        let groups = (0..GROUPS).map(|group| ("Item", "group", json!(group)));
        for (of, field, value) in names.chain(groups).collect::<Vec<_>>() {
            let query = self.env.query(of).filter(json!({ field: value }));
            let rows = query.rows().expect("rows");
            let mut found: Vec<_> =
                rows.iter().map(|row| (row.key.as_str(), row.version.number())).collect();
            found.sort_unstable();
            let there =
                replay.all_at(of, u64::MAX).filter(|(_, state)| state.value[field] == value);
            let there: Vec<_> = there.map(|(key, state)| (key, state.version)).collect();
            faults.expect(found == there, || format!("{field} {value}: {found:?} not {there:?}"));
        }
    }

    /// The file holds what is in use, and what was written while the longest view was held: pages
    /// that a view may look at are not used again. A process that stands still holds one for as
    /// long as it was stopped, a killed one until the next process opens the store. Now nobody
    /// holds anything, so what is free is used.
    fn check_size(&self, stopped_max: Duration, faults: &mut Faults) {
        let (file, used) = self.sizes();
        let held_max = stopped_max + START_MAX;
        let commits = most_within(&self.log, held_max);
        let per_commit = self.bytes_held_per_commit();
        let held = commits * per_commit;
        (0..100).for_each(|number| {
            self.env.put("Item", "i-0-0", json!({ "n": number })).expect("a write");
        });
        let (after, used_after) = self.sizes();
        println!(
            "the file has {file} bytes, {used} of them in use; a view may have held {held}, by \
             {commits} commits within {held_max:?}; 100 commits later it has {after}"
        );
        faults.expect(file <= used + held, || format!("{file} bytes, {used} used, {held} held"));
        // What a commit frees is used from the next but one on.
        let needed = used_after.saturating_sub(used) + 2 * per_commit;
        faults.expect(after <= file + needed, || format!("it grew from {file} to {after} bytes"));
    }

    fn sizes(&self) -> (u64, u64) {
        let file = self.engine.file_bytes().expect("a size");
        (file, self.engine.used_bytes().expect("a size"))
    }

    /// What a commit adds while a view is held, as the processes commit: in a copy, which has no
    /// free pages, by the same work.
    fn bytes_held_per_commit(&self) -> u64 {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("copy");
        self.engine.copy_to(&path).expect("a copy");
        let copy = Self::read_at(&path);
        let view = copy.env.begin().expect("a view");
        let (before, _) = copy.sizes();
        workload::rehearse(&copy.env, dir.path());
        let (after, _) = copy.sizes();
        drop(view);
        let commits = transactions(&Self::read_at(&path).log) - transactions(&copy.log);
        (after - before) / commits as u64
    }
}

fn transactions(log: &[Seen]) -> usize {
    log.chunk_by(|one, next| one.transaction == next.transaction).count()
}

/// The most transactions that were committed within any stretch of this length.
fn most_within(log: &[Seen], stretch: Duration) -> u64 {
    let transactions = log.chunk_by(|one, next| one.transaction == next.transaction);
    let times: Vec<u64> =
        transactions.map(|changes| Hlc::from_number(changes[0].time).unix_ms()).collect();
    let until = |first: u64| first + stretch.as_millis() as u64;
    let within = |(place, first): (usize, &u64)| {
        times.partition_point(|time| *time <= until(*first)) - place
    };
    times.iter().enumerate().map(within).max().unwrap_or(0) as u64
}

/// What a process takes to start and open the store, or to notice that it was stopped.
const START_MAX: Duration = Duration::from_secs(1);

//! What the processes left, and whether it is what the replayed log makes.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use motet_store::engine::lmdb::{Lmdb, Options};
use motet_store::{Clock, Driver, Env, Hlc, IndexState, KeyRange, Limits};
use serde_json::json;

use super::recorder::Seen;
use super::replay::Replay;
use super::verdict::Faults;
use super::writes::GROUPS;

/// The store when all processes are dead, at the beginning of time, so that nothing expires.
pub(crate) struct Left {
    env: Env,
    engine: Lmdb,
    pub(crate) log: Vec<Seen>,
}

impl Left {
    pub(crate) fn read(directory: &Path) -> Self {
        let path = directory.join("store/env/main");
        let engine = Lmdb::open(path, &Options::default()).expect("the environment");
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
    pub(crate) fn check(&self, replay: &Replay, faults: &mut Faults) {
        let head = self.env.log().head().expect("the head");
        let last = self.log.last().map_or(0, |last| last.clock);
        faults.expect(head.clock.number() == last, || format!("{head:?} after {last}"));
        let times = self.log.iter().map(|seen| (Hlc::from_number(seen.time), seen.transaction));
        let grows = times.collect::<Vec<_>>().is_sorted();
        faults.expect(grows, || "the log's time goes back".into());
        self.check_documents(replay, faults);
        self.env.maintain().expect("indexes are built");
        self.check_documents(replay, faults);
        self.check_indexes(replay, faults);
        self.check_size(faults);
    }

    fn check_documents(&self, replay: &Replay, faults: &mut Faults) {
        for of in ["Item", "User", "Lease", "Shape"] {
            let found = self.env.range(of, &KeyRange::all()).expect("documents");
            let found: Vec<_> = found
                .iter()
                .map(|one| (one.key.as_str(), one.version.number(), &one.value, one.expires_ms))
                .collect();
            let replayed: Vec<_> = replay
                .all_at(of, u64::MAX)
                .map(|(key, state)| (key, state.version, &state.value, state.expires_ms))
                .collect();
            faults.expect(found == replayed, || format!("{of}: {found:?} is not {replayed:?}"));
        }
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

    /// What views that are gone kept from being used again is used again.
    fn check_size(&self, faults: &mut Faults) {
        let file = self.engine.file_bytes().expect("a size");
        let used = self.engine.used_bytes().expect("a size");
        for number in 0..200 {
            self.env.put("Item", "i-0-0", json!({ "n": number })).expect("a write");
        }
        let after = self.engine.file_bytes().expect("a size");
        println!("the file has {file} bytes, {used} of them in use, and then {after}");
        let bounded = file <= 2 * used + FREE_BYTES_MAX && after <= file + (1 << 20);
        faults.expect(bounded, || format!("{file} bytes for {used} in use, and then {after}"));
    }
}

/// What views of stopped and killed readers may have kept from being used again for seconds.
const FREE_BYTES_MAX: u64 = 128 << 20;

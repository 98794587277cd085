//! The check of an environment: it finds every kind of damage, and nothing where all is well.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod stores;

use core::ops::{Bound, ControlFlow};
use std::time::{Duration, Instant};

use motet_store::engine::lmdb::{Lmdb, Options};
use motet_store::engine::{
    Answer, Decide, Decision, Direction, Engine, Range, Table, Transaction, Writes,
};
use motet_store::{Clock, Env, Error, Finding, IndexSpec, IndexState, Retention, Write};
use serde_json::json;
use stores::{on_disk, on_each};
use tempfile::TempDir;

/// Documents of two types, removed, patched and expiring ones, and three indexes.
fn fill(env: &Env) {
    env.create_index("Order", "total", &IndexSpec::new().descending("total")).unwrap();
    env.create_index("Order", "tags", &IndexSpec::new().field("tags").field("total")).unwrap();
    env.create_index("User", "mail", &IndexSpec::new().field("mail").unique()).unwrap();
    for n in 0..1_200 {
        let value = json!({"total": n % 7, "tags": ["a", n % 3], "n": n});
        env.put("Order", &format!("o-{n}"), value).unwrap();
    }
    for n in 0..20 {
        let write = Write::put("User", format!("u-{n}"), json!({"mail": format!("m{n}")}));
        let write = if n % 2 == 0 { write.expires_in(Duration::from_secs(3_600)) } else { write };
        env.write(write).unwrap();
    }
    for n in 0..10 {
        env.remove("Order", &format!("o-{n}")).unwrap();
        env.put("Order", &format!("o-{}", 20 + n), json!({"total": 100})).unwrap();
    }
    env.put("Order", "o-1", json!({"again": true})).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    for name in ["Order", "User"] {
        while env.indexes(name).unwrap().iter().any(|index| index.state != IndexState::Ready) {
            assert!(Instant::now() < end, "indexes are built soon");
            std::thread::yield_now();
        }
    }
}

#[test]
fn d10_an_environment_that_nothing_has_damaged_is_clean() {
    on_each(|env| {
        assert!(env.check().unwrap().is_clean(), "also an empty one");
        fill(env);
        let report = env.check().unwrap();
        assert_eq!(report.findings, []);
        assert_eq!((report.documents, report.changes, report.expiries), (1_211, 1_241, 10));
        assert_eq!(report.findings_left_out, 0);
        assert!(report.index_entries > 3 * 1_190, "{report:?}");
    });
}

#[test]
fn d10_a_log_that_was_trimmed_is_clean() {
    on_each(|env| {
        fill(env);
        env.set_retention(Retention::everything().bytes(20_000)).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while env.log().read(Clock::ZERO, 1).is_ok() {
            assert!(Instant::now() < end, "the log is trimmed soon");
            std::thread::yield_now();
        }
        let report = env.check().unwrap();
        assert_eq!(report.findings, []);
        assert!(report.changes < 1_241, "{report:?}");
    });
}

#[test]
fn a_check_looks_at_few_large_documents_at_once() {
    on_each(|env| {
        for n in 0..12 {
            env.put("Large", &format!("l-{n}"), json!("x".repeat(1 << 20))).unwrap();
        }
        let mut most = 0;
        let report = env.check_with_progress(&mut |entries| most = most.max(entries)).unwrap();
        assert_eq!((report.findings, report.documents, report.changes), (vec![], 12, 12));
        assert_eq!(most, 4);
    });
}

/// A store on disk, filled, and the engine below it.
struct Patient {
    env: Env,
    engine: Lmdb,
    _directory: TempDir,
}

/// Writes that are done as they are.
struct Plant(Writes);

impl Decide for Plant {
    fn decide<'a>(&'a mut self, _: &'a dyn Transaction) -> Answer<'a, Result<Decision, Error>> {
        Answer::now(Ok(Decision { writes: self.0.clone(), changes: 0 }))
    }
}

impl Patient {
    fn new() -> Self {
        let (store, directory) = on_disk();
        let env = store.env("test").unwrap();
        fill(&env);
        let path = directory.path().join("data/env/test");
        let engine = Lmdb::open(path, &Options::default()).unwrap();
        Self { env, engine, _directory: directory }
    }

    fn plant(&self, plant: impl FnOnce(&mut Writes)) -> Vec<Finding> {
        let mut writes = Writes::default();
        plant(&mut writes);
        let results = pollster::block_on(self.engine.write(vec![Box::new(Plant(writes))]));
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        self.env.check().unwrap().findings
    }

    /// All entries of a table.
    fn entries(&self, table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
        let view = pollster::block_on(self.engine.view()).unwrap();
        let mut entries = Vec::new();
        let mut show = |key: &[u8], value: &[u8]| {
            entries.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        let (from, to) = (Bound::Unbounded, Bound::Unbounded);
        let range = Range { table, from, to, direction: Direction::Forward };
        pollster::block_on(view.range(range, &mut show)).unwrap();
        entries
    }

    /// The entry of a document.
    fn document(&self, key: &str) -> (Vec<u8>, Vec<u8>) {
        let mut entries = self.entries(Table::Documents).into_iter();
        entries.find(|(at, _)| at[4..] == *key.as_bytes()).unwrap()
    }
}

fn log(clock: u64) -> [u8; 8] {
    Clock::new(clock).to_bytes()
}

#[test]
fn a_change_that_is_missing_from_the_log_is_found() {
    let patient = Patient::new();
    let findings = patient.plant(|writes| writes.remove(Table::Log, &log(500)));
    let gap = Finding::LogGap { missing: Clock::new(500), next: Some(Clock::new(501)) };
    assert!(findings.contains(&gap), "{findings:?}");
    assert_eq!(gap.invariant(), "clock");
    let findings = patient.plant(|writes| writes.remove(Table::Log, &log(1_241)));
    let gap = Finding::LogGap { missing: Clock::new(1_241), next: None };
    assert!(findings.contains(&gap), "{findings:?}");
}

#[test]
fn what_is_missing_from_a_compacted_log_or_is_there_still_is_found() {
    let patient = Patient::new();
    patient.env.set_retention(Retention::everything().bytes(2_000).latest()).unwrap();
    patient.env.maintain().unwrap();
    let compacted_to = patient.env.log().compacted_to().unwrap().number();
    assert!((1_000..1_241).contains(&compacted_to), "{compacted_to}");
    assert_eq!(patient.env.check().unwrap().findings, []);

    let entries = patient.entries(Table::Log);
    let (last_of_500, value) =
        &entries[entries.iter().position(|(at, _)| *at == log(501)).unwrap()];
    let findings = patient.plant(|writes| writes.remove(Table::Log, last_of_500));
    let is_lost = |finding: &Finding| {
        matches!(finding, Finding::NotItsLastChange { key, version, logged, .. }
            if key == "o-500" && (version.number(), logged.number()) == (501, 0))
    };
    assert!(matches!(findings.as_slice(), [finding] if is_lost(finding)), "{findings:?}");

    let findings = patient.plant(|writes| {
        writes.put(Table::Log, last_of_500, value);
        writes.put(Table::Log, &log(21), value);
    });
    let is_twice = |finding: &Finding| matches!(finding, Finding::LogEntry { clock, .. } if *clock == Clock::new(21));
    assert!(findings.iter().any(is_twice), "{findings:?}");

    let (at, document) = patient.document("o-500");
    let findings = patient.plant(|writes| {
        writes.remove(Table::Log, &log(21));
        writes.remove(Table::Documents, &at);
    });
    let is_lost = |finding: &Finding| {
        matches!(finding, Finding::NotItsLastChange { key, version, logged, .. }
            if key == "o-500" && (version.number(), logged.number()) == (0, 501))
    };
    assert!(findings.iter().any(is_lost), "{findings:?}");

    let of_another = &entries[entries.iter().position(|(at, _)| *at == log(502)).unwrap()].1;
    let findings = patient.plant(|writes| {
        writes.put(Table::Documents, &at, &document);
        writes.put(Table::Log, last_of_500, of_another);
    });
    let is_of_another = |finding: &Finding| {
        matches!(finding, Finding::NotItsLastChange { key, version, logged, .. }
            if key == "o-500" && (version.number(), logged.number()) == (501, 0))
    };
    assert!(findings.iter().any(is_of_another), "{findings:?}");

    let findings = patient.plant(|writes| {
        writes.put(Table::Log, last_of_500, value);
        writes.remove(Table::Log, &log(compacted_to + 1));
    });
    let missing = Clock::new(compacted_to + 1);
    let gap = Finding::LogGap { missing, next: Some(missing.plus(1)) };
    assert!(findings.contains(&gap), "{findings:?}");
}

#[test]
fn a_change_that_cannot_be_read_or_is_beyond_the_head_is_found() {
    let patient = Patient::new();
    let findings = patient.plant(|writes| writes.put(Table::Log, &log(7), b"not CBOR"));
    let is_it = |finding: &Finding, at| matches!(finding, Finding::LogEntry { clock, .. } if *clock == Clock::new(at));
    assert!(findings.iter().any(|finding| is_it(finding, 7)), "{findings:?}");
    let (_, entry) = patient.entries(Table::Log).pop().unwrap();
    let findings = patient.plant(|writes| writes.put(Table::Log, &log(1_242), &entry));
    assert!(findings.iter().any(|finding| is_it(finding, 1_242)), "{findings:?}");
}

#[test]
fn a_document_that_is_lost_changed_or_back_is_found() {
    let patient = Patient::new();
    let (at, record) = patient.document("o-500");
    let findings = patient.plant(|writes| writes.remove(Table::Documents, &at));
    let lost = findings.iter().any(|finding| {
        matches!(finding, Finding::NotItsLastChange { key, version, .. }
            if key == "o-500" && *version == Clock::ZERO)
    });
    assert!(lost, "{findings:?}");

    let mut other = record.clone();
    let last = other.len() - 2;
    other[last] = if other[last] == b'1' { b'2' } else { b'1' };
    let findings = patient.plant(|writes| writes.put(Table::Documents, &at, &other));
    let changed = findings
        .iter()
        .any(|finding| matches!(finding, Finding::Document { key, .. } if key == "o-500"));
    assert!(changed, "{findings:?}");

    let back = [&at[..4], b"o-2"].concat();
    let findings = patient.plant(|writes| {
        writes.put(Table::Documents, &at, &record);
        writes.put(Table::Documents, &back, &record);
    });
    let is_back = findings
        .iter()
        .any(|finding| matches!(finding, Finding::NotItsLastChange { key, .. } if key == "o-2"));
    assert!(is_back, "{findings:?}");
}

#[test]
fn a_document_that_cannot_be_read_or_is_of_no_type_is_found() {
    let patient = Patient::new();
    let (at, _) = patient.document("o-500");
    let unknown = [&99_u32.to_be_bytes()[..], b"k"].concat();
    let findings = patient.plant(|writes| {
        writes.put(Table::Documents, &at, b"\x80");
        writes.put(Table::Documents, &unknown, b"\x80");
    });
    let keys: Vec<_> = findings
        .iter()
        .filter_map(|finding| match finding {
            Finding::Document { key, .. } => Some(key.as_str()),
            _ => None,
        })
        .collect();
    assert!(keys.contains(&"o-500") && keys.contains(&"k"), "{findings:?}");
}

#[test]
fn an_index_entry_that_is_missing_or_follows_from_nothing_is_found() {
    let patient = Patient::new();
    let entries = patient.entries(Table::Index);
    let (key, value) = entries.iter().find(|(key, _)| key.ends_with(b"u-5")).unwrap();
    let findings = patient.plant(|writes| writes.remove(Table::Index, key));
    let (index, type_name) = ("mail".to_owned(), "User".to_owned());
    assert_eq!(findings, [Finding::EntryMissing { index, type_name, key: "u-5".into() }]);

    let mut other = key.clone();
    *other.last_mut().unwrap() = b'7';
    let findings = patient.plant(|writes| {
        writes.put(Table::Index, key, value);
        writes.put(Table::Index, &other, value);
    });
    let (index, type_name) = ("mail".to_owned(), "User".to_owned());
    assert_eq!(findings, [Finding::EntrySuperfluous { index, type_name, key: "u-7".into() }]);
}

#[test]
fn two_documents_with_the_same_values_in_a_unique_index_are_found() {
    let patient = Patient::new();
    let entries = patient.entries(Table::Index);
    let (own, value) = entries.iter().find(|(key, _)| key.ends_with(b"u-5")).unwrap();
    let mut copy = own.clone();
    *copy.last_mut().unwrap() = b'7';
    let (at, mut record) = patient.document("u-7");
    let digit = record.windows(2).rposition(|two| two == b"m7").unwrap() + 1;
    record[digit] = b'5';
    let findings = patient.plant(|writes| {
        writes.put(Table::Index, &copy, value);
        writes.put(Table::Documents, &at, &record);
    });
    let twice = findings.iter().any(|finding| {
        matches!(finding, Finding::NotUnique { key, other, .. } if key == "u-7" && other == "u-5")
    });
    assert!(twice, "{findings:?}");
}

#[test]
fn entries_of_an_index_that_is_in_no_catalogue_are_found() {
    let patient = Patient::new();
    let key = [&77_u32.to_be_bytes()[..], b"x"].concat();
    let findings = patient.plant(|writes| writes.put(Table::Index, &key, &[0, 4]));
    assert_eq!(findings, [Finding::UnknownIndex { id: 77 }]);
}

#[test]
fn expiries_that_are_missing_or_superfluous_are_found() {
    let patient = Patient::new();
    let entries = patient.entries(Table::Index);
    let (key, _) = &entries[0];
    let expires_ms = u64::from_be_bytes(key[4..12].try_into().unwrap());
    let document = String::from_utf8(key[16..].to_vec()).unwrap();
    let mut later = key.clone();
    later[4..12].copy_from_slice(&(expires_ms + 1).to_be_bytes());
    let findings = patient.plant(|writes| {
        writes.remove(Table::Index, key);
        writes.put(Table::Index, &later, &[]);
    });
    let type_name = || "User".to_owned();
    let expected = [
        Finding::ExpiryMissing { type_name: type_name(), key: document.clone() },
        Finding::ExpirySuperfluous {
            type_name: type_name(),
            key: document,
            expires_ms: expires_ms + 1,
        },
    ];
    assert_eq!(findings, expected);
}

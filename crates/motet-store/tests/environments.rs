//! Environments of a store: which there are, and copies of them.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::fs;
use std::path::Path;
use std::thread;

use motet_store::{Clock, Error, Store, StoreOptions};
use serde_json::json;
use tempfile::TempDir;

fn on_disk() -> (Store, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Store::open(directory.path().join("data")).unwrap(), directory)
}

#[test]
fn d1_a_store_lists_its_environments_and_makes_none_by_being_asked() {
    let (store, directory) = on_disk();
    assert_eq!(store.environments().unwrap(), Vec::<String>::new());
    assert!(store.existing_env("a").unwrap().is_none());
    store.env("b").unwrap().put("T", "k", json!(1)).unwrap();
    store.env("a").unwrap();
    assert_eq!(store.environments().unwrap(), ["a", "b"]);

    let again = Store::open(directory.path().join("data")).unwrap();
    assert_eq!(again.environments().unwrap(), ["a", "b"]);
    let env = again.existing_env("b").unwrap().unwrap();
    assert_eq!(env.get("T", "k").unwrap().unwrap().value, json!(1));
    assert!(again.existing_env("c").unwrap().is_none());
    assert!(matches!(again.existing_env("~q"), Err(Error::NameInvalid { .. })));
    let memory = Store::in_memory();
    memory.env("m").unwrap();
    assert_eq!(memory.environments().unwrap(), ["m"]);
}

#[test]
fn d10_a_copy_has_the_documents_and_the_log_and_goes_on_from_its_clock() {
    let (store, directory) = on_disk();
    for name in ["a", "b"] {
        store.env(name).unwrap().put("T", "k", json!({"of": name})).unwrap();
    }
    let copy = directory.path().join("copy");
    store.copy_to(&copy, &["a", "b"]).unwrap();
    store.env("a").unwrap().put("T", "k", json!("later")).unwrap();

    let copied = Store::open(&copy).unwrap();
    for name in ["a", "b"] {
        let env = copied.env(name).unwrap();
        assert_eq!(env.get("T", "k").unwrap().unwrap().value, json!({"of": name}));
        assert_eq!(env.log().read(Clock::ZERO, 10).unwrap().len(), 1);
        assert_eq!(env.put("T", "k", json!(2)).unwrap(), Clock::new(2));
    }
}

#[test]
fn d10_a_copy_goes_nowhere_where_something_is() {
    let (store, directory) = on_disk();
    store.env("a").unwrap();
    let taken = directory.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("note.txt"), "keep me").unwrap();
    assert!(matches!(store.copy_to(&taken, &["a"]), Err(Error::NotAStore { .. })));
    assert_eq!(std::fs::read_to_string(taken.join("note.txt")).unwrap(), "keep me");
    let own = directory.path().join("data");
    assert!(matches!(store.copy_to(own, &["a"]), Err(Error::NotAStore { .. })));
    let memory = Store::in_memory();
    let nowhere = directory.path().join("nowhere");
    assert!(matches!(memory.copy_to(nowhere, &[]), Err(Error::NotAStore { .. })));
}

fn open_existing(path: &Path) -> Result<Store, Error> {
    Store::open_existing(path, StoreOptions::default())
}

#[test]
fn of_copies_to_one_place_one_is_made_and_none_takes_it_away() {
    let (store, directory) = on_disk();
    store.env("a").unwrap().put("T", "k", json!(1)).unwrap();
    for round in 0..20 {
        let copy = directory.path().join(format!("copy-{round}"));
        let made = thread::scope(|scope| {
            let copies = [(); 4].map(|()| scope.spawn(|| store.copy_to(&copy, &["a"])));
            copies.map(|copy| copy.join().unwrap()).iter().filter(|made| made.is_ok()).count()
        });
        assert_eq!(made, 1);
        let env = open_existing(&copy).unwrap().existing_env("a").unwrap().unwrap();
        assert_eq!(env.get("T", "k").unwrap().unwrap().value, json!(1));
    }
}

#[test]
fn a_copy_goes_nowhere_within_a_store_and_copies_nothing_that_is_not_there() {
    let (store, directory) = on_disk();
    store.env("a").unwrap();
    let data = directory.path().join("data");
    for within in ["backup", "env/backup", "env/a/deep/backup", "./env/../backup"] {
        let told = store.copy_to(data.join(within), &["a"]);
        assert!(matches!(told, Err(Error::NotAStore { .. })), "{within}: {told:?}");
    }
    assert!(!data.join("backup").exists() && !data.join("env/a/deep").exists());
    let told = store.copy_to(directory.path().join("copy"), &["a", "absent"]);
    assert!(matches!(told, Err(Error::NotAStore { .. })), "{told:?}");
    assert!(!directory.path().join("copy").exists() && !data.join("env/absent").exists());
}

#[test]
fn a_directory_with_another_ones_environments_is_no_store() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().join("project");
    fs::create_dir_all(project.join("env/bin")).unwrap();
    fs::write(project.join("env/bin/python"), "").unwrap();
    for opened in [Store::open(&project), open_existing(&project)] {
        assert!(matches!(opened.map(|_| ()), Err(Error::NotAStore { .. })));
    }
    assert_eq!(fs::read_dir(&project).unwrap().count(), 1, "it is as it was");
}

#[test]
fn a_store_from_before_there_was_a_marker_is_opened_and_marked() {
    let (store, directory) = on_disk();
    store.env("a").unwrap().put("T", "k", json!(1)).unwrap();
    drop(store);
    let data = directory.path().join("data");
    fs::remove_file(data.join("MOTET-STORE")).unwrap();
    let env = open_existing(&data).unwrap().existing_env("a").unwrap().unwrap();
    assert_eq!(env.get("T", "k").unwrap().unwrap().value, json!(1));
    assert!(!data.join("MOTET-STORE").exists());
    Store::open(&data).unwrap();
    assert!(data.join("MOTET-STORE").exists());
}

#[test]
fn looking_for_a_store_or_an_environment_makes_none() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for path in [&empty, &directory.path().join("absent")] {
        assert!(matches!(open_existing(path).map(|_| ()), Err(Error::NotAStore { .. })));
    }
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    assert!(!directory.path().join("absent").exists());

    let store = Store::open(directory.path().join("data")).unwrap();
    let env = directory.path().join("data/env");
    fs::create_dir(env.join("vacant")).unwrap();
    assert!(store.existing_env("vacant").unwrap().is_none());
    assert_eq!(store.environments().unwrap(), Vec::<String>::new());
    assert!(matches!(store.compact("vacant"), Err(Error::NotAStore { .. })));
    assert_eq!(fs::read_dir(env.join("vacant")).unwrap().count(), 0);
}

#[test]
fn a_value_read_unparsed_is_the_text_that_was_stored() {
    let (store, _directory) = on_disk();
    let env = store.env("a").unwrap();
    let version = env.put("T", "k", json!({"b": 1, "a": [1.5]})).unwrap();
    let raw = env.get_raw("T", "k").unwrap().unwrap();
    assert_eq!((raw.version, raw.expires_ms), (version, None));
    assert_eq!(raw.json, br#"{"b":1,"a":[1.5]}"#);
    assert_eq!(env.get_raw("T", "absent").unwrap(), None);
}

#[test]
fn numbers_come_back_exactly_as_they_were_written() {
    let env = Store::in_memory().env("a").unwrap();
    let mut bits = 0x3ff0_0000_0000_0001_u64;
    for step in 0..2_000_u64 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
        let number = f64::from_bits(bits);
        if !number.is_finite() {
            continue;
        }
        env.put("T", "k", json!(number)).unwrap();
        let read = env.get("T", "k").unwrap().unwrap().value.as_f64().unwrap();
        assert_eq!(read.to_bits(), number.to_bits(), "{number:?}");
    }
}

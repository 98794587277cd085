//! Pokes between the processes of one store: they find each other and wait for nobody.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(clippy::print_stdout, reason = "children talk to their parent on it")]

mod engines;
#[path = "processes/child.rs"]
mod role;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use engines::until;
use motet_store::{Env, Store};
use role::{Child, Role};
use rustix::process::Signal;
use serde_json::json;

/// Not a test by itself: the part of a child process.
#[test]
#[ignore = "the tests start it as a process of its own"]
fn child() {
    role::play();
}

fn open(dir: &Path) -> Env {
    Store::open(dir.join("store")).unwrap().env("main").unwrap()
}

/// Writes changes one after the other, each once the child has told of the one before.
fn is_followed(env: &Env, child: &mut Child) {
    child.expect("following");
    for number in 0..3 {
        // Time for the child to wait, so that only a poke can wake it.
        thread::park_timeout(Duration::from_millis(100));
        let key = format!("{}-{number}", child.pid());
        env.put("T", &key, json!(number)).unwrap();
        child.expect(&key);
    }
}

fn sockets(dir: &Path) -> usize {
    fs::read_dir(dir.join("store/pokes")).map_or(0, Iterator::count)
}

#[test]
fn a_process_that_stands_still_keeps_no_other_from_writing_or_ending() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("store")).unwrap();
    let env = store.env("main").unwrap();
    let mut stopped = Child::start(Role::Follow, dir.path(), "");
    stopped.expect("following");
    thread::park_timeout(Duration::from_millis(200));
    stopped.signal(Signal::STOP);
    let queue = fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").unwrap_or_default();
    let queue: u32 = queue.trim().parse().unwrap_or(10);
    for number in 0..queue + 20 {
        env.put("T", "k", json!(number)).unwrap();
        // Pokes are at least 10 ms apart.
        thread::park_timeout(Duration::from_millis(13));
    }
    let mut other = Child::start(Role::Follow, dir.path(), "");
    is_followed(&env, &mut other);
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        drop((env, store));
        sender.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(10)).expect("it ends beside one that stands still");
    until("the end of this process's socket", 10, || sockets(dir.path()) == 2);
}

#[test]
fn processes_of_one_store_meet_whatever_their_environment_variables_say() {
    let dir = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let env = open(dir.path());
    for runtime in [other.path(), Path::new("/absent")] {
        let variables = [("XDG_RUNTIME_DIR", runtime), ("TMPDIR", runtime)];
        let mut child = Child::start_with(Role::Follow, dir.path(), "", &variables);
        is_followed(&env, &mut child);
    }
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0, "nothing is left elsewhere");
}

#[test]
fn the_last_change_of_a_process_that_ends_is_told_too() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let mut child = Child::start(Role::Follow, dir.path(), "");
    child.expect("following");
    for round in 0..5 {
        thread::park_timeout(Duration::from_millis(100));
        let env = open(dir.path());
        env.put("T", "first", json!(round)).unwrap();
        let last = format!("last-{round}");
        // Sooner after the first than the next poke may be sent.
        env.put("T", &last, json!(round)).unwrap();
        drop(env);
        child.expect(&last);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn processes_of_a_store_with_a_long_path_meet_too() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("x".repeat(100)).join("y".repeat(100));
    fs::create_dir_all(&long).unwrap();
    let env = open(&long);
    let mut child = Child::start(Role::Follow, &long, "");
    is_followed(&env, &mut child);
    assert_eq!(sockets(&long), 2);
}

#[test]
fn what_killed_processes_left_is_removed_and_who_ends_last_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let env = open(dir.path());
    for _ in 0..3 {
        let mut child = Child::start(Role::Follow, dir.path(), "");
        child.expect("following");
        child.kill();
    }
    assert!(sockets(dir.path()) > 1);
    until("the end of dead sockets", 10, || {
        env.put("T", "k", json!(1)).unwrap();
        sockets(dir.path()) == 1
    });
    drop(env);
    until("the end of the directory", 10, || !dir.path().join("store/pokes").exists());
}

/// Where a store is signalled whose directory takes no sockets.
fn aside(dir: &Path) -> PathBuf {
    let found = fs::metadata(dir.join("store")).unwrap();
    let user = rustix::process::geteuid().as_raw();
    Path::new("/tmp").join(format!("motet-{user}-{:x}-{:x}", found.dev(), found.ino()))
}

#[test]
fn a_store_that_takes_no_sockets_is_signalled_elsewhere_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("store")).unwrap();
    drop(open(dir.path()));
    let pokes = dir.path().join("store/pokes");
    until("the end of the sockets", 10, || !pokes.exists());
    fs::write(&pokes, "in the way").unwrap();
    let env = open(dir.path());
    let mut child = Child::start(Role::Follow, dir.path(), "");
    is_followed(&env, &mut child);
    child.kill();
    drop(env);

    // One that others may enter may be another's.
    let aside = aside(dir.path());
    fs::create_dir_all(&aside).unwrap();
    fs::set_permissions(&aside, fs::Permissions::from_mode(0o777)).unwrap();
    let left = fs::read_dir(&aside).unwrap().count();
    let env = open(dir.path());
    env.put("T", "k", json!(2)).unwrap();
    assert_eq!(env.get("T", "k").unwrap().unwrap().value, json!(2));
    let found = fs::read_dir(&aside).unwrap().count();
    fs::remove_dir_all(&aside).unwrap();
    assert!(found <= left, "no socket was made there");
}

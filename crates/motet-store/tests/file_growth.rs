//! What readers keep the file from using again, and that it does use it again.
//!
//! A page that a view may still look at is not written to, so while somebody looks at an old state
//! the file grows with every commit. These tests do the same piece of work again and again while
//! readers are killed and stopped: the file may grow by what one of them held, once.

#![cfg(unix)]
#![allow(
    clippy::print_stdout,
    reason = "children talk to their parent on it, and figures are printed"
)]

mod engines;
#[path = "processes/child.rs"]
mod role;

use std::fs;
use std::path::Path;

use engines::open;
use role::{Child, Role, overwrite};
use rustix::process::Signal;

/// Not a test by itself: the part of a child process.
#[test]
#[ignore = "the tests start it as a process of its own"]
fn child() {
    role::play();
}

/// How many rounds a phase has.
const ROUNDS: usize = 3;

/// Does two equal phases and compares what the file grew by. The first makes room for what a round
/// holds; where that is free again when the next round begins, the second needs none.
fn assert_bounded(directory: &Path, mut round: impl FnMut()) {
    let bytes = || fs::metadata(directory.join("store/data.mdb")).map_or(0, |data| data.len());
    let mut phase = || {
        let before = bytes();
        (0..ROUNDS).for_each(|_| round());
        bytes() - before
    };
    let (first, second) = (phase(), phase());
    println!("{first} bytes of growth in {ROUNDS} rounds, {second} in {ROUNDS} more");
    assert!(first > 64 << 10, "the readers held nothing: {first}");
    // Where the pages of a round lie, and so which are left over, differs a little.
    assert!(second <= first / 8, "{first} bytes, and then {second}");
}

#[test]
fn d9_what_a_killed_reader_held_is_used_again_also_where_no_process_lives_for_long() {
    let dir = tempfile::tempdir().unwrap();
    // It is open all the time, so that nobody finds the store abandoned, and does nothing.
    let idle = open(&dir.path().join("store"));
    overwrite(&idle);
    drop(idle);
    let _idle = open(&dir.path().join("store"));
    assert_bounded(dir.path(), || {
        let mut reader = Child::start(Role::Read, dir.path(), "");
        reader.expect("viewing");
        let mut writer = Child::start(Role::Overwrite, dir.path(), "");
        writer.expect("overwritten");
        writer.expect_end();
        reader.kill();
    });
}

#[test]
fn d9_what_a_stopped_reader_held_is_used_again_once_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(&dir.path().join("store"));
    overwrite(&engine);
    assert_bounded(dir.path(), || {
        let mut reader = Child::start(Role::Stand, dir.path(), "");
        reader.expect_standing();
        overwrite(&engine);
        reader.signal(Signal::CONT);
        reader.expect("expired");
        reader.expect_end();
    });
}

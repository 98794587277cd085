//! The parts that child processes play, and how a test holds them.

#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{self, ChildStdout, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use motet_store::engine::lmdb::Options;
use motet_store::engine::{Decide, Decision, Engine, Table, Writes};
use motet_store::{Clock, Error, Limits, Store, StoreOptions};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use serde_json::json;

use crate::engines::{
    all, decider, open, open_with, putting, try_get, until, view, write, write_all,
};

/// What a child does, in the store of its test's directory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Writes numbers and keeps a file of what was acknowledged.
    Number,
    /// Writes once, and stays in its transaction until the test lets it go.
    Hold,
    /// Writes large groups all the time.
    Saturate,
    /// Holds a view.
    Read,
    /// Opens the store once the test lets it, and writes one document.
    Create,
    /// Writes the same documents again and again, and ends.
    Overwrite,
    /// Takes a view and stands still, until the test lets it go on and its view has expired.
    Stand,
    /// Has a `Store` open and follows a log, of whose changes it tells.
    Follow,
    /// Copies the environments `a` and `b` of a `Store`.
    Copy,
    /// Writes and removes the documents of a `Store` all the time, and trims its log.
    Churn,
}

const ROLES: [Role; 10] = [
    Role::Number,
    Role::Hold,
    Role::Saturate,
    Role::Read,
    Role::Create,
    Role::Overwrite,
    Role::Stand,
    Role::Follow,
    Role::Copy,
    Role::Churn,
];

/// In a child process: plays the part that it was started for.
pub(crate) fn play() {
    let (Ok(role), Ok(dir), Ok(id)) =
        (env::var("MOTET_ROLE"), env::var("MOTET_DIR"), env::var("MOTET_ID"))
    else {
        return;
    };
    let role = ROLES.into_iter().find(|known| format!("{known:?}") == role).expect("a role");
    let stage = Stage { dir: dir.into(), id };
    match role {
        Role::Number => stage.number(),
        Role::Hold => stage.hold(),
        Role::Saturate => stage.saturate(),
        Role::Read => stage.read(),
        Role::Create => stage.create(),
        Role::Overwrite => stage.overwrite(),
        Role::Stand => stage.stand(),
        Role::Follow => stage.follow(),
        Role::Copy => stage.copy(),
        Role::Churn => stage.churn(),
    }
}

struct Stage {
    dir: PathBuf,
    id: String,
}

impl Stage {
    fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    fn number(&self) {
        let engine = open(&self.store());
        let acks = self.dir.join(format!("acks-{}", self.id));
        let mut acks = OpenOptions::new().create(true).append(true).open(acks).expect("a file");
        // What a kill cut short stays a line of its own, and has no full stop.
        acks.write_all(b"\n").expect("a line");
        let prefix = format!("{}:", self.id);
        let written = all(&*view(&engine), Table::Documents);
        let mine = |key: &[u8]| {
            let number = std::str::from_utf8(key).ok()?.strip_prefix(&prefix)?;
            number.parse::<u64>().ok()
        };
        let last = written.iter().filter_map(|(key, _)| mine(key)).max().unwrap_or(0);
        for number in last + 1.. {
            let name = format!("{prefix}{number}");
            let commit = write(&engine, numbering(name.clone())).expect("a write");
            let line = format!("{} {name}.\n", commit.clock.number());
            acks.write_all(line.as_bytes()).expect("a line");
        }
    }

    fn hold(&self) {
        let engine = open(&self.store());
        let go = self.dir.join("go");
        let held = decider(move |_| {
            say("inside");
            until("the word to go on", 60, || go.exists());
            let mut writes = Writes::default();
            writes.put(Table::Documents, b"held", b"");
            Ok(Decision { writes, changes: 0 })
        });
        write(&engine, held).expect("a write");
        say("written");
        wait_for_kill();
    }

    fn saturate(&self) {
        let engine = open(&self.store());
        write(&engine, putting("busy", "")).expect("a write");
        say("busy");
        thread::scope(|scope| {
            for thread in 0..8_u8 {
                let engine = &engine;
                scope.spawn(move || write_for_ever(engine, thread));
            }
        });
    }

    fn read(&self) {
        let engine = open(&self.store());
        let view = view(&engine);
        assert!(!all(&*view, Table::Documents).is_empty());
        say("viewing");
        wait_for_kill();
    }

    fn create(&self) {
        say("ready");
        until("the word to go on", 60, || self.dir.join("go").exists());
        let engine = open(&self.store());
        write(&engine, putting(self.id.as_str(), "")).expect("a write");
        say("created");
        wait_for_kill();
    }

    fn overwrite(&self) {
        overwrite(&open(&self.store()));
        say("overwritten");
    }

    fn follow(&self) {
        let env = Store::open(self.store()).and_then(|store| store.env("main")).expect("a store");
        let mut tail = env.log().tail(Clock::ZERO);
        say("following");
        loop {
            // Less than the backstop: without a poke it is not seen.
            let change = tail.next_within(Duration::from_secs(15)).expect("the log");
            say(&change.expect("a change in time").key);
        }
    }

    fn copy(&self) {
        let store = Store::open(self.store()).expect("a store");
        store.copy_to(self.dir.join("copy"), &["a", "b"]).expect("a copy");
    }

    fn churn(&self) {
        // So that whatever is done in the background is parted by a kill.
        let limits = Limits { background_batch_max: 3, ..Limits::default() };
        let options = StoreOptions { limits, ..StoreOptions::default() };
        let store = Store::open_with(self.store(), options);
        let env = store.and_then(|store| store.env("main")).expect("a store");
        let id: u64 = self.id.parse().expect("a number");
        for number in id.. {
            let key = format!("k-{}", number * 7 % 31);
            let outcome = match number % 5 {
                4 => env.remove("Order", &key),
                _ => env.put("Order", &key, json!({"by": id, "number": number})),
            };
            match outcome {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            if number % 3 == 0 {
                env.maintain().expect("a log that is trimmed");
            }
        }
    }

    fn stand(&self) {
        let options = Options { view_max: Duration::from_millis(500), ..Options::default() };
        let engine = open_with(&self.store(), &options);
        let view = view(&engine);
        assert!(!all(&*view, Table::Documents).is_empty());
        // Ends when the test says so.
        kill_process(getpid(), Signal::STOP).expect("this process");
        until("the end of a view that is too old", 10, || {
            matches!(try_get(&*view, Table::Documents, &[0]), Err(Error::ViewExpired { .. }))
        });
        say("expired");
    }
}

/// One piece of work, the same each time: fifty documents of 3,000 bytes are written once more.
pub(crate) fn overwrite(engine: &dyn Engine) {
    for key in 0..50_u8 {
        write(engine, putting([key], vec![key; 3_000])).expect("a write");
    }
}

/// Writes a name to three places, at the next clock.
fn numbering(name: String) -> Box<dyn Decide> {
    decider(move |transaction| {
        let clock = transaction.head().clock.plus(1).to_bytes();
        let mut writes = Writes::default();
        writes.put(Table::Documents, name.as_bytes(), &clock);
        writes.put(Table::Log, &clock, name.as_bytes());
        writes.put(Table::Index, name.as_bytes(), &clock);
        Ok(Decision { writes, changes: 1 })
    })
}

fn write_for_ever(engine: &dyn Engine, thread: u8) {
    for round in 0_u32.. {
        let group = (0..20_u8)
            .map(|place| putting([thread, place, (round % 50) as u8], vec![place; 500]))
            .collect();
        for result in write_all(engine, group) {
            result.expect("a write");
        }
    }
}

fn wait_for_kill() {
    loop {
        thread::park();
    }
}

fn say(word: &str) {
    // On a line of its own: the test runner may have begun one.
    println!("\n{PREFIX}{word}");
}

/// A child process of a test, killed at the latest when it is dropped.
pub(crate) struct Child {
    process: process::Child,
    said: Lines<BufReader<ChildStdout>>,
    dir: PathBuf,
}

impl Child {
    pub(crate) fn start(role: Role, dir: &Path, id: &str) -> Self {
        Self::start_with(role, dir, id, &[])
    }

    /// Starts it with more environment variables.
    pub(crate) fn start_with(
        role: Role,
        dir: &Path,
        id: &str,
        variables: &[(&str, &Path)],
    ) -> Self {
        let mut process = Command::new(env::current_exe().expect("this binary"))
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env("MOTET_ROLE", format!("{role:?}"))
            .env("MOTET_DIR", dir)
            .env("MOTET_ID", id)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let said = BufReader::new(process.stdout.take().expect("its output")).lines();
        Self { process, said, dir: dir.to_owned() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits until the child says this.
    pub(crate) fn expect(&mut self, word: &str) {
        for line in self.said.by_ref() {
            if line.expect("a line").strip_prefix(PREFIX) == Some(word) {
                return;
            }
        }
        panic!("the child ended before it said {word:?}");
    }

    /// Lets the children of this test go on.
    pub(crate) fn go(&self) {
        std::fs::write(self.dir.join("go"), "").expect("a file");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("a running child");
    }

    /// Waits until it stands still by its own will.
    pub(crate) fn expect_standing(&self) {
        let found = waitpid(Some(Pid::from_child(&self.process)), WaitOptions::UNTRACED);
        let (_, status) = found.expect("a child").expect("its state");
        assert!(status.stopped(), "the child ended: {status:?}");
    }

    /// Waits until it has ended by itself.
    pub(crate) fn expect_end(&mut self) {
        assert!(self.process.wait().expect("its end").success());
    }

    /// Whether it has not come to an end by itself.
    pub(crate) fn is_running(&mut self) -> bool {
        self.process.try_wait().expect("its state").is_none()
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("a child");
        self.process.wait().expect("its end");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const PREFIX: &str = "child: ";

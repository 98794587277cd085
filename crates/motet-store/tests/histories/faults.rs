//! Kills, stops and restarts of the processes, at random.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::dice::Dice;

/// What was done to the processes.
#[derive(Debug, Default)]
pub(crate) struct Injected {
    kills: u64,
    kills_of_all: u64,
    stops: u64,
    stalls: u64,
    /// The longest time for which one stood still.
    pub(crate) stopped_max: Duration,
    /// Bytes of the data file after each quarter.
    file_bytes: Vec<u64>,
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, kills_of_all, stops, stalls, file_bytes, .. } = self;
        write!(
            f,
            "{kills} kills ({kills_of_all} times all at once), {stops} stops, {stalls} of them \
             long; the file had {file_bytes:?} bytes after each quarter",
        )
    }
}

/// Runs the processes and hurts them so many times; in the end all are dead.
pub(crate) fn inject(directory: &Path, faults: u64, seed: u64) -> Injected {
    let mut dice = Dice::new(seed);
    let mut injected = Injected::default();
    let mut children: Vec<_> = (0..CHILDREN)
        .map(|number| Child::start(directory, number as usize, 0, dice.roll(u64::MAX)))
        .collect();
    for fault in 1..=faults {
        thread::park_timeout(Duration::from_micros(dice.roll(120_000)));
        let victim = dice.roll(CHILDREN) as usize;
        match dice.roll(60) {
            0..30 => {
                children[victim].restart(&mut dice);
                injected.kills += 1;
            }
            30..34 => {
                children.iter_mut().for_each(Child::kill);
                children.iter_mut().for_each(|child| child.restart(&mut dice));
                injected.kills += CHILDREN;
                injected.kills_of_all += 1;
            }
            34..40 => {
                let stopped = Duration::from_micros(dice.roll(30_000));
                children[victim].pause(stopped, false, &mut injected);
                children[victim].restart(&mut dice);
                injected.kills += 1;
            }
            40..59 => {
                let stopped = Duration::from_micros(dice.roll(60_000));
                children[victim].pause(stopped, true, &mut injected);
            }
            _ => {
                children[victim].pause(STALL, true, &mut injected);
                injected.stalls += 1;
            }
        }
        if fault.is_multiple_of((faults / 4).max(1)) {
            let data = directory.join("store/env/main/data.mdb");
            injected.file_bytes.push(std::fs::metadata(data).map_or(0, |data| data.len()));
        }
    }
    thread::park_timeout(Duration::from_millis(500));
    children.iter_mut().for_each(Child::kill);
    injected
}

struct Child {
    process: process::Child,
    directory: PathBuf,
    number: usize,
    incarnation: usize,
    dead: bool,
}

impl Child {
    fn start(directory: &Path, number: usize, incarnation: usize, seed: u64) -> Self {
        let said = directory.join(format!("said-{number}-{incarnation:06}"));
        let process = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env("MOTET_DIR", directory)
            .env("MOTET_CHILD", format!("{number}-{incarnation:06}"))
            .env("MOTET_SEED", seed.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(said).expect("a file"))
            .spawn()
            .expect("a process");
        Self { process, directory: directory.to_owned(), number, incarnation, dead: false }
    }

    fn restart(&mut self, dice: &mut Dice) {
        self.kill();
        let next = self.incarnation + 1;
        *self = Self::start(&self.directory, self.number, next, dice.roll(u64::MAX));
    }

    /// Stops it for a time, and lets it go on.
    fn pause(&self, time: Duration, goes_on: bool, injected: &mut Injected) {
        let started = Instant::now();
        self.signal(Signal::STOP);
        thread::park_timeout(time);
        if goes_on {
            self.signal(Signal::CONT);
        }
        injected.stops += 1;
        injected.stopped_max = injected.stopped_max.max(started.elapsed());
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("a running child");
    }

    fn kill(&mut self) {
        if self.dead {
            return;
        }
        if let Some(status) = self.process.try_wait().expect("a child") {
            let said = format!("said-{}-{:06}", self.number, self.incarnation);
            let said = std::fs::read_to_string(self.directory.join(said)).unwrap_or_default();
            panic!("a child ended by itself, {status}: {said}");
        }
        self.process.kill().expect("a child");
        self.process.wait().expect("its end");
        self.dead = true;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const CHILDREN: u64 = 4;
/// Longer than the two seconds after which a stopped writer is named.
const STALL: Duration = Duration::from_millis(2_300);

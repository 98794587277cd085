//! What the sessions of a process do.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use motet_store::{Clock, Env, Error, IndexSpec, Store, Tail, TypeSpec};
use serde_json::json;

use super::dice::Dice;
use super::recorder::{Found, How, Line, Planned, Read, Reads, Recorder, Seen, read_all};
use super::writes::{GROUPS, NAMES, write_of};

/// Makes the store that the processes work on.
pub(crate) fn prepare(directory: &Path) {
    let env = Store::open(directory.join("store")).unwrap().env("main").unwrap();
    env.create_index("User", "by_name", &IndexSpec::new().field("name").unique()).unwrap();
    env.define("Shape", &shape(1)).unwrap();
}

/// In a child process: works until it is killed.
pub(crate) fn play() {
    let (Ok(dir), Ok(child)) = (std::env::var("MOTET_DIR"), std::env::var("MOTET_CHILD")) else {
        return;
    };
    let seed: u64 = std::env::var("MOTET_SEED").expect("a seed").parse().expect("a number");
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
    let dir = PathBuf::from(dir);
    let env = open(&dir);
    thread::scope(|scope| {
        for thread in 0..SESSIONS {
            let name = format!("{child}-{thread}");
            let recorder = Recorder::create(&dir.join(format!("session-{name}")));
            let (env, dice) = (env.clone(), Dice::new(seed ^ thread));
            let describes = child.starts_with("0-") && thread == 0;
            let mut session = Session { env, recorder, dice, name, number: 0, describes };
            scope.spawn(move || {
                loop {
                    session.act();
                }
            });
        }
        scope.spawn(|| follow(&env, &dir, &child));
    });
}

/// In the test itself: some of what a session does, in another store.
pub(crate) fn rehearse(env: &Env, directory: &Path) {
    let recorder = Recorder::create(&directory.join("rehearsal"));
    let (env, dice, name) = (env.clone(), Dice::new(1), "rehearsal".to_owned());
    let mut session = Session { env, recorder, dice, name, number: 0, describes: false };
    (0..REHEARSED).for_each(|_| session.act());
}

/// Opens the store, however long a stopped process keeps others from it.
fn open(dir: &Path) -> Env {
    let store = Store::open(dir.join("store")).expect("the store");
    loop {
        match store.env("main") {
            Err(Error::WriterStalled { .. } | Error::WriterBusy { .. }) => {}
            opened => return opened.expect("the environment"),
        }
    }
}

/// Goes on with the tail of the process's predecessor.
fn follow(env: &Env, dir: &Path, child: &str) {
    let mine = child.split('-').next().expect("a number");
    let earlier = read_all(dir, &format!("tail-{mine}-"));
    let position = earlier.iter().flatten().filter_map(|line| match line {
        Line::Saw(seen) => Some(seen.clock),
        _ => None,
    });
    let mut tail: Tail = env.log().tail(Clock::new(position.max().unwrap_or(0)));
    let mut recorder = Recorder::create(&dir.join(format!("tail-{child}")));
    loop {
        match tail.next_within(Duration::from_millis(200)) {
            Ok(Some(change)) => recorder.note(&Line::Saw(Seen::from(&change))),
            // A process that stood still for long finds its view gone.
            Ok(None) | Err(Error::ViewExpired { .. }) => {}
            Err(error) => panic!("a tail ended: {error}"),
        }
    }
}

pub(crate) struct Session {
    pub(crate) env: Env,
    pub(crate) recorder: Recorder,
    pub(crate) dice: Dice,
    name: String,
    number: u64,
    /// Whether it is the one that describes the type `Shape`.
    describes: bool,
}

impl Session {
    fn act(&mut self) {
        thread::park_timeout(Duration::from_micros(self.dice.roll(4_000)));
        match self.dice.roll(40) {
            0..8 => self.batch(1),
            8..13 => {
                let count = 2 + self.dice.roll(7);
                self.batch(count);
            }
            13..25 => self.transact(),
            25..29 => self.view(),
            29..33 => self.query(),
            33..36 => self.get(),
            36..38 => self.put_shape(),
            38 => self.change_index(),
            _ if self.describes => self.describe(),
            _ => {}
        }
    }

    /// A name for an attempt, which no other has.
    pub(crate) fn next_name(&mut self) -> String {
        self.number += 1;
        format!("{}:{}", self.name, self.number)
    }

    pub(crate) fn head(&self) -> u64 {
        self.env.log().head().expect("the head").clock.number()
    }

    /// Reads that begin now.
    pub(crate) fn begin_reads(&self) -> Reads {
        Reads { head_before: self.head(), ms_before: unix_ms(), ..Reads::default() }
    }

    /// Ends reads that were begun.
    pub(crate) fn end_reads(&self, reads: &mut Reads) {
        reads.ms_after = unix_ms();
        reads.head_after = self.head();
    }

    fn batch(&mut self, count: u64) {
        let by = self.next_name();
        let writes: Vec<_> = (0..count).map(|_| self.planned(&by)).collect();
        self.commit(by, writes);
    }

    fn commit(&mut self, by: String, writes: Vec<Planned>) {
        let asked = writes.iter().map(|write| write_of(write, &by)).collect();
        let reads = self.begin_reads();
        self.recorder.note(&Line::Attempt { by: by.clone(), reads, writes });
        let outcome = self.env.write_all(asked);
        let versions = outcome.map(|versions| versions.iter().map(|one| one.number()).collect());
        self.note_outcome(by, versions);
    }

    pub(crate) fn note_outcome(&mut self, by: String, outcome: Result<Vec<u64>, Error>) {
        let line = match outcome {
            Ok(versions) => Line::Committed { by, versions },
            Err(error) => {
                let code = error.code().name().to_owned();
                let (head, ms) = (self.head(), unix_ms());
                Line::Refused { by, code, head, ms, why: error.to_string() }
            }
        };
        self.recorder.note(&line);
    }

    /// Sets a description that only documents of the next generation fit.
    fn describe(&mut self) {
        let generation = self.generation() + 1;
        self.recorder.note(&Line::Describing { generation, head: self.head() });
        if self.env.define("Shape", &shape(generation)).is_ok() {
            let head = self.head();
            self.recorder.note(&Line::Described { generation, head });
        }
    }

    fn put_shape(&mut self) {
        let (by, key) = (self.next_name(), format!("s-{}", self.dice.roll(5)));
        let value = json!({"by": by, "n": 0, "generation": self.generation()});
        let put = Planned::Put { of: "Shape".into(), key, value, ttl_ms: None, how: How::Put };
        self.commit(by, vec![put]);
    }

    fn generation(&self) -> u64 {
        let spec = serde_json::to_value(self.env.definition("Shape").expect("a view")).unwrap();
        spec["schema"]["json"]["properties"]["generation"]["const"].as_u64().expect("a number")
    }

    fn change_index(&mut self) {
        let outcome = if self.dice.once_in(2) {
            self.env.create_index("Item", "by_group", &IndexSpec::new().field("group"))
        } else {
            self.env.drop_index("Item", "by_group")
        };
        match outcome {
            Ok(()) | Err(Error::IndexNotFound { .. }) => {}
            Err(error) if error.retryable() => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn query(&mut self) {
        let (of, field, value) = if self.dice.once_in(2) {
            ("Item", "group", json!(self.dice.roll(GROUPS)))
        } else {
            ("User", "name", json!(format!("n{}", self.dice.roll(NAMES))))
        };
        let mut reads = self.begin_reads();
        let found = match self.env.query(of).filter(json!({ field: value })).rows() {
            Err(Error::ViewExpired { .. }) => return,
            found => found.expect("rows"),
        };
        self.end_reads(&mut reads);
        let mut found: Vec<_> = found.iter().map(Found::from).collect();
        found.sort_by(|one, other| one.key.cmp(&other.key));
        reads.each.push(Read::Field { of: of.into(), field: field.into(), value, found });
        self.recorder.note(&Line::Viewed { reads });
    }

    fn get(&mut self) {
        let (of, key) =
            if self.dice.once_in(2) { ("Lease", self.lease()) } else { ("Item", self.item()) };
        let mut reads = self.begin_reads();
        let found = match self.env.get(of, &key) {
            Err(Error::ViewExpired { .. }) => return,
            found => found.expect("an answer").as_ref().map(Found::from),
        };
        self.end_reads(&mut reads);
        reads.each.push(Read::Key { of: of.into(), key, found });
        self.recorder.note(&Line::Viewed { reads });
    }
}

fn shape(generation: u64) -> TypeSpec {
    let schema = json!({
        "type": "object",
        "required": ["generation"],
        "properties": {"generation": {"const": generation}},
    });
    TypeSpec::new().schema(schema)
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

const SESSIONS: u64 = 2;
const REHEARSED: u64 = 200;

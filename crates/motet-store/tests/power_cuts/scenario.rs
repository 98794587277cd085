//! What the recorded process does, and what it says of it.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use motet_store::engine::lmdb::{Durability, Options};
use motet_store::{
    Clock, Env, IndexSpec, IndexState, Patch, Retention, Store, StoreOptions, Tail, Write,
};
use serde_json::{Value, json};

use super::dice::Dice;
use super::known::Known;
use super::trace::Event;

/// What the process was told by the store, and said.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    pub(crate) clock: u64,
    /// Indexes that were made, by type and name, and not dropped.
    pub(crate) indexes: Vec<(String, String)>,
    /// Indexes that may have been dropped.
    pub(crate) dropped: Vec<String>,
    pub(crate) retention_bytes: Option<u64>,
    count: usize,
}

impl Acknowledged {
    /// Takes note of a line of output.
    pub(crate) fn hear(&mut self, event: &Event) {
        let Event::Said(line) = event else { return };
        let Some(said) = line.strip_prefix(PREFIX) else { return };
        self.count += 1;
        let words: Vec<_> = said.split(' ').collect();
        match words[..] {
            ["clock", clock] => self.clock = clock.parse().unwrap(),
            ["index", of, name] => self.indexes.push((of.into(), name.into())),
            ["dropping", name] => {
                self.indexes.retain(|(_, index)| index != name);
                self.count -= 1;
            }
            ["dropped", name] => self.dropped.push(name.into()),
            ["kept", bytes] => self.retention_bytes = bytes.parse().ok(),
            _ => panic!("{line} is not understood"),
        }
    }

    pub(crate) const fn count(&self) -> usize {
        self.count
    }
}

/// In the child process: writes, and says each acknowledgement.
pub(crate) fn play() {
    let Ok(dir) = std::env::var("MOTET_DIR").map(PathBuf::from) else { return };
    let relaxed = std::env::var("MOTET_DURABILITY").is_ok_and(|named| named == "Relaxed");
    let durability = if relaxed { Durability::Relaxed } else { Durability::Durable };
    let engine = Options { durability, ..Options::default() };
    let options = StoreOptions { engine, ..StoreOptions::default() };
    let store = Store::open_with(dir.join("store"), options).unwrap();
    let env = store.env("main").unwrap();
    let changes = File::create(dir.join("changes")).unwrap();
    let mut player =
        Player { tail: env.log().tail(Clock::ZERO), env, changes, dice: Dice::new(7), number: 0 };
    player.index("Item", "by_group", &IndexSpec::new().field("group"));
    player.index("User", "by_name", &IndexSpec::new().field("name").unique());
    (0..25).for_each(|_| player.step());
    player.many_items();
    player.env.set_retention(Retention::everything().bytes(KEPT_BYTES)).unwrap();
    say(&format!("kept {KEPT_BYTES}"));
    player.index("Item", "by_size", &IndexSpec::new().descending("size").field("n"));
    (0..25).for_each(|_| player.step());
    player.until_built();
    say("dropping by_group");
    player.env.drop_index("Item", "by_group").unwrap();
    say("dropped by_group");
    (0..25).for_each(|_| player.step());
    player.env.set_retention(Retention::everything().bytes(KEPT_BYTES / 3).latest()).unwrap();
    say(&format!("kept {}", KEPT_BYTES / 3));
    (0..25).for_each(|_| {
        player.step();
        player.env.maintain().unwrap();
    });
    assert!(player.env.log().compacted_to().unwrap() > Clock::ZERO, "nothing is compacted");
    player.see_changes();
}

struct Player {
    env: Env,
    /// Sees every change before it can be trimmed.
    tail: Tail,
    changes: File,
    dice: Dice,
    number: u64,
}

impl Player {
    fn index(&self, type_name: &str, name: &str, spec: &IndexSpec) {
        self.env.create_index(type_name, name, spec).unwrap();
        say(&format!("index {type_name} {name}"));
    }

    /// One commit of any kind.
    fn step(&mut self) {
        let count = if self.dice.once_in(3) { 1 } else { 1 + self.dice.roll(40) };
        let mut writes: Vec<_> = (0..count).map(|_| self.write()).collect();
        // What is removed must be there, also after what the batch does before.
        let live = self.env.range("Item", &motet_store::KeyRange::all()).unwrap();
        let mut removed: Vec<_> = live
            .into_iter()
            .filter(|item| item.key != KEPT_ITEM && self.dice.once_in(40))
            .collect();
        removed.truncate(4);
        for document in removed {
            writes.push(Write::put("Item", document.key.as_str(), document.value));
            writes.push(Write::remove("Item", document.key));
        }
        self.commit(writes);
        if self.dice.once_in(4) {
            // Lets expiries and trimming have their commits in between.
            thread::park_timeout(Duration::from_millis(60));
        }
    }

    fn write(&mut self) -> Write {
        self.number += 1;
        match self.dice.roll(10) {
            0 => {
                let name = self.number;
                Write::put("User", format!("u-{}", self.dice.roll(30)), json!({"name": name}))
            }
            1 => {
                let after_ms = 50 + self.dice.roll(400);
                let value = json!({"ttl_ms": after_ms, "n": self.number});
                Write::put("Lease", format!("l-{}", self.number), value)
                    .expires_in(Duration::from_millis(after_ms))
            }
            2 => {
                let patch = Patch::new().inc("n", json!(1)).unwrap();
                let patch = patch.append("seen", vec![json!(self.number)]).unwrap();
                Write::patch("Item", KEPT_ITEM, patch)
            }
            _ => {
                let key = format!("i-{:03}", self.dice.roll(150));
                Write::put("Item", key, self.item())
            }
        }
    }

    fn item(&mut self) -> Value {
        // One in a while is longer than a page.
        let long = if self.dice.once_in(30) { 10_000 } else { 20 + self.dice.roll(100) };
        let group = self.dice.roll(GROUPS);
        json!({
            "n": self.number,
            "group": group,
            "group_again": group,
            "size": self.dice.roll(50),
            "text": "x".repeat(long as usize),
        })
    }

    /// More than one transaction of an index's build takes.
    fn many_items(&mut self) {
        let writes = (0..600).map(|number| {
            let group = number % GROUPS;
            let value = json!({"n": number, "group": group, "group_again": group, "size": number});
            Write::put("Item", format!("m-{number:03}"), value)
        });
        self.commit(writes.collect());
    }

    fn commit(&mut self, mut writes: Vec<Write>) {
        if self.number < 100 {
            writes.insert(0, Write::put("Item", KEPT_ITEM, json!({"n": 0, "group": 0})));
        }
        match self.env.write_all(writes) {
            Ok(versions) => say(&format!("clock {}", versions.iter().max().unwrap())),
            Err(error) => panic!("{error}"),
        }
        self.see_changes();
    }

    fn see_changes(&mut self) {
        while let Some(change) = self.tail.next_within(Duration::ZERO).unwrap() {
            let line = serde_json::to_string(&Known::from(&change)).unwrap() + "\n";
            self.changes.write_all(line.as_bytes()).unwrap();
        }
    }

    fn until_built(&self) {
        let ready = |env: &Env| {
            let indexes = env.indexes("Item").unwrap();
            indexes.iter().all(|index| index.state == IndexState::Ready)
        };
        let started = Instant::now();
        while !ready(&self.env) {
            assert!(started.elapsed() < Duration::from_secs(60), "the indexes are not built");
            thread::park_timeout(Duration::from_millis(10));
        }
    }
}

fn say(what: &str) {
    // On a line of its own: the test runner may have begun one.
    println!("\n{PREFIX}{what}");
}

const PREFIX: &str = "acknowledged: ";
pub(crate) const GROUPS: u64 = 4;
pub(crate) const KEPT_BYTES: u64 = 150_000;
/// An item that is never removed.
const KEPT_ITEM: &str = "kept";

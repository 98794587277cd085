//! The medium below a store: what is on it for certain, and what may be.

use std::fs;
use std::path::Path;

use super::dice::Dice;
use super::trace::{Event, Trace};

/// What a cut takes of the writes that were not synced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    Nothing,
    Everything,
    /// The write of this event.
    One(usize),
    /// Any sectors of any writes, by this seed; lengths and the table of readers too.
    Random(u64),
}

/// The files of a store, at a moment.
pub(crate) struct Disk<'t> {
    files: Vec<Contents<'t>>,
}

struct Contents<'t> {
    name: String,
    /// What the last sync left.
    synced: Vec<u8>,
    /// What was done since, in order.
    since: Vec<Pending<'t>>,
}

struct Pending<'t> {
    moment: usize,
    step: Step<'t>,
    /// It is on the medium.
    settled: bool,
}

#[derive(Clone, Copy)]
enum Step<'t> {
    Write { at: usize, bytes: &'t [u8] },
    Length(usize),
}

impl<'t> Disk<'t> {
    /// A medium with these files, in the order in which the trace numbers them.
    pub(crate) fn new(files: &[(String, Vec<u8>)]) -> Self {
        let contents = |(name, bytes): &(String, Vec<u8>)| Contents {
            name: name.clone(),
            synced: bytes.clone(),
            since: Vec::new(),
        };
        Self { files: files.iter().map(contents).collect() }
    }

    /// A medium that is asked only for what is not settled.
    pub(crate) fn of_names_only(trace: &Trace) -> Self {
        let files: Vec<_> = trace.files.iter().map(|name| (name.clone(), Vec::new())).collect();
        Self::new(&files)
    }

    pub(crate) fn happens(&mut self, moment: usize, event: &'t Event) {
        match event {
            Event::Write { file, at, bytes } => {
                let step = Step::Write { at: *at, bytes };
                self.files[*file].since.push(Pending { moment, step, settled: false });
            }
            Event::Length { file, bytes } => {
                let step = Step::Length(*bytes);
                self.files[*file].since.push(Pending { moment, step, settled: false });
            }
            Event::Settled { write } => self.settle(|pending| pending.moment == *write),
            Event::Sync { file, since } => {
                let settled = |pending: &Pending<'_>| pending.moment < *since;
                self.files[*file].settle(settled);
            }
            Event::Said(_) => {}
        }
    }

    fn settle(&mut self, settles: impl Fn(&Pending<'_>) -> bool + Copy) {
        self.files.iter_mut().for_each(|file| file.settle(settles));
    }

    /// The events whose writes may be lost.
    pub(crate) fn unsettled(&self) -> Vec<usize> {
        let pending = self.files.iter().flat_map(|file| &file.since);
        pending.filter(|pending| !pending.settled).map(|pending| pending.moment).collect()
    }

    /// The files as a cut leaves them.
    pub(crate) fn after(&self, loss: &Loss) -> Vec<(&str, Vec<u8>)> {
        let mut dice = Dice::new(if let Loss::Random(seed) = loss { *seed } else { 0 });
        self.files.iter().map(|file| (file.name.as_str(), file.after(loss, &mut dice))).collect()
    }

    /// Lays a store down as a cut leaves it. The table of readers is written through memory, so it
    /// may be anything: what it was, absent, or noise.
    pub(crate) fn write_image(&self, path: &Path, loss: &Loss, readers: &[u8]) {
        let environment = path.join("env/main");
        fs::create_dir_all(&environment).unwrap();
        let files = self.after(loss).into_iter().filter(|(name, _)| *name != "lock.mdb");
        for (name, bytes) in files {
            fs::write(environment.join(name), bytes).unwrap();
        }
        let table = match loss {
            Loss::Nothing => Some(readers.to_vec()),
            Loss::Everything | Loss::One(_) => None,
            Loss::Random(seed) => {
                let mut dice = Dice::new(!seed);
                let is_there = !dice.once_in(3);
                is_there.then(|| readers.iter().map(|_| dice.roll(256) as u8).collect())
            }
        };
        if let Some(table) = table {
            fs::write(environment.join("lock.mdb"), table).unwrap();
        }
    }
}

impl Contents<'_> {
    fn settle(&mut self, settles: impl Fn(&Pending<'_>) -> bool) {
        for pending in &mut self.since {
            pending.settled |= settles(pending);
        }
        let count = self.since.iter().take_while(|pending| pending.settled).count();
        for pending in self.since.drain(..count) {
            pending.step.apply(&mut self.synced, |_| true);
        }
    }

    fn after(&self, loss: &Loss, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let mut longest = bytes.len();
        for Pending { moment, step, settled } in &self.since {
            longest = longest.max(step.end());
            match loss {
                _ if *settled => step.apply(&mut bytes, |_| true),
                Loss::Nothing => step.apply(&mut bytes, |_| true),
                Loss::Everything => {}
                Loss::One(lost) if lost == moment => {}
                Loss::One(_) => step.apply(&mut bytes, |_| true),
                Loss::Random(_) => match dice.roll(3) {
                    0 => {}
                    1 => step.apply(&mut bytes, |_| true),
                    _ => step.apply(&mut bytes, |_| dice.once_in(2)),
                },
            }
        }
        // A file may have got its length and not what was to be in it.
        if matches!(loss, Loss::Random(_)) && dice.once_in(2) {
            bytes.resize(longest, 0);
        }
        bytes
    }
}

impl Step<'_> {
    const fn end(&self) -> usize {
        match self {
            Self::Write { at, bytes } => *at + bytes.len(),
            Self::Length(bytes) => *bytes,
        }
    }

    /// Does it, as far as sectors are written.
    fn apply(&self, to: &mut Vec<u8>, mut is_written: impl FnMut(usize) -> bool) {
        match *self {
            Self::Length(bytes) => {
                if is_written(bytes / SECTOR) {
                    to.resize(bytes, 0);
                }
            }
            Self::Write { at, bytes } => {
                for sector in at / SECTOR..self.end().div_ceil(SECTOR) {
                    if !is_written(sector) {
                        continue;
                    }
                    let from = at.max(sector * SECTOR);
                    let until = self.end().min((sector + 1) * SECTOR);
                    if to.len() < until {
                        to.resize(until, 0);
                    }
                    to[from..until].copy_from_slice(&bytes[from - at..until - at]);
                }
            }
        }
    }
}

/// Bytes that a medium writes whole or not at all.
const SECTOR: usize = 512;

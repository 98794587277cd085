//! Power cuts at every moment, and the disk that each of them may leave.
//!
//! A child process, which is this binary again, writes through a store while `strace` records every
//! write and sync of the store's files in order. From the record come the images that a cut leaves:
//! what was synced before is on the medium, and of what was not synced any part. Each image is opened
//! as a store, checked against what the child was told and against the whole log, and written to.
//!
//! `MOTET_IMAGES` sets how many images are checked, `MOTET_SEED` which.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "figures and seeds are for whoever runs it")]
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod power_cuts;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use motet_store::engine::lmdb::Durability;
use power_cuts::dice::Dice;
use power_cuts::disk::{Disk, Loss};
use power_cuts::recording::Recording;
use power_cuts::scenario::Acknowledged;
use power_cuts::trace::Trace;
use power_cuts::{inspect, recording, scenario};

/// Not a test by itself: the part of the child process.
#[test]
#[ignore = "the test starts it as a process of its own"]
fn child() {
    scenario::play();
}

#[test]
fn d13_after_a_power_cut_at_any_moment_all_that_was_acknowledged_is_there_and_nothing_is_half_there()
 {
    let images = number_from("MOTET_IMAGES").unwrap_or(600);
    let recording = recording::record(Durability::Durable);
    let lost = cut(&recording, images as usize, true);
    assert_eq!(lost, 0);
}

#[test]
fn d13_a_power_cut_takes_from_a_relaxed_store_only_its_last_changes_and_leaves_the_others_whole() {
    let images = number_from("MOTET_IMAGES").unwrap_or(600) / 4;
    let recording = recording::record(Durability::Relaxed);
    let lost = cut(&recording, images as usize, false);
    assert!(lost > 0, "a relaxed store does not wait for the medium");
}

/// Checks so many images, and gives how many acknowledged changes an image has lacked at most.
fn cut(recording: &Recording, images: usize, durable: bool) -> u64 {
    let seed = number_from("MOTET_SEED").unwrap_or(13);
    let started = Instant::now();
    let plan = plan(&recording.trace, images, &mut Dice::new(seed));
    let shelf = shelf();
    let mut disk = Disk::new(&recording.before);
    let (mut acknowledged, none) = (Acknowledged::default(), Acknowledged::default());
    let (mut losses, mut heads) = (plan.iter().enumerate().peekable(), BTreeSet::new());
    let mut lost = 0;
    for (moment, event) in recording.trace.events.iter().enumerate() {
        disk.happens(moment, event);
        acknowledged.hear(event);
        while let Some((number, (_, loss))) = losses.next_if(|(_, (at, _))| *at == moment) {
            let label = format!("MOTET_SEED={seed}: cut after event {moment}, {loss:?}");
            // A path of its own: the store of the last image may still be closing.
            let image = shelf.path().join(number.to_string());
            disk.write_image(&image, loss, &recording.readers);
            let expected = if durable { &acknowledged } else { &none };
            let head = inspect::image(&image, &label, &recording.history, expected);
            lost = lost.max(acknowledged.clock.saturating_sub(head));
            heads.insert(head);
            fs::remove_dir_all(&image).unwrap();
        }
    }
    println!(
        "{} images of cuts at {} moments in {:?}, with {} different ends of the log; {} changes, {} \
         syncs, {} acknowledgements, {lost} acknowledged changes lost at most (MOTET_SEED={seed})",
        plan.len(),
        plan.iter().map(|(moment, _)| moment).collect::<BTreeSet<_>>().len(),
        started.elapsed(),
        heads.len(),
        recording.history.len(),
        recording.trace.syncs(),
        acknowledged.count(),
    );
    assert!(plan.len() >= images, "{} images of {images}", plan.len());
    assert!(heads.len() > 10, "the images hardly differ: {heads:?}");
    lost
}

/// At which moments the power is cut and what is lost then, in order of time: first everything that
/// leaves all, nothing, or all but one write; then, up to the number of images, parts at random.
fn plan(trace: &Trace, images: usize, dice: &mut Dice) -> Vec<(usize, Loss)> {
    let mut disk = Disk::of_names_only(trace);
    let (mut plain, mut moments) = (Vec::new(), Vec::new());
    for (moment, event) in trace.events.iter().enumerate() {
        disk.happens(moment, event);
        if !trace.is_last_before_a_change(moment) {
            continue;
        }
        let open = disk.unsettled();
        plain.push((moment, Loss::Everything));
        if !open.is_empty() {
            plain.push((moment, Loss::Nothing));
            moments.push(moment);
        }
        if open.len() > 1 {
            plain.extend(open.into_iter().map(|write| (moment, Loss::One(write))));
        }
    }
    // Half of a small number is for parts at random too.
    let keep = plain.len().min(images.div_ceil(2));
    let mut plan: Vec<_> = sample(plain, keep, dice);
    while plan.len() < images {
        let moment = moments[dice.roll(moments.len() as u64) as usize];
        plan.push((moment, Loss::Random(dice.roll(u64::MAX))));
    }
    plan.sort_by_key(|(moment, _)| *moment);
    plan
}

/// So many of these, in their order.
fn sample<T>(all: Vec<T>, count: usize, dice: &mut Dice) -> Vec<T> {
    let (mut left, mut wanted) = (all.len() as u64, count as u64);
    let mut chosen = Vec::with_capacity(count);
    for one in all {
        if dice.roll(left) < wanted {
            chosen.push(one);
            wanted -= 1;
        }
        left -= 1;
    }
    chosen
}

/// Where images lie: in memory where that is possible.
fn shelf() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    let mut shelf = tempfile::Builder::new();
    let in_memory = shelf.prefix("motet-power-cut-").tempdir_in(memory);
    in_memory.or_else(|_| tempfile::tempdir()).expect("a directory for images")
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}

//! What each session was told, against the replayed log.

use std::collections::BTreeMap;
use std::path::Path;

use super::checker::{Attempt, Attempts, Outcome};
use super::recorder::{How, Line, Planned, Reads, Seen, read_all};
use super::verdict::Verdict;
use super::views;

/// Acknowledged attempts are there, refused ones are not, and time never goes back in a session.
pub(crate) fn check(sessions: &[Vec<Line>], attempts: &Attempts, verdict: &mut Verdict) {
    for (by, attempt) in attempts {
        check_outcome(by, attempt, verdict);
    }
    for session in sessions {
        let mut floor = 0;
        for line in session {
            match line {
                Line::Viewed { reads } => floor = check_view(reads, floor, verdict),
                Line::Attempt { by, reads, .. } => {
                    let looked = reads.head_before;
                    verdict.faults.expect(looked >= floor, || format!("{by}: {looked} < {floor}"));
                    floor = floor.max(looked);
                }
                Line::Committed { by, .. } => {
                    let clock = attempts.get(by).and_then(|attempt| attempt.clocks.last());
                    floor = floor.max(clock.copied().unwrap_or(0));
                }
                Line::Contradiction { what } => verdict.faults.add(|| what.clone()),
                _ => {}
            }
        }
    }
}

fn check_outcome(by: &str, attempt: &Attempt, verdict: &mut Verdict) {
    let is_there = !attempt.clocks.is_empty();
    match &attempt.outcome {
        Outcome::Committed(versions) => {
            verdict.committed += 1;
            verdict.faults.expect(is_there, || format!("{by} was acknowledged and is gone"));
            let same = versions.is_empty() || *versions == attempt.clocks;
            verdict.faults.expect(same, || format!("{by} gave {versions:?}: {attempt:?}"));
        }
        Outcome::Refused { code, head, ms } => {
            verdict.refused += 1;
            verdict.faults.expect(!is_there, || format!("{by} was refused and is there"));
            let justified = is_justified(attempt, code, *head, *ms, verdict);
            verdict.faults.expect(justified, || format!("{by} was refused: {code}; {attempt:?}"));
        }
        Outcome::Unknown if is_there => verdict.unknown.0 += 1,
        Outcome::Unknown => verdict.unknown.1 += 1,
    }
}

/// Whether there was a moment between call and answer at which the refusal was right. Batches and
/// transactions may be refused for what they did themselves, so only single writes are asked.
fn is_justified(attempt: &Attempt, code: &str, head: u64, ms: u64, verdict: &Verdict) -> bool {
    let [write] = &attempt.writes[..] else { return EXPECTED.contains(&code) };
    let (of, key) = write.at();
    let replay = &verdict.replay;
    let mut moments = attempt.reads.head_before..=head;
    let absent =
        |clock: u64| replay.at(of, key, clock).is_none_or(|state| views::can_have_ended(state, ms));
    match (code, write) {
        ("ALREADY_EXISTS", Planned::Put { how: How::Create, .. }) => {
            moments.any(|clock| replay.at(of, key, clock).is_some())
        }
        ("NOT_FOUND", Planned::Put { how: How::Update, .. })
        | ("NOT_FOUND", Planned::Add { .. } | Planned::Remove { .. }) => moments.any(absent),
        ("UNIQUE_VIOLATION", Planned::Put { value, .. }) if of == "User" => {
            let is_other =
                |other: &str, name: &serde_json::Value| other != key && *name == value["name"];
            moments.any(|clock| {
                let mut users = replay.all_at("User", clock);
                users.any(|(other, state)| is_other(other, &state.value["name"]))
            })
        }
        ("SCHEMA_VIOLATION", _) => of == "Shape",
        ("TRANSACTION_CONFLICT", _) => !attempt.reads.each.is_empty(),
        _ => ["WRITER_STALLED", "WRITER_BUSY"].contains(&code),
    }
}

fn check_view(reads: &Reads, floor: u64, verdict: &mut Verdict) -> u64 {
    verdict.views += 1;
    verdict.faults.expect(reads.head_before >= floor, || format!("before {floor}: {reads:?}"));
    let clock = views::clock_of(reads, floor, &verdict.replay);
    verdict.faults.expect(clock.is_some(), || format!("at no clock from {floor}: {reads:?}"));
    clock.unwrap_or(floor).max(floor)
}

/// A document of the type `Shape` fits the description that was in force at its clock.
pub(crate) fn check_generations(sessions: &[Vec<Line>], log: &[Seen], verdict: &mut Verdict) {
    let (mut begun, mut done) = (BTreeMap::from([(1, 0)]), BTreeMap::new());
    for line in sessions.iter().flatten() {
        match line {
            Line::Describing { generation, head } => {
                let first = begun.entry(*generation).or_insert(*head);
                *first = (*first).min(*head);
            }
            Line::Described { generation, head } => {
                done.insert(*generation, *head);
            }
            _ => {}
        }
    }
    verdict.generations = begun.len();
    let mut last = 0;
    for seen in log.iter().filter(|seen| seen.of == "Shape") {
        let generation = seen.value.as_ref().and_then(|value| value["generation"].as_u64());
        let generation = generation.unwrap_or(0);
        let in_force = begun.get(&generation).is_some_and(|head| *head < seen.clock)
            && done.range(generation + 1..).all(|(_, head)| seen.clock <= *head)
            && generation >= last;
        verdict.faults.expect(in_force, || format!("an old description was in force: {seen:?}"));
        last = generation;
    }
}

/// The tails of a process and its successors gave every change once, in order.
pub(crate) fn check_tails(directory: &Path, log: &[Seen], verdict: &mut Verdict) {
    for child in 0.. {
        let lines = read_all(directory, &format!("tail-{child}-"));
        if lines.is_empty() {
            return;
        }
        let mut expected = log.iter();
        for line in lines.into_iter().flatten() {
            let Line::Saw(seen) = line else { continue };
            let next = expected.next();
            verdict.seen_by_tails += 1;
            let same = next == Some(&seen);
            verdict.faults.expect(same, || format!("{child} saw {seen:?} and not {next:?}"));
        }
    }
}

/// How a batch or transaction may be refused.
const EXPECTED: [&str; 8] = [
    "ALREADY_EXISTS",
    "NOT_FOUND",
    "UNIQUE_VIOLATION",
    "SCHEMA_VIOLATION",
    "TRANSACTION_CONFLICT",
    "WRITER_STALLED",
    "WRITER_BUSY",
    "READ_VIEW_EXPIRED",
];

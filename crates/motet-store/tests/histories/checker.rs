//! Compares histories with the log: every change belongs to one attempt, wholly; every attempt that
//! was acknowledged is there; every transaction read the state just before it.

use std::collections::HashMap;
use std::path::Path;

use super::recorder::{Line, Planned, Reads, Seen, read_all};
use super::replay::{Replay, State};
use super::sessions;
use super::verdict::Verdict;
use super::views;
use super::writes::added;

/// An attempt, what its session learned of it, and where it is in the log.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) reads: Reads,
    pub(crate) writes: Vec<Planned>,
    pub(crate) outcome: Outcome,
    /// The clocks of its changes, one for each write.
    pub(crate) clocks: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Unknown,
    /// With the versions that the session was told; none for transactions.
    Committed(Vec<u64>),
    Refused {
        code: String,
        head: u64,
        ms: u64,
    },
}

pub(crate) type Attempts = HashMap<String, Attempt>;

pub(crate) fn check(directory: &Path, log: &[Seen]) -> Verdict {
    let sessions = read_all(directory, "session-");
    let mut attempts = attempts_of(&sessions);
    let mut verdict = Verdict { changes: log.len(), ..Verdict::default() };
    let mut matching = Matching::new(&attempts);
    let clocks = log.iter().map(|seen| seen.clock);
    verdict.faults.expect(clocks.eq(1..=log.len() as u64), || "the log has a gap".into());
    for transaction in log.chunk_by(|one, next| one.transaction == next.transaction) {
        if let Some(by) = matching.name_of(transaction, &attempts) {
            check_transaction(transaction, by.as_deref(), &mut attempts, &mut verdict);
        } else {
            verdict.faults.add(|| format!("nobody wrote {transaction:?}"));
        }
    }
    sessions::check(&sessions, &attempts, &mut verdict);
    sessions::check_generations(&sessions, log, &mut verdict);
    sessions::check_tails(directory, log, &mut verdict);
    verdict
}

fn attempts_of(sessions: &[Vec<Line>]) -> Attempts {
    let mut attempts = Attempts::new();
    for line in sessions.iter().flatten() {
        let (by, outcome) = match line {
            Line::Attempt { by, reads, writes } => {
                let (reads, writes) = (reads.clone(), writes.clone());
                let outcome = Outcome::Unknown;
                attempts.insert(by.clone(), Attempt { reads, writes, outcome, clocks: Vec::new() });
                continue;
            }
            Line::Committed { by, versions } => (by, Outcome::Committed(versions.clone())),
            Line::Refused { by, code, head, ms, .. } => {
                (by, Outcome::Refused { code: code.clone(), head: *head, ms: *ms })
            }
            _ => continue,
        };
        if let Some(attempt) = attempts.get_mut(by) {
            attempt.outcome = outcome;
        }
    }
    attempts
}

/// Finds whose a transaction is. Values carry their attempt's name; removals alone do not.
struct Matching {
    /// Attempts that only remove and were acknowledged, by their first version.
    removals: HashMap<u64, String>,
    /// Those that may have been committed, by the first key.
    unknown: HashMap<(String, String), Vec<String>>,
}

impl Matching {
    fn new(attempts: &Attempts) -> Self {
        let (mut removals, mut unknown) = (HashMap::new(), HashMap::<_, Vec<_>>::new());
        let only_removes = |attempt: &Attempt| {
            attempt.writes.iter().all(|write| matches!(write, Planned::Remove { .. }))
        };
        for (by, attempt) in attempts.iter().filter(|(_, attempt)| only_removes(attempt)) {
            match &attempt.outcome {
                Outcome::Committed(versions) => {
                    removals.extend(versions.first().map(|first| (*first, by.clone())));
                }
                Outcome::Unknown => {
                    let (of, key) = attempt.writes[0].at();
                    unknown.entry((of.into(), key.into())).or_default().push(by.clone());
                }
                Outcome::Refused { .. } => {}
            }
        }
        Self { removals, unknown }
    }

    /// The attempt that a transaction is of: `Some(None)` for a sweep of what has expired.
    fn name_of(&mut self, transaction: &[Seen], attempts: &Attempts) -> Option<Option<String>> {
        let mut changes = transaction.iter().filter(|seen| seen.op != "Expire").peekable();
        let Some(first) = changes.peek().copied() else { return Some(None) };
        let named = changes.find_map(|seen| seen.value.as_ref()?["by"].as_str());
        if let Some(named) = named {
            return attempts.contains_key(named).then(|| Some(named.to_owned()));
        }
        if let Some(by) = self.removals.remove(&first.clock) {
            return Some(Some(by));
        }
        let begun = |by: &String| attempts[by].reads.head_before < first.clock;
        let unknown = self.unknown.get_mut(&(first.of.clone(), first.key.clone()))?;
        let place = unknown.iter().position(begun)?;
        Some(Some(unknown.swap_remove(place)))
    }
}

/// Replays a transaction, and compares it with its attempt.
fn check_transaction(
    transaction: &[Seen],
    by: Option<&str>,
    attempts: &mut Attempts,
    verdict: &mut Verdict,
) {
    let attempt = by.map(|by| attempts.get_mut(by).expect("it was found there"));
    let first = transaction[0].clock;
    let is_one = transaction[0].transaction == first
        && transaction.iter().all(|seen| seen.time == transaction[0].time);
    verdict.faults.expect(is_one, || format!("no transaction of its own: {transaction:?}"));
    if let Some(attempt) = &attempt {
        let again = !attempt.clocks.is_empty();
        verdict.faults.expect(!again, || format!("{by:?} was written twice, again at {first}"));
        let wrong = views::wrong_at(&attempt.reads, first - 1, &verdict.replay);
        let state = wrong.map(|read| format!("{by:?} at {first} had read {read:?}"));
        verdict.faults.expect(state.is_none(), || state.unwrap_or_default());
        verdict.transactions += u64::from(!attempt.reads.each.is_empty());
    }
    let (mut planned, mut clocks) = (0, Vec::new());
    for seen in transaction {
        let last = verdict.replay.last(&seen.of, &seen.key).cloned();
        let previous = last.as_ref().map(|last| last.version);
        verdict
            .faults
            .expect(seen.previous == previous, || format!("{previous:?} before {seen:?}"));
        let write = attempt.as_ref().filter(|_| seen.op != "Expire").map(|attempt| {
            planned += 1;
            attempt.writes.get(planned - 1)
        });
        let next = match write {
            None => expired(seen, last.as_ref()),
            Some(write) => write.and_then(|write| outcome_of(write, seen, last.as_ref(), by)),
        };
        match next {
            Some(state) => apply(seen, state, verdict),
            None => verdict.faults.add(|| format!("{by:?} cannot make {seen:?} of {last:?}")),
        }
        if write.is_some() {
            clocks.push(seen.clock);
        } else {
            verdict.expired += 1;
        }
    }
    if let Some(attempt) = attempt {
        let whole = planned == attempt.writes.len();
        verdict.faults.expect(whole, || format!("{by:?} is there in part: {transaction:?}"));
        attempt.clocks = clocks;
    }
}

/// What a sweep leaves, if the document's time had come.
fn expired(seen: &Seen, last: Option<&State>) -> Option<Option<State>> {
    let ms = motet_store::Hlc::from_number(seen.time).unix_ms();
    let is_due = seen.op == "Expire" && views::can_have_ended(last?, ms);
    (is_due && seen.value.is_none()).then_some(None)
}

/// What a write makes of a document, if the change is that.
fn outcome_of(
    write: &Planned,
    seen: &Seen,
    last: Option<&State>,
    by: Option<&str>,
) -> Option<Option<State>> {
    use super::recorder::How;
    if write.at() != (&seen.of, &seen.key) {
        return None;
    }
    let now_ms = motet_store::Hlc::from_number(seen.time).unix_ms();
    let last = last.filter(|last| !views::can_have_ended(last, now_ms));
    let (value, expires_ms) = match write {
        Planned::Remove { .. } => {
            return (seen.op == "Remove" && last.is_some()).then_some(None);
        }
        Planned::Put { how: How::Create, .. } if last.is_some() => return None,
        Planned::Put { how: How::Update, value, .. } => (value.clone(), last?.expires_ms),
        Planned::Put { value, ttl_ms, .. } => {
            (value.clone(), ttl_ms.map(|ttl_ms| now_ms.saturating_add(ttl_ms)))
        }
        Planned::Add { n, .. } => {
            (added(last?.value.clone(), by.unwrap_or_default(), *n), last?.expires_ms)
        }
    };
    let is_that = seen.op == "Put" && seen.value.as_ref() == Some(&value);
    is_that.then_some(Some(State { version: seen.clock, value, expires_ms }))
}

fn apply(seen: &Seen, state: Option<State>, verdict: &mut Verdict) {
    if let Some(state) = &state
        && seen.of == "User"
        && let Some(other) = holder_of(&verdict.replay, state, &seen.key)
    {
        verdict.faults.add(|| format!("{other} has the name already that is written in {seen:?}"));
    }
    verdict.replay.push(&seen.of, &seen.key, seen.clock, state);
}

/// Another user with the name of this one.
fn holder_of(replay: &Replay, user: &State, key: &str) -> Option<String> {
    let mut users = replay.all_at("User", u64::MAX);
    let other =
        users.find(|(other, state)| *other != key && state.value["name"] == user.value["name"]);
    other.map(|(other, _)| other.to_owned())
}

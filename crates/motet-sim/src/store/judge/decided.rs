//! Every decider's outcome, in the order of commits: whether it had to be so, and whether what was
//! written is what had to be.

use motet_protocol::ErrorCode;
use motet_store::{Error, Op};

use super::changes::Effect;
use super::raw::Raw;
use super::{Verdict, catalog, changes, guard, holds, retention};
use crate::store::calls::{Asked, MadeCall, index_name};
use crate::store::engine::Decided;
use crate::store::model::draft::Draft;
use crate::store::model::write::ModelWrite;
use crate::store::model::{Id, Model, Stage};

/// Judges one decider and brings the model to where the environment is then.
pub(crate) fn decided(model: &mut Model, call: &MadeCall, decided: &Decided) -> Verdict {
    holds("clock", decided.before.clock.number() == model.head, || {
        format!("the log ended at {} instead of {}", decided.before.clock, model.head)
    })?;
    let answer = if matches!(call.asked, Asked::Maintain) { None } else { call.take_answer() };
    match &decided.outcome {
        Err(error) => {
            match answer {
                Some(Ok(versions)) => {
                    let told =
                        format!("{} was rejected ({error}) and told {versions:?}", name(call));
                    return Err(("durable", told));
                }
                Some(Err(told))
                    if !matches!(told, Error::Closed) && told.code() != error.code() =>
                {
                    return Err(("durable", format!("{error} was told as {told}")));
                }
                _ => {}
            }
            rejected(model, call, decided, error)
        }
        Ok(written) => {
            let raw = Raw::parse(&written.writes, model.head).map_err(|why| ("clock", why))?;
            let (first, time) = (model.head, decided.stamp.number());
            retention::apply(model, call, decided.wall_ms, &raw)?;
            accepted(model, call, decided, &raw)?;
            retention::check(model)?;
            if !written.writes.is_empty() {
                holds("clock", time > model.time, || format!("{time} after {}", model.time))?;
                model.time = time;
            }
            match answer {
                Some(Ok(versions)) => told(model, call, first, &versions),
                Some(Err(error)) if !matches!(error, Error::Closed) => {
                    Err(("durable", format!("{} was committed and told {error}", name(call))))
                }
                _ => Ok(()),
            }
        }
    }
}

fn name(call: &MadeCall) -> String {
    format!("{} of process {}", call.operation.name(), call.process)
}

/// The versions that were told are those that the changes have.
fn told(model: &Model, call: &MadeCall, before: u64, versions: &[u64]) -> Verdict {
    let Asked::Writes(writes, _) = &call.asked else { return Ok(()) };
    holds("clock", writes.len() == versions.len(), || {
        format!("{} writes were told {versions:?}", writes.len())
    })?;
    for (write, version) in writes.iter().zip(versions) {
        let own =
            *version > before && model.entry(*version).is_some_and(|entry| entry.id == write.id);
        let unchanged = *version <= before && *version > 0;
        holds("clock", own || unchanged, || {
            format!("{} was told version {version} after {before}", write.id.text())
        })?;
    }
    Ok(())
}

/// What a batch must come to.
fn think<'m>(
    model: &'m Model,
    writes: &[ModelWrite],
    now_ms: u64,
) -> (Draft<'m>, Result<(), ErrorCode>) {
    let mut draft = Draft::new(model, now_ms);
    let mut outcome = writes.iter().try_for_each(|write| draft.write(write));
    if outcome.is_ok() {
        outcome = draft.end();
    }
    (draft, outcome)
}

fn rejected(model: &Model, call: &MadeCall, decided: &Decided, error: &Error) -> Verdict {
    let code = error.code();
    if code == ErrorCode::DiskFull {
        return Ok(());
    }
    let expected = match &call.asked {
        Asked::Writes(writes, reads) => {
            if code == ErrorCode::TransactionConflict {
                let touched = reads.as_ref().is_some_and(|reads| {
                    let moved = reads.head != model.head || reads.epoch != model.epoch;
                    // A type that came to be has no document of which to speak.
                    let described = reads.epoch != model.epoch;
                    let aged = reads.aged_by(decided.stamp.unix_ms());
                    aged || moved && (described || reads.touched_by(&model.docs))
                });
                return holds("serial", touched, || format!("a conflict over nothing: {error}"));
            }
            let (draft, outcome) = think(model, writes, decided.stamp.unix_ms());
            let building = draft.building && code == ErrorCode::ReferencesBuilding;
            let unsure = draft.unsure && code == ErrorCode::UniqueViolation;
            let now_ms = decided.stamp.unix_ms();
            let broken =
                reads.as_ref().is_some_and(|reads| reads.broken_by(&model.docs, now_ms).is_some());
            if building || unsure || broken {
                return Ok(());
            }
            outcome.err()
        }
        Asked::CreateIndex(kind, slot, shape) => {
            let name = index_name(*slot);
            let found = model.kind(*kind).indexes.iter().find(|index| index.name == name);
            found
                .is_some_and(|index| index.shape != *shape || index.stage == Stage::Failed)
                .then_some(ErrorCode::IndexExists)
        }
        Asked::DropIndex(kind, slot) => {
            let name = index_name(*slot);
            let found = model.kind(*kind).indexes.iter().any(|index| index.name == name);
            (!found).then_some(ErrorCode::IndexNotFound)
        }
        Asked::Pin(_, after) => after
            .is_some_and(|after| !model.has_all_after(after))
            .then_some(ErrorCode::LogTruncated),
        Asked::Define(..) | Asked::SetRetention(_) | Asked::Maintain => None,
    };
    holds(guard(code), expected == Some(code), || {
        format!("{} was rejected ({error}), expected was {expected:?}", name(call))
    })
}

fn accepted(model: &mut Model, call: &MadeCall, decided: &Decided, raw: &Raw) -> Verdict {
    catalog::apply(model, call, raw)?;
    let now_ms = decided.stamp.unix_ms();
    match &call.asked {
        Asked::Writes(writes, reads) => {
            if let Some(reads) = reads
                && let Some(why) = reads.broken_by(&model.docs, now_ms)
            {
                return Err(("serial", format!("a transaction committed, but {why}")));
            }
            let (draft, outcome) = think(model, writes, now_ms);
            if let Err(code) = outcome {
                let detail = format!("{} was accepted, expected was {code:?}", name(call));
                return Err((guard(code), detail));
            }
            if draft.building {
                return Err(("fk", format!("{} did not wait for a reference's index", name(call))));
            }
            let effect = Effect::of(draft);
            changes::apply(model, call, decided, raw, effect)
        }
        Asked::Maintain => {
            let mut draft = Draft::new(model, now_ms);
            let expired = raw.entries.iter().filter(|entry| entry.op == Op::Expire);
            for entry in expired {
                if let Some(id) = changes::find(model, entry.kind, &entry.key) {
                    draft.expire(id).map_err(|code| swept_wrongly(id, code))?;
                }
            }
            draft.end().map_err(|code| ("fk", format!("what was swept breaks {code:?}")))?;
            let effect = Effect::of(draft);
            changes::apply(model, call, decided, raw, effect)
        }
        _ => {
            let idle = raw.entries.is_empty() && raw.trimmed.is_empty();
            holds("clock", idle && raw.documents.is_empty(), || {
                format!("{} changed documents", name(call))
            })?;
            match &call.asked {
                Asked::SetRetention(kept) => model.kept = *kept,
                Asked::Pin(slot, after) => return pinned(model, *slot, *after),
                _ => {}
            }
            Ok(())
        }
    }
}

/// What is promised to whoever set a pin is there.
fn pinned(model: &mut Model, slot: u8, after: Option<u64>) -> Verdict {
    let Some(after) = after else {
        model.pins.remove(&slot);
        return Ok(());
    };
    model.pins.insert(slot, after);
    holds("clock", model.has_all_after(after), || {
        format!("{after} was pinned in a log from {}", model.kept_from())
    })
}

fn swept_wrongly(id: Id, code: ErrorCode) -> (&'static str, String) {
    ("expiry", format!("{} was swept, which breaks {code:?}", id.text()))
}

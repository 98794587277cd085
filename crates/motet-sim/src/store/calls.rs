//! Calls that write: what was asked, and what was answered.

use std::sync::{Arc, Mutex, PoisonError};

use motet_store::{Clock, Env, Error, Transaction};

use super::action::Operation;
use super::model::Kept;
use super::model::rules::{Shape, Spec, TYPES};
use super::model::write::ModelWrite;
use super::transaction::Reads;

/// What was asked for.
#[derive(Debug)]
pub(crate) enum Asked {
    Writes(Vec<ModelWrite>, Option<Box<Reads>>),
    Define(u8, Spec),
    CreateIndex(u8, u8, Shape),
    DropIndex(u8, u8),
    SetRetention(Kept),
    /// The number of a name, and the clock after which the log is pinned.
    Pin(u8, Option<u64>),
    Maintain,
}

/// What was answered: versions, and for maintenance how soon to do it again, in milliseconds.
type Answer = Result<Vec<u64>, Error>;

#[derive(Debug)]
pub(crate) struct MadeCall {
    pub(crate) process: usize,
    /// The number of the process's handle.
    pub(crate) instance: u64,
    pub(crate) operation: Operation,
    pub(crate) asked: Asked,
    pub(crate) answer: Arc<Mutex<Option<Answer>>>,
}

impl MadeCall {
    pub(crate) fn take_answer(&self) -> Option<Answer> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The name of the index with this number.
pub(crate) fn index_name(slot: u8) -> String {
    format!("i{slot}")
}

/// The name of the log's pin with this number.
pub(crate) fn pin_name(slot: u8) -> String {
    format!("p{slot}")
}

/// What makes the call, whenever its turn comes.
pub(crate) fn runner(
    env: Env,
    asked: &Asked,
    transaction: Option<Transaction>,
    answer: Arc<Mutex<Option<Answer>>>,
) -> Box<dyn FnOnce() + Send> {
    let run: Box<dyn FnOnce() -> Answer + Send> = match (asked, transaction) {
        (_, Some(transaction)) => Box::new(move || transaction.commit().map(numbers)),
        (Asked::Writes(writes, _), None) => {
            let writes = writes.iter().map(ModelWrite::to_store).collect();
            Box::new(move || env.write_all(writes).map(numbers))
        }
        (Asked::Define(kind, spec), None) => {
            let (name, spec) = (TYPES[usize::from(*kind)], spec.to_store());
            Box::new(move || env.define(name, &spec).map(|()| Vec::new()))
        }
        (Asked::CreateIndex(kind, slot, shape), None) => {
            let (of, name, spec) = (TYPES[usize::from(*kind)], index_name(*slot), shape.to_store());
            Box::new(move || env.create_index(of, &name, &spec).map(|()| Vec::new()))
        }
        (Asked::DropIndex(kind, slot), None) => {
            let (of, name) = (TYPES[usize::from(*kind)], index_name(*slot));
            Box::new(move || env.drop_index(of, &name).map(|()| Vec::new()))
        }
        (Asked::SetRetention(kept), None) => {
            let retention = kept.to_store();
            Box::new(move || env.set_retention(retention).map(|()| Vec::new()))
        }
        (Asked::Pin(slot, after), None) => {
            let (name, after) = (pin_name(*slot), after.map(Clock::new));
            Box::new(move || {
                let outcome = match after {
                    Some(after) => env.log().pin(&name, after),
                    None => env.log().unpin(&name),
                };
                outcome.map(|()| Vec::new())
            })
        }
        (Asked::Maintain, None) => Box::new(move || {
            let next = env.maintain()?;
            Ok(vec![u64::try_from(next.as_millis()).unwrap_or(u64::MAX)])
        }),
    };
    Box::new(move || {
        let outcome = run();
        *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    })
}

fn numbers(clocks: Vec<Clock>) -> Vec<u64> {
    clocks.into_iter().map(Clock::number).collect()
}

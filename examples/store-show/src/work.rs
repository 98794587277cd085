//! One worker: it books seats, moves passengers between flights and looks for late flights, as fast
//! as the store lets it.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use motet_protocol::Rng;
use motet_store::{Clock, Env, Error, Store, Transaction};
use serde_json::{Value, json};

use crate::journal::{Begun, Journal};

pub(crate) const FLIGHT: &str = "Flight";
const BOOKING: &str = "Booking";
/// So many of the flights are booked: few enough that workers meet.
const BOOKED_FLIGHTS: u64 = 400;
/// A transaction that meets others so often in a row is given up.
const CONFLICTS_MAX: u32 = 1_000;
const AIRPORTS: [&str; 8] = ["ATL", "DEN", "DFW", "LAS", "LAX", "MDW", "ORD", "PHX"];

/// Who works, and where.
#[derive(Args)]
pub(crate) struct Options {
    /// The store's directory.
    #[arg(long)]
    data: PathBuf,
    /// A name that no other worker has.
    #[arg(long)]
    name: String,
    /// Where to write down what was acknowledged.
    #[arg(long)]
    journal: PathBuf,
}

struct Worker {
    env: Env,
    journal: Journal,
    name: String,
    dice: Rng,
    bookings: u64,
}

/// Works until standard input ends.
pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    std::thread::spawn(move || {
        // A byte, the end and an error all mean the same.
        std::io::stdin().read_exact(&mut [0]).ok();
        told.store(true, Ordering::Relaxed);
    });
    let mut worker = Worker {
        env: Store::open(&options.data)?.env("default")?,
        journal: Journal::open(&options.journal)?,
        name: options.name.clone(),
        dice: dice(&options.name),
        bookings: 0,
    };
    while !stop.load(Ordering::Relaxed) {
        match worker.dice.below(4) {
            0 => worker.look()?,
            1 => worker.book()?,
            _ => worker.rebook()?,
        }
    }
    Ok(())
}

impl Worker {
    /// Makes a booking and takes its seat.
    fn book(&mut self) -> Result<()> {
        self.bookings += 1;
        let (booking, flight) = (format!("{}-{}", self.name, self.bookings), self.flight());
        self.commit("book", &[(BOOKING, &booking), (FLIGHT, &flight)], |tx| {
            tx.put(BOOKING, &booking, json!({"flight": flight}));
            change_passengers(tx, &flight, 1)
        })
    }

    /// Moves a passenger from one flight to another.
    fn rebook(&mut self) -> Result<()> {
        let (from, to) = (self.flight(), self.flight());
        if from == to {
            return Ok(());
        }
        self.commit("rebook", &[(FLIGHT, &from), (FLIGHT, &to)], |tx| {
            change_passengers(tx, &from, -1)?;
            change_passengers(tx, &to, 1)
        })
    }

    /// Looks for the latest flights of an airport.
    fn look(&mut self) -> Result<()> {
        let airport = AIRPORTS[self.dice.below(AIRPORTS.len() as u64) as usize];
        let begun = Begun::now();
        let query = self.env.query(FLIGHT).filter(json!({"origin": airport}));
        match query.sort_descending("delay").limit(20).rows() {
            Ok(rows) => self.journal.queried(begun, rows.len()),
            Err(error) => self.journal.refused("query", begun, &error),
        }
    }

    /// Commits, again and again while others were faster, and writes down how it ended. What may
    /// pass is tried again by the next operation.
    fn commit(
        &mut self,
        op: &str,
        documents: &[(&str, &str)],
        change: impl Fn(&mut Transaction) -> Result<(), Error>,
    ) -> Result<()> {
        let begun = Begun::now();
        for conflicts in 0..CONFLICTS_MAX {
            match attempt(&self.env, &change) {
                Ok(clocks) => {
                    return self.journal.committed(op, begun, documents, &clocks, conflicts);
                }
                Err(Error::Conflict { .. }) => {}
                Err(error) => {
                    self.journal.refused(op, begun, &error)?;
                    return if error.retryable() {
                        Ok(())
                    } else {
                        Err(error).context(op.to_owned())
                    };
                }
            }
        }
        bail!("{op} met others {CONFLICTS_MAX} times")
    }

    fn flight(&mut self) -> String {
        format!("f-{:05}", self.dice.below(BOOKED_FLIGHTS))
    }
}

fn attempt(
    env: &Env,
    change: impl Fn(&mut Transaction) -> Result<(), Error>,
) -> Result<Vec<Clock>, Error> {
    let mut tx = env.begin()?;
    change(&mut tx)?;
    tx.commit()
}

/// Reads, adds and writes: what another worker did in between must not be lost.
fn change_passengers(tx: &mut Transaction, flight: &str, by: i64) -> Result<(), Error> {
    let missing = || Error::NotFound { type_name: FLIGHT.into(), key: flight.into() };
    let mut value = tx.get(FLIGHT, flight)?.ok_or_else(missing)?;
    let passengers = value["passengers"].as_i64().unwrap_or_default();
    value["passengers"] = Value::from(passengers + by);
    tx.put(FLIGHT, flight, value);
    Ok(())
}

/// Each worker plays another game, the same one in every show.
fn dice(name: &str) -> Rng {
    let mut seed = [0; 32];
    seed.iter_mut().zip(name.bytes()).for_each(|(place, byte)| *place = byte);
    Rng::from_seed(seed)
}

//! Trimming the log to what is kept of it, or compacting it.

use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

use motet_protocol::fault::planted;

use super::compacted::{Compacted, Extent};
use super::{EntryRecord, Retention, compact, decode, pins, rebuild};
use crate::clock::millis;
use crate::engine::{Decision, Direction, Range, Read, Table, Transaction, Writes, decides};
use crate::shared::Shared;
use crate::{Clock, Error, Hlc, keys, lookup};

/// Removes what is to go of the log's oldest part, a batch at a time. What goes is decided inside the
/// transaction: by the retention that holds then.
pub(crate) struct Trim {
    shared: Arc<Shared>,
}

/// What is to be done next.
enum Due {
    /// All entries of this stretch go.
    Trim(Stretch),
    /// The entries of this stretch go, but for the latest of each document.
    Compact(Stretch),
    /// The compacted part lacks changes of documents.
    Rebuild(Compacted),
    /// Nobody wants the compacted part any more.
    Drop(Compacted),
}

/// The first and the last clock of a stretch of the log.
pub(super) type Stretch = (Clock, Clock);

impl Trim {
    /// What does the next thing that is to be done, if any is.
    pub(crate) async fn plan(shared: &Arc<Shared>) -> Result<Option<Self>, Error> {
        let view = shared.engine.view().await?;
        let due = due(view.as_ref(), shared).await?;
        if let Some(Due::Compact(stretch)) = &due {
            // Brings in what the transaction will read, so that no writer waits for the medium.
            compact::latest(view.as_ref(), *stretch).await?;
        }
        Ok(due.map(|_| Self { shared: Arc::clone(shared) }))
    }

    async fn run(&self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let mut writes = Writes::default();
        let entries_max = batch_max(&self.shared);
        match due(transaction, &self.shared).await? {
            None => {}
            Some(Due::Trim((first, last))) => {
                for clock in first.number()..=last.number() {
                    writes.remove(Table::Log, &keys::log(Clock::new(clock)));
                }
            }
            Some(Due::Compact(stretch)) => {
                compact::stretch(transaction, stretch, &mut writes).await?;
            }
            Some(Due::Rebuild(compacted)) => {
                rebuild::add(transaction, &self.shared, &compacted, &mut writes).await?;
            }
            Some(Due::Drop(compacted)) => {
                rebuild::drop(transaction, &compacted, entries_max, &mut writes).await?;
            }
        }
        Ok(Decision { writes, changes: 0 })
    }
}

decides!(Trim);

async fn due(view: &dyn Read, shared: &Shared) -> Result<Option<Due>, Error> {
    let retention = Retention::load(view).await?;
    Ok(match Compacted::load(view).await? {
        Some(compacted) if !retention.latest => Some(Due::Drop(compacted)),
        Some(compacted) if !compacted.is_whole() => Some(Due::Rebuild(compacted)),
        Some(_) => stretch(view, shared, retention).await?.map(Due::Compact),
        None => stretch(view, shared, retention).await?.map(Due::Trim),
    })
}

/// The first and the last of the entries that are to go next, if any are. Only of the part that has
/// no gaps: size and time grow with its clocks.
async fn stretch(
    view: &dyn Read,
    shared: &Shared,
    retention: Retention,
) -> Result<Option<Stretch>, Error> {
    let extent = Extent::load(view).await?;
    let Some(first) = at(view, extent.from).await? else { return Ok(None) };
    let Some(newest) = end(view, Direction::Backward).await? else { return Ok(None) };
    let pinned = pins::lowest(view, extent).await?;
    let goes = Goes::new(retention, pinned, &newest, shared.unix_ms());
    if !goes.is_due(&first) || first.clock == newest.clock {
        return Ok(None);
    }
    // Size, time and being pinned only grow with the clock: bisect for the last one that goes.
    let (mut last, mut kept) = (first.clock, newest.clock);
    if planted("trim-newest") && goes.is_due(&newest) {
        (last, kept) = (newest.clock, newest.clock);
    }
    while kept.number() - last.number() > 1 {
        let middle = Clock::new(last.number().midpoint(kept.number()));
        let goes = at(view, middle).await?.is_some_and(|entry| goes.is_due(&entry));
        if goes { last = middle } else { kept = middle }
    }
    if planted("trim-too-much") {
        last = kept;
    }
    let batch = first.clock.plus(batch_max(shared) as u64 - 1);
    Ok(Some((first.clock, last.min(batch))))
}

/// How many entries one transaction looks at, and removes at most.
fn batch_max(shared: &Shared) -> usize {
    shared.limits.background_batch(TRIM_ENTRIES_MAX)
}

/// What the rules look at.
#[derive(Clone, Copy)]
struct Mark {
    clock: Clock,
    time: Hlc,
    total_bytes: u64,
}

impl Mark {
    const fn new(clock: Clock, entry: &EntryRecord<'_>) -> Self {
        let time = Hlc::from_number(entry.time);
        Self { clock, time, total_bytes: entry.total_bytes }
    }
}

/// Which entries go.
struct Goes {
    before_ms: Option<u64>,
    up_to_bytes: Option<u64>,
    /// What lies after it is pinned, but for what pins cannot keep.
    pinned: Option<Clock>,
    pins_up_to_bytes: u64,
}

impl Goes {
    fn new(retention: Retention, pinned: Option<Clock>, newest: &Mark, now_ms: u64) -> Self {
        let before_ms = retention.age.map(|age| now_ms.saturating_sub(millis(age)));
        let up_to_bytes = retention.bytes.map(|bytes| newest.total_bytes.saturating_sub(bytes));
        let pins_up_to_bytes = newest.total_bytes.saturating_sub(retention.pin_bytes);
        Self { before_ms, up_to_bytes, pinned, pins_up_to_bytes }
    }

    fn is_due(&self, mark: &Mark) -> bool {
        self.is_old(mark) && !self.is_pinned(mark)
    }

    fn is_pinned(&self, mark: &Mark) -> bool {
        let kept = mark.total_bytes > self.pins_up_to_bytes || planted("pin-without-end");
        kept && self.pinned.is_some_and(|pinned| pinned < mark.clock)
            && !planted("trim-what-is-pinned")
    }

    fn is_old(&self, mark: &Mark) -> bool {
        self.before_ms.is_some_and(|before_ms| mark.time.unix_ms() < before_ms)
            || self.up_to_bytes.is_some_and(|up_to_bytes| mark.total_bytes <= up_to_bytes)
    }
}

/// The first clock that the log still has, or the one that the first change will get.
pub(super) async fn first(view: &dyn Read) -> Result<Clock, Error> {
    Ok(end(view, Direction::Forward).await?.map_or(Clock::ZERO.plus(1), |first| first.clock))
}

async fn at(view: &dyn Read, clock: Clock) -> Result<Option<Mark>, Error> {
    let bytes = lookup::one(view, Table::Log, &keys::log(clock)).await?;
    bytes.map(|bytes| Ok(Mark::new(clock, &decode(clock, &bytes)?))).transpose()
}

/// The entry at one end of the log.
async fn end(view: &dyn Read, direction: Direction) -> Result<Option<Mark>, Error> {
    let mut found = Ok(None);
    let mut show = |key: &[u8], bytes: &[u8]| {
        let clock = key.try_into().map_or(Clock::ZERO, Clock::from_bytes);
        found = decode(clock, bytes).map(|entry| Some(Mark::new(clock, &entry)));
        ControlFlow::Break(())
    };
    let (from, to) = (Bound::Unbounded, Bound::Unbounded);
    view.range(Range { table: Table::Log, from, to, direction }, &mut show).await?;
    found
}

/// How many entries one transaction takes.
const TRIM_ENTRIES_MAX: usize = 2_000;

//! How much of the log is kept.

use core::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use motet_protocol::fault::planted;
use serde::{Deserialize, Serialize};

use super::{EntryRecord, decode, pins};
use crate::clock::millis;
use crate::engine::{
    Answer, Decide, Decision, Direction, Range, Read, Table, Transaction, Writes, decides,
};
use crate::shared::Shared;
use crate::{Clock, Error, Hlc, keys, lookup};

/// How much of an environment's log is kept. It is a setting of the environment, the same for all
/// processes. The newest change is always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Retention {
    /// Entries older than this are trimmed. Unset at first: age alone trims nothing.
    #[serde(default, with = "duration_ms", skip_serializing_if = "Option::is_none")]
    pub age: Option<Duration>,
    /// The oldest entries are trimmed while all together take more bytes than this, counted as key
    /// and value and 48 bytes each. 1 GiB at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// [Pins](crate::Log::pin) keep what would go otherwise, within so many bytes of the log's end.
    /// 10 GiB at first.
    #[serde(default = "pin_bytes_default")]
    pub pin_bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { bytes: Some(BYTES_DEFAULT), ..Self::everything() }
    }
}

impl Retention {
    /// Keeps everything. The log grows with every change.
    #[must_use]
    pub const fn everything() -> Self {
        Self { age: None, bytes: None, pin_bytes: PIN_BYTES_DEFAULT }
    }

    /// Also trims what is older than this.
    #[must_use]
    pub const fn age(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }

    /// Also trims the oldest beyond this size.
    #[must_use]
    pub const fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Pins keep at most so many bytes.
    #[must_use]
    pub const fn pin_bytes(mut self, bytes: u64) -> Self {
        self.pin_bytes = bytes;
        self
    }

    pub(crate) async fn load(from: &dyn Read) -> Result<Self, Error> {
        match lookup::one(from, Table::Catalog, RETENTION_KEY).await? {
            None => Ok(Self::default()),
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| Error::Damaged {
                what: "the catalogue's retention of the log".into(),
                why: error.to_string(),
            }),
        }
    }
}

/// Sets the retention.
pub(crate) struct SetRetention(pub(crate) Retention);

impl Decide for SetRetention {
    fn decide<'a>(&'a mut self, _: &'a dyn Transaction) -> Answer<'a, Result<Decision, Error>> {
        let json = serde_json::to_vec(&self.0).expect("numbers can be written");
        let mut writes = Writes::default();
        writes.put(Table::Catalog, RETENTION_KEY, &json);
        Answer::now(Ok(Decision { writes, changes: 0 }))
    }
}

/// Removes a stretch of the log's oldest entries. What goes is decided inside the transaction: by
/// the retention that holds then.
pub(crate) struct Trim {
    shared: Arc<Shared>,
}

impl Trim {
    /// What removes the next stretch that is to go, if any is.
    pub(crate) async fn plan(shared: &Arc<Shared>) -> Result<Option<Self>, Error> {
        let view = shared.engine.view().await?;
        let due = stretch(view.as_ref(), shared).await?;
        Ok(due.map(|_| Self { shared: Arc::clone(shared) }))
    }

    async fn run(&self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let mut writes = Writes::default();
        if let Some((first, last)) = stretch(transaction, &self.shared).await? {
            for clock in first.number()..=last.number() {
                writes.remove(Table::Log, &keys::log(Clock::new(clock)));
            }
        }
        Ok(Decision { writes, changes: 0 })
    }
}

decides!(Trim);

/// The first and the last of the entries that are to go next, if any are.
async fn stretch(view: &dyn Read, shared: &Shared) -> Result<Option<(Clock, Clock)>, Error> {
    let retention = Retention::load(view).await?;
    let Some(first) = end(view, Direction::Forward).await? else { return Ok(None) };
    let Some(newest) = end(view, Direction::Backward).await? else { return Ok(None) };
    let pinned = pins::lowest(view, first.clock).await?;
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
    let entries = shared.limits.background_batch(TRIM_ENTRIES_MAX);
    let batch = first.clock.plus(entries as u64 - 1);
    Ok(Some((first.clock, last.min(batch))))
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
pub(super) async fn first_kept(view: &dyn Read) -> Result<Clock, Error> {
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

mod duration_ms {
    use super::{Deserialize, Duration, millis};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: serde::Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serde::Serialize::serialize(&duration.map(millis), serializer)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

const RETENTION_KEY: &[u8] = b"log/retention";
const BYTES_DEFAULT: u64 = 1 << 30;
const PIN_BYTES_DEFAULT: u64 = 10 << 30;

/// As environments have it that were made before there were pins.
const fn pin_bytes_default() -> u64 {
    PIN_BYTES_DEFAULT
}

/// How many entries one transaction removes.
const TRIM_ENTRIES_MAX: usize = 2_000;

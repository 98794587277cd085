//! Reading the log, and following it.

use core::ops::ControlFlow;
use std::sync::Arc;

use motet_protocol::fault::planted;
use serde_json::Value;

use super::pins::{self, SetPin};
use super::{Compacted, Op, Position, Tail, decode};
use crate::catalog::Catalog;
use crate::document::check_name;
use crate::engine::{Table, View};
use crate::keys::TypeId;
use crate::shared::Shared;
use crate::{Clock, Error, Head, Hlc, keys, lookup};

/// One change of one document.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// Its place in the log, and the version that it gave the document.
    pub clock: Clock,
    /// The document's type.
    pub type_name: String,
    /// The document's key.
    pub key: String,
    /// What was done.
    pub op: Op,
    /// The document's version before; `None` if there was no document, or if nobody
    /// [knows](Log::read) any more.
    pub previous: Option<Clock>,
    /// When, by the writing process's clock; later than that of every earlier transaction.
    pub time: Hlc,
    /// The process instance that wrote it.
    pub origin: u64,
    /// The clock of the first change of its transaction: changes of one transaction share it.
    pub transaction: Clock,
    /// The value that it gave the document, where the log keeps values.
    pub value: Option<Value>,
}

/// A change without its value, borrowed from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeHeader<'a> {
    /// Its place in the log.
    pub clock: Clock,
    /// The document's type.
    pub type_name: &'a str,
    /// The document's key.
    pub key: &'a str,
    /// What was done.
    pub op: Op,
    /// The document's version before; `None` if there was no document, or if nobody
    /// [knows](Log::read) any more.
    pub previous: Option<Clock>,
    /// When, by the writing process's clock.
    pub time: Hlc,
    /// The process instance that wrote it.
    pub origin: u64,
    /// The clock of the first change of its transaction.
    pub transaction: Clock,
    /// The value as JSON text, not parsed.
    pub json: Option<&'a [u8]>,
}

impl ChangeHeader<'_> {
    fn to_change(self) -> Result<Change, Error> {
        let value = self.json.map(serde_json::from_slice).transpose();
        Ok(Change {
            clock: self.clock,
            type_name: self.type_name.into(),
            key: self.key.into(),
            op: self.op,
            previous: self.previous,
            time: self.time,
            origin: self.origin,
            transaction: self.transaction,
            value: value.map_err(|error| super::damaged(self.clock, error))?,
        })
    }
}

/// The change log of an environment.
///
/// ```
/// use motet_store::{Clock, Op, Store};
/// use serde_json::json;
///
/// let env = Store::in_memory().env("default")?;
/// env.put("Order", "o-1", json!({"total": 10}))?;
/// env.remove("Order", "o-1")?;
///
/// let changes = env.log().read(Clock::ZERO, 100)?;
/// assert_eq!(changes[0].op, Op::Put);
/// assert_eq!(changes[1].op, Op::Remove);
/// assert_eq!(changes[1].previous, Some(changes[0].clock));
/// # Ok::<(), motet_store::Error>(())
/// ```
#[derive(Clone)]
pub struct Log {
    pub(super) shared: Arc<Shared>,
}

impl Log {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Where the log ends.
    ///
    /// # Errors
    /// What the medium does.
    pub fn head(&self) -> Result<Head, Error> {
        pollster::block_on(async { lookup::head(self.view().await?.as_ref()).await })
    }

    /// Up to which clock the log is [compacted](crate::Retention::latest): of each document whose last
    /// change is not after it, that change is there and no other. [`Clock::ZERO`] in a log that is not,
    /// or of which that part is still being made again.
    ///
    /// # Errors
    /// What the medium does.
    pub fn compacted_to(&self) -> Result<Clock, Error> {
        pollster::block_on(async {
            let compacted = Compacted::load(self.view().await?.as_ref()).await?;
            Ok(compacted.filter(Compacted::is_whole).map_or(Clock::ZERO, |part| part.to))
        })
    }

    /// Up to `limit` changes after this clock.
    ///
    /// A log that keeps the [latest change](crate::Retention::latest) of each document gives after
    /// [`Clock::ZERO`] first those that are left of its compacted part, in the order of their clocks:
    /// all of them puts, which name as `previous` what may be gone. One that was made again from its
    /// document has no `previous`, the time [`Hlc::ZERO`], the origin 0, and is a transaction of its
    /// own. Pages within that part name [up to where](Self::compacted_to) it went when the first was
    /// read:
    ///
    /// ```
    /// use motet_store::{Clock, Position, Store};
    /// use serde_json::json;
    ///
    /// let env = Store::in_memory().env("default")?;
    /// env.put("Order", "o-1", json!(1))?;
    ///
    /// let compacted_to = env.log().compacted_to()?;
    /// let mut after = Clock::ZERO;
    /// loop {
    ///     let page = env.log().read(Position::new(after, compacted_to), 100)?;
    ///     let Some(last) = page.last() else { break };
    ///     after = last.clock;
    /// }
    /// # Ok::<(), motet_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LogTruncated`] if changes after it are no longer kept, or the log was compacted further
    /// while its compacted part was read; [`Error::LogPositionAhead`] if the log ends before it.
    pub fn read(&self, after: impl Into<Position>, limit: usize) -> Result<Vec<Change>, Error> {
        Ok(self.page(after.into(), limit)?.0)
    }

    /// As [`read`](Self::read), and up to where the log was compacted then.
    pub(super) fn page(
        &self,
        after: Position,
        limit: usize,
    ) -> Result<(Vec<Change>, Clock), Error> {
        let mut changes = Vec::new();
        let mut failed = None;
        let compacted_to = self.show(after, &mut |header| {
            if changes.len() == limit {
                return ControlFlow::Break(());
            }
            match header.to_change() {
                Ok(change) => changes.push(change),
                Err(error) => failed = Some(error),
            }
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        failed.map_or(Ok((changes, compacted_to)), Err)
    }

    /// Shows every change after this clock, in order and without parsing values, until there is no
    /// more or `each` breaks off.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn visit(
        &self,
        after: impl Into<Position>,
        mut each: impl FnMut(ChangeHeader<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.show(after.into(), &mut each).map(|_| ())
    }

    fn show(
        &self,
        after: Position,
        each: &mut dyn FnMut(ChangeHeader<'_>) -> ControlFlow<()>,
    ) -> Result<Clock, Error> {
        pollster::block_on(async {
            let view = self.view().await?;
            let catalog = self.shared.catalog.of_view(view.as_ref()).await?;
            visit(view.as_ref(), &catalog, after, each).await
        })
    }

    /// Follows the log from the change after this clock. After [`Clock::ZERO`] it begins, as
    /// [`read`](Self::read) does, with the compacted part of a log that has one.
    #[must_use]
    pub fn tail(&self, after: Clock) -> Tail {
        Tail::new(self.clone(), after)
    }

    /// Keeps what comes after this clock for a reader that comes back later, under its name: the log
    /// is trimmed only up to there, as long as pins keep no more bytes than the
    /// [retention](crate::Retention::pin_bytes) allows. A pin that was set before moves.
    ///
    /// Reading from a pin's position gives every change, or [`Error::LogTruncated`] if pins had to
    /// let go of it. What a pin keeps is not [compacted](crate::Retention::latest) either: who reads a
    /// compacted part leaves a pin at [`Clock::ZERO`] until the whole of it is read. When the log keeps
    /// the latest changes no longer, that part goes, and such a pin holds nothing any more.
    ///
    /// ```
    /// use motet_store::{Clock, Retention, Store};
    /// use serde_json::json;
    ///
    /// let env = Store::in_memory().env("default")?;
    /// env.log().pin("mirror", Clock::ZERO)?;
    /// env.set_retention(Retention::everything().bytes(0))?;
    /// env.put("Order", "o-1", json!(1))?;
    /// env.put("Order", "o-2", json!(2))?;
    /// env.maintain()?;
    /// assert_eq!(env.log().read(Clock::ZERO, 10)?.len(), 2);
    /// # Ok::<(), motet_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LogTruncated`] if changes after the clock are gone already, and
    /// [`Error::LogPositionAhead`] if the log ends before it: nothing is pinned then.
    /// [`Error::NameInvalid`], and what the medium does.
    pub fn pin(&self, name: &str, after: Clock) -> Result<(), Error> {
        check_name(name)?;
        self.set_pin(SetPin { name: name.into(), after: Some(after) })
    }

    /// Takes a pin away, if there is one of this name.
    ///
    /// # Errors
    /// [`Error::NameInvalid`], and what the medium does.
    pub fn unpin(&self, name: &str) -> Result<(), Error> {
        check_name(name)?;
        self.set_pin(SetPin { name: name.into(), after: None })
    }

    /// All pins by name, with their positions.
    ///
    /// # Errors
    /// What the medium does.
    pub fn pins(&self) -> Result<Vec<(String, Clock)>, Error> {
        pollster::block_on(async { pins::all(self.view().await?.as_ref()).await })
    }

    fn set_pin(&self, pin: SetPin) -> Result<(), Error> {
        let mut results = pollster::block_on(self.shared.engine.write(vec![Box::new(pin)]));
        results.pop().expect("an engine answers once per decider")?;
        // What it kept may go now.
        self.shared.notify();
        Ok(())
    }

    async fn view(&self) -> Result<Box<dyn View>, Error> {
        self.shared.engine.view().await
    }
}

/// Shows what lies after a position, and says up to where the log is compacted.
async fn visit(
    view: &dyn View,
    catalog: &Catalog,
    position: Position,
    each: &mut dyn FnMut(ChangeHeader<'_>) -> ControlFlow<()>,
) -> Result<Clock, Error> {
    let compacted = if catalog.is_compacted { Compacted::load(view).await? } else { None };
    let gaps_to = position.enter(compacted.as_ref())?;
    let mut failed = None;
    let first = position.after.max(gaps_to).plus(1);
    let mut expected = first;
    let mut show = |key: &[u8], bytes: &[u8]| match header(catalog, gaps_to, expected, key, bytes) {
        Ok(header) => {
            expected = expected.max(header.clock.plus(1));
            each(header)
        }
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    };
    let start = keys::log(position.after.plus(1));
    lookup::range(view, Table::Log, &start, None, &mut show).await?;
    if let Some(error) = failed {
        return Err(error);
    }
    if expected == first {
        expect_reached(view, position.after).await?;
    }
    Ok(compacted.map_or(Clock::ZERO, |part| part.to))
}

/// Refuses a position beyond the log's end. Its reader has seen changes that this log does not have,
/// so what this log has at their places is something else.
async fn expect_reached(view: &dyn View, position: Clock) -> Result<(), Error> {
    let head = lookup::head(view).await?.clock;
    if position > head {
        return Err(Error::LogPositionAhead { asked: position, head });
    }
    Ok(())
}

/// The entry with this key, which has to be the expected one: after this clock the log has no gaps.
fn header<'a>(
    catalog: &'a Catalog,
    gaps_to: Clock,
    expected: Clock,
    key: &[u8],
    bytes: &'a [u8],
) -> Result<ChangeHeader<'a>, Error> {
    let clock = key.try_into().map(Clock::from_bytes).map_err(|_| Error::Damaged {
        what: "a key of the log".into(),
        why: format!("it has {} bytes", key.len()),
    })?;
    if clock > gaps_to && clock != expected && !planted("pass-over-trimmed") {
        return Err(Error::LogTruncated { asked: expected, kept_from: clock });
    }
    let entry = decode(clock, bytes)?;
    let type_name = catalog
        .type_name(TypeId(entry.type_id))
        .ok_or_else(|| super::damaged(clock, "its type is not in the catalogue"))?;
    Ok(ChangeHeader {
        clock,
        type_name,
        key: entry.key,
        op: entry.op,
        previous: Some(Clock::new(entry.previous)).filter(|previous| *previous > Clock::ZERO),
        time: Hlc::from_number(entry.time),
        origin: entry.origin,
        transaction: Clock::new(entry.transaction),
        json: entry.json,
    })
}

//! Positions of readers that come back later: what lies behind them is kept, up to a size.

use core::ops::ControlFlow;

use motet_protocol::fault::planted;

use super::compacted::Extent;
use crate::engine::{Decision, Read, Table, Transaction, Writes, decides};
use crate::value::successor;
use crate::{Clock, Error, lookup};

/// Sets a pin, or takes it away.
pub(crate) struct SetPin {
    pub(crate) name: String,
    pub(crate) after: Option<Clock>,
}

impl SetPin {
    /// What a pin promises must be there when it is made.
    async fn run(&self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let key = [PINS_PREFIX, self.name.as_bytes()].concat();
        let mut writes = Writes::default();
        match self.after {
            None => writes.remove(Table::Catalog, &key),
            Some(after) => {
                let head = transaction.head().clock;
                if after > head {
                    return Err(Error::LogPositionAhead { asked: after, head });
                }
                let extent = Extent::load(transaction).await?;
                if !extent.has_all_after(after) {
                    let (asked, kept_from) = (after.plus(1), extent.from);
                    return Err(Error::LogTruncated { asked, kept_from });
                }
                writes.put(Table::Catalog, &key, &after.to_bytes());
            }
        }
        Ok(Decision { writes, changes: 0 })
    }
}

decides!(SetPin);

/// All pins by name, and the positions after which they keep the log.
pub(crate) async fn all(from: &dyn Read) -> Result<Vec<(String, Clock)>, Error> {
    let (mut pins, mut failed) = (Vec::new(), Ok(()));
    let end = successor(PINS_PREFIX);
    let mut show = |key: &[u8], value: &[u8]| {
        let name = String::from_utf8_lossy(&key[PINS_PREFIX.len()..]).into_owned();
        match value.try_into() {
            Ok(clock) => pins.push((name, Clock::from_bytes(clock))),
            Err(_) => {
                failed = Err(Error::Damaged {
                    what: format!("the log's pin {name:?}"),
                    why: format!("it has {} bytes", value.len()),
                });
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    lookup::range(from, Table::Catalog, PINS_PREFIX, end.as_deref(), &mut show).await?;
    failed.map(|()| pins)
}

/// The lowest position after which the log is pinned. A pin from which something is gone already
/// holds nothing any more: whoever set it is told so when he reads on.
pub(super) async fn lowest(from: &dyn Read, extent: Extent) -> Result<Option<Clock>, Error> {
    let pins = all(from).await?.into_iter().map(|(_, after)| after);
    let holds = |after: &Clock| extent.has_all_after(*after) || planted("hold-for-lost-pins");
    Ok(pins.filter(holds).min())
}

const PINS_PREFIX: &[u8] = b"log/pin/";

//! The part of the log that has one change of each document: where it ends, whether it is whole, and
//! who may read on from where.

use motet_protocol::fault::planted;

use super::trim;
use crate::catalog::COMPACTED_KEY;
use crate::engine::{Read, Table, Writes};
use crate::{Clock, Error, lookup};

/// How far the log is compacted, as the catalogue has it for as long as the log has or may get such a
/// part.
///
/// ```text
/// 0..8   the clock up to which the log has, of each document whose last change is not after it,
///        that change and nothing else
/// 8      1 if all of them are there, 0 if not
/// 9..    if not: the key in Documents from which on they may be missing
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    pub(crate) to: Clock,
    /// From which key of `Documents` on changes of documents may be missing; `None` if none is.
    pub(crate) missing_from: Option<Vec<u8>>,
}

impl Compacted {
    /// Where compaction begins in a log that was trimmed up to this clock.
    pub(super) fn begin(to: Clock) -> Self {
        Self { to, missing_from: (to > Clock::ZERO).then(Vec::new) }
    }

    /// The same part, of which any change may be missing.
    pub(super) const fn to_rebuild(&self) -> Self {
        Self { to: self.to, missing_from: Some(Vec::new()) }
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.missing_from.is_none()
    }

    pub(crate) async fn load(from: &dyn Read) -> Result<Option<Self>, Error> {
        let bytes = lookup::one(from, Table::Catalog, COMPACTED_KEY).await?;
        let damaged = |bytes: &[u8]| Error::Damaged {
            what: "the clock up to which the log is compacted".into(),
            why: format!("its record is {bytes:02x?}"),
        };
        let read = |bytes: Vec<u8>| match bytes.get(8) {
            Some(flag) if ![WHOLE, IN_PARTS].contains(flag) => Err(Error::EntryNewer {
                what: "the clock up to which the log is compacted".into(),
                why: format!("unknown flag {flag}"),
            }),
            _ => Self::from_bytes(&bytes).ok_or_else(|| damaged(&bytes)),
        };
        bytes.map(read).transpose()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (to, rest) = bytes.split_first_chunk::<8>()?;
        let missing_from = match rest.split_first()? {
            (&WHOLE, []) => None,
            (&IN_PARTS, key) => Some(key.to_vec()),
            _ => return None,
        };
        Some(Self { to: Clock::from_bytes(*to), missing_from })
    }

    pub(super) fn put(&self, writes: &mut Writes) {
        let mut bytes = self.to.to_bytes().to_vec();
        match &self.missing_from {
            None => bytes.push(WHOLE),
            Some(key) => {
                bytes.push(IN_PARTS);
                bytes.extend_from_slice(key);
            }
        }
        writes.put(Table::Catalog, COMPACTED_KEY, &bytes);
    }
}

/// What of the log is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// From here on every change is.
    pub(super) from: Clock,
    /// Whether the latest change of each document is there where it lies before.
    pub(super) has_latest: bool,
}

impl Extent {
    pub(super) async fn load(view: &dyn Read) -> Result<Self, Error> {
        match Compacted::load(view).await? {
            None => Ok(Self { from: trim::first(view).await?, has_latest: false }),
            Some(compacted) => {
                Ok(Self { from: compacted.to.plus(1), has_latest: compacted.is_whole() })
            }
        }
    }

    /// The last clock of which the change may be gone.
    pub(super) const fn before(&self) -> Clock {
        Clock::new(self.from.number().saturating_sub(1))
    }

    /// Whether who has read everything up to this clock misses nothing of what came after it.
    pub(super) fn has_all_after(&self, after: Clock) -> bool {
        after >= self.before() || (after == Clock::ZERO && self.has_latest)
    }
}

/// How far somebody has read in a log.
///
/// A [`Clock`] is one: of everything up to it. Who reads a compacted part page by page also says up
/// to where it was compacted then, as [`Log::compacted_to`](crate::Log::compacted_to) does: while it
/// is read, a document may be removed, and if the removal is compacted away as well, who reads on
/// would never hear of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// The clock of the last change that was read; [`Clock::ZERO`] if there was none.
    pub after: Clock,
    /// Up to where the log was compacted when it was begun.
    pub compacted_to: Clock,
}

impl Position {
    /// After this clock, in a log that was compacted up to another when its reader began.
    #[must_use]
    pub const fn new(after: Clock, compacted_to: Clock) -> Self {
        Self { after, compacted_to }
    }

    /// Up to where changes may be passed over for who reads on from here, and misses nothing.
    pub(super) fn enter(self, compacted: Option<&Compacted>) -> Result<Clock, Error> {
        let Some(compacted) = compacted.filter(|part| self.after < part.to) else {
            return Ok(Clock::ZERO);
        };
        let same = self.compacted_to == compacted.to || planted("page-over-compaction");
        let begins = self.after == Clock::ZERO;
        if compacted.is_whole() && (begins || same) {
            return Ok(compacted.to);
        }
        Err(Error::LogTruncated { asked: self.after.plus(1), kept_from: compacted.to.plus(1) })
    }
}

impl From<Clock> for Position {
    fn from(after: Clock) -> Self {
        Self { after, compacted_to: Clock::ZERO }
    }
}

const WHOLE: u8 = 1;
const IN_PARTS: u8 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(number: u64) -> Clock {
        Clock::new(number)
    }

    #[test]
    fn a_record_is_read_back_whole_or_not_and_never_cut_short() {
        for missing_from in [None, Some(Vec::new()), Some(b"\0\0\0\x01k".to_vec())] {
            let compacted = Compacted { to: clock(9), missing_from };
            let mut writes = Writes::default();
            compacted.put(&mut writes);
            let bytes = writes.iter().find_map(|(_, _, value)| value).unwrap().to_vec();
            assert_eq!(Compacted::from_bytes(&bytes), Some(compacted));
            assert_eq!(Compacted::from_bytes(&bytes[..8]), None);
        }
        assert_eq!(Compacted::from_bytes(&[0, 0, 0, 0, 0, 0, 0, 9, 2]), None);
    }

    #[test]
    fn a_compacted_part_is_entered_at_its_beginning_and_left_only_as_it_was() {
        let whole = Compacted { to: clock(9), missing_from: None };
        let enter = |after, to| Position::new(clock(after), clock(to)).enter(Some(&whole)).ok();
        assert_eq!(enter(0, 0), Some(clock(9)));
        assert_eq!(enter(4, 9), Some(clock(9)));
        assert_eq!((enter(4, 0), enter(4, 8)), (None, None), "it was compacted since");
        assert_eq!(enter(9, 0), Some(Clock::ZERO), "after it there are no gaps");
        assert!(Position::from(Clock::ZERO).enter(Some(&whole.to_rebuild())).is_err());
        assert_eq!(Position::from(clock(4)).enter(None).ok(), Some(Clock::ZERO));
    }
}

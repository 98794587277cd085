//! `settles`: every promise is kept in time and tells the truth about what the server did.

use std::collections::{BTreeMap, HashMap};

use motet_protocol::{Error, ErrorCode};

use super::Verdict;
use super::log::{Accepted, Log};
use crate::world::context::ContextId;

/// Running time in which a publication must settle: its deadline and one second, and what timers
/// and the judge's own step may add.
const PUBLISH_MS_MAX: u64 = 8_000 + 1_000 + 150;
/// Running time in which `close()` must end.
const CLOSE_MS_MAX: u64 = 10_000;

#[derive(Debug)]
struct Call {
    page: ContextId,
    topic: usize,
    running_ms: u64,
}

/// How a publication ended for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Acknowledged,
    /// It was not done.
    Refused,
    /// It may have been done.
    Unknown,
}

/// Calls of applications.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pending: BTreeMap<u64, Call>,
    told: HashMap<u64, Told>,
    /// Who published what, for the order of acceptance.
    origin: HashMap<u64, (ContextId, usize)>,
    /// Newest accepted publication of each page and topic.
    newest: HashMap<(ContextId, usize), u64>,
    /// Pages that were asked to close, with the running time since.
    closing: BTreeMap<ContextId, u64>,
    /// Publications that were settled.
    pub(crate) settled: u64,
}

fn fails(text: String) -> Verdict {
    Err(("settles", text))
}

impl Calls {
    pub(crate) fn publishing(&mut self, page: ContextId, topic: usize, payload: u64) {
        self.pending.insert(payload, Call { page, topic, running_ms: 0 });
        self.origin.insert(payload, (page, topic));
    }

    pub(crate) fn settled(
        &mut self,
        payload: u64,
        result: &Result<(), Error>,
        log: &Log,
    ) -> Verdict {
        if self.pending.remove(&payload).is_none() {
            return fails(format!("publication {payload} settled twice, now as {result:?}"));
        }
        self.settled += 1;
        let told = match result {
            Ok(()) => Told::Acknowledged,
            Err(error) => match error.code {
                ErrorCode::OutcomeUnknown | ErrorCode::Aborted | ErrorCode::RequestTimeout => {
                    Told::Unknown
                }
                _ => Told::Refused,
            },
        };
        self.told.insert(payload, told);
        let accepted = log.find(payload).is_some();
        match told {
            Told::Acknowledged if !accepted => {
                fails(format!("publication {payload} was acknowledged, but not accepted"))
            }
            Told::Refused if accepted => {
                fails(format!("publication {payload} was accepted, but settled as {result:?}"))
            }
            _ => Ok(()),
        }
    }

    /// The server accepts a publication.
    pub(crate) fn accepted(&mut self, topic: usize, entry: &Accepted, log: &Log) -> Verdict {
        let payload = entry.payload;
        if let Some((_, _, first)) = log.find(payload)
            && first.server_life == entry.server_life
        {
            return Err(("ordered-once", format!("publication {payload} was accepted twice")));
        }
        if self.told.get(&payload) == Some(&Told::Refused) {
            return fails(format!(
                "publication {payload} is accepted after its caller was told not"
            ));
        }
        let Some((page, _)) = self.origin.get(&payload).copied() else { return Ok(()) };
        let newest = self.newest.entry((page, topic)).or_insert(0);
        let late = *newest > payload && self.told.get(&payload) != Some(&Told::Unknown);
        *newest = payload.max(*newest);
        if late && log.find(payload).is_none() {
            let text =
                format!("publication {payload} of page {page} is accepted after a later one");
            return Err(("ordered-once", text));
        }
        Ok(())
    }

    /// Some publication has not settled yet.
    pub(crate) fn waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(crate) fn closing(&mut self, page: ContextId) {
        self.closing.insert(page, 0);
    }

    /// A page that was asked to close has closed.
    pub(crate) fn closed(&mut self, page: ContextId) {
        self.closing.remove(&page);
    }

    pub(crate) fn page_gone(&mut self, page: ContextId) {
        self.pending.retain(|_, call| call.page != page);
        self.closing.remove(&page);
    }

    /// Time has passed for the pages that `runs` names.
    pub(crate) fn pass(&mut self, ms: u64, runs: impl Fn(ContextId) -> bool) -> Verdict {
        for (payload, call) in &mut self.pending {
            if runs(call.page) {
                call.running_ms += ms;
            }
            if call.running_ms > PUBLISH_MS_MAX {
                let (page, topic) = (call.page, call.topic);
                return fails(format!(
                    "publication {payload} of page {page} on topic {topic} hangs"
                ));
            }
        }
        for (page, running_ms) in &mut self.closing {
            if runs(*page) {
                *running_ms += ms;
            }
            if *running_ms > CLOSE_MS_MAX {
                return fails(format!("close() of page {page} hangs"));
            }
        }
        Ok(())
    }
}

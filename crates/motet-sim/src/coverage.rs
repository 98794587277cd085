//! Which faults struck while a route was at which stage.

use std::fmt;

use crate::faults::Fault;

/// How far a route is, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Decided, not yet confirmed.
    Assigned,
    /// The owner is subscribing.
    Subscribing,
    /// The owner is subscribed.
    Subscribed,
    /// The server refused it.
    Failed,
    /// The old owner has yet to release it.
    Handoff,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 5] =
        [Self::Assigned, Self::Subscribing, Self::Subscribed, Self::Failed, Self::Handoff];

    const fn name(self) -> &'static str {
        match self {
            Self::Assigned => "assigned",
            Self::Subscribing => "subscribing",
            Self::Subscribed => "subscribed",
            Self::Failed => "failed",
            Self::Handoff => "handoff",
        }
    }
}

/// How often each fault struck with a route at each stage.
#[derive(Clone, Debug)]
pub struct Coverage {
    cells: [[u64; Stage::ALL.len()]; Fault::ALL.len()],
}

impl Default for Coverage {
    fn default() -> Self {
        Self { cells: [[0; Stage::ALL.len()]; Fault::ALL.len()] }
    }
}

impl Coverage {
    pub(crate) fn mark(&mut self, fault: Fault, stage: Stage) {
        self.cells[fault as usize][stage as usize] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (row, others) in self.cells.iter_mut().zip(&other.cells) {
            for (cell, more) in row.iter_mut().zip(others) {
                *cell += more;
            }
        }
    }

    /// Fault and stage of every cell that stayed empty.
    #[must_use]
    pub fn empty_cells(&self) -> Vec<String> {
        let mut empty = Vec::new();
        for fault in Fault::ALL {
            for stage in Stage::ALL {
                if self.cells[fault as usize][stage as usize] == 0 {
                    empty.push(format!("{} x {}", fault.name(), stage.name()));
                }
            }
        }
        empty
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<24}", "fault")?;
        for stage in Stage::ALL {
            write!(f, "{:>12}", stage.name())?;
        }
        for fault in Fault::ALL {
            write!(f, "\n{:<24}", fault.name())?;
            for stage in Stage::ALL {
                write!(f, "{:>12}", self.cells[fault as usize][stage as usize])?;
            }
        }
        Ok(())
    }
}

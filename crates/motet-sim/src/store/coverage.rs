//! Which faults struck which operations.

use std::fmt;

use super::action::Operation;
use super::fault::Fault;

/// How often each fault struck each operation.
#[derive(Clone, Debug)]
pub struct Coverage {
    cells: [[u64; Fault::ALL.len()]; Operation::ALL.len()],
}

impl Default for Coverage {
    fn default() -> Self {
        Self { cells: [[0; Fault::ALL.len()]; Operation::ALL.len()] }
    }
}

impl Coverage {
    pub(crate) fn mark(&mut self, operation: Operation, fault: Fault) {
        self.cells[operation as usize][fault as usize] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (row, others) in self.cells.iter_mut().zip(&other.cells) {
            for (cell, more) in row.iter_mut().zip(others) {
                *cell += more;
            }
        }
    }

    /// Operation and fault of every cell that stayed empty and can be filled.
    #[must_use]
    pub fn empty_cells(&self) -> Vec<String> {
        let mut empty = Vec::new();
        for operation in Operation::ALL {
            for fault in Fault::ALL.into_iter().filter(|fault| can_strike(operation, *fault)) {
                if self.cells[operation as usize][fault as usize] == 0 {
                    empty.push(format!("{} x {}", operation.name(), fault.name()));
                }
            }
        }
        empty
    }
}

/// What only reads has no group of deciders.
const fn can_strike(operation: Operation, fault: Fault) -> bool {
    operation.writes() || fault.strikes_reads()
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<14}", "operation")?;
        for fault in Fault::ALL {
            write!(f, "{:>13}", fault.name())?;
        }
        for operation in Operation::ALL {
            write!(f, "\n{:<14}", operation.name())?;
            for fault in Fault::ALL {
                if can_strike(operation, fault) {
                    write!(f, "{:>13}", self.cells[operation as usize][fault as usize])?;
                } else {
                    write!(f, "{:>13}", "-")?;
                }
            }
        }
        Ok(())
    }
}

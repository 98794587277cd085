//! Which faults struck what.

use std::fmt;

/// How often what a row is named after met what a column is.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// What the rows are.
    of: &'static str,
    columns: Vec<&'static str>,
    /// Cells that cannot be are `None`.
    rows: Vec<(&'static str, Vec<Option<u64>>)>,
}

impl Coverage {
    /// An empty table; `can_be` says for a row and a column whether they can meet.
    pub(crate) fn new(
        of: &'static str,
        rows: &[&'static str],
        columns: &[&'static str],
        can_be: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let cells = |row| {
            let cell = |column| can_be(row, column).then_some(0);
            (0..columns.len()).map(cell).collect()
        };
        let rows = rows.iter().enumerate().map(|(row, name)| (*name, cells(row)));
        Self { of, columns: columns.to_vec(), rows: rows.collect() }
    }

    pub(crate) fn mark(&mut self, row: usize, column: usize) {
        if let Some(cell) = &mut self.rows[row].1[column] {
            *cell += 1;
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        if self.rows.is_empty() {
            *self = other;
            return;
        }
        for ((_, cells), (_, others)) in self.rows.iter_mut().zip(other.rows) {
            for (cell, more) in cells.iter_mut().flatten().zip(others.into_iter().flatten()) {
                *cell += more;
            }
        }
    }

    /// Row and column of every cell that stayed empty.
    #[must_use]
    pub fn empty_cells(&self) -> Vec<String> {
        let mut empty = Vec::new();
        for (row, cells) in &self.rows {
            for (cell, column) in cells.iter().zip(&self.columns) {
                if *cell == Some(0) {
                    empty.push(format!("{row} x {column}"));
                }
            }
        }
        empty
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<24}", self.of)?;
        for column in &self.columns {
            write!(f, "{column:>13}")?;
        }
        for (row, cells) in &self.rows {
            write!(f, "\n{row:<24}")?;
            for cell in cells {
                match cell {
                    Some(count) => write!(f, "{count:>13}")?,
                    None => write!(f, "{:>13}", "-")?,
                }
            }
        }
        Ok(())
    }
}

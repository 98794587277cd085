//! What was measured, as a table for people and as JSON for programs.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the table is for the one who ran the benchmark")]

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// One figure. `ratio` is ours divided by the peer's.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    figure: String,
    value: f64,
    unit: &'static str,
    peer: Option<String>,
    peer_value: Option<f64>,
    ratio: Option<f64>,
    target: Option<String>,
    met: Option<bool>,
    /// What each round gave, where there were several.
    runs: Vec<f64>,
}

impl Figure {
    /// A figure beside nothing.
    #[must_use]
    pub fn new(figure: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            figure: figure.into(),
            value: rounded(value),
            unit,
            peer: None,
            peer_value: None,
            ratio: None,
            target: None,
            met: None,
            runs: Vec::new(),
        }
    }

    /// Must be this or less.
    #[must_use]
    pub fn at_most(mut self, bound: f64) -> Self {
        self.target = Some(format!("<= {bound}"));
        self.met = Some(self.value <= bound);
        self
    }

    /// Must be this or more.
    #[must_use]
    pub fn at_least(mut self, bound: f64) -> Self {
        self.target = Some(format!(">= {bound}"));
        self.met = Some(self.value >= bound);
        self
    }

    /// Must be this.
    #[must_use]
    pub fn exactly(mut self, expected: f64) -> Self {
        self.target = Some(format!("= {expected}"));
        self.met = Some((self.value - expected).abs() < f64::EPSILON);
        self
    }

    /// What a peer gives in the same run.
    #[must_use]
    pub fn beside(mut self, peer: impl Into<String>, value: f64) -> Self {
        self.peer = Some(peer.into());
        self.peer_value = Some(rounded(value));
        self.ratio = (value > 0.0).then(|| rounded(self.value / value));
        self
    }

    /// Must be so much of the peer's, or more.
    #[must_use]
    pub fn ratio_at_least(mut self, bound: f64) -> Self {
        self.target = Some(format!("ratio >= {bound}"));
        self.met = self.ratio.map(|ratio| ratio >= bound);
        self
    }

    /// What each round gave.
    #[must_use]
    pub fn of_runs(mut self, runs: &[f64]) -> Self {
        self.runs = runs.iter().copied().map(rounded).collect();
        self
    }

    fn cells(&self) -> [String; 6] {
        let peer = match (&self.peer, self.peer_value) {
            (Some(peer), Some(value)) => format!("{peer}: {}", shown(value)),
            _ => String::new(),
        };
        let met = match self.met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        [
            self.figure.clone(),
            format!("{} {}", shown(self.value), self.unit),
            peer,
            self.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            self.target.clone().unwrap_or_default(),
            met.to_owned(),
        ]
    }
}

/// All figures of a run.
pub struct Report {
    figures: Vec<Figure>,
}

impl Report {
    /// A report of these.
    #[must_use]
    pub fn new(figures: Vec<Figure>) -> Self {
        Self { figures }
    }

    /// Prints the table and writes the file.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn publish(&self, file: &Path) -> Result<()> {
        let head = ["figure", "measured", "peer", "ratio", "target", "met"].map(str::to_owned);
        let rows: Vec<_> =
            std::iter::once(head).chain(self.figures.iter().map(Figure::cells)).collect();
        let widths: [usize; 6] = std::array::from_fn(|column| {
            rows.iter().map(|row| row[column].len()).max().unwrap_or(0)
        });
        for row in &rows {
            let line: Vec<_> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            println!("{}", line.join("  ").trim_end());
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let text = serde_json::to_string_pretty(&self.figures)?;
        fs::write(file, format!("{text}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
        println!("Written: {}", file.display());
        Ok(())
    }
}

/// Four significant digits at most after the point, so that the file is readable.
fn rounded(value: f64) -> f64 {
    let digits = if value.abs() >= 100.0 { 1.0 } else { 1_000.0 };
    (value * digits).round() / digits
}

fn shown(value: f64) -> String {
    if value.abs() >= 100_000.0 {
        format!("{:.2} M", value / 1e6)
    } else if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

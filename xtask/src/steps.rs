//! A list of steps, run in order, with a table at the end.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::summary::Counts;

/// One step of `check` or `test`.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) run: fn() -> Result<Report>,
}

/// What a step that came to its end reports.
pub(crate) enum Report {
    /// It ran: so many tests passed and failed.
    Counted(Counts),
    /// It could not run here for a good reason.
    Skipped(String),
}

/// The report of a step that is one check.
pub(crate) fn passed() -> Report {
    Report::Counted(Counts::PASSED)
}

/// Which steps to run.
#[derive(Default)]
pub(crate) struct Selection {
    pub(crate) only: Vec<String>,
    pub(crate) skip: Vec<String>,
}

impl Selection {
    fn includes(&self, name: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|other| other == name);
        (self.only.is_empty() || is_named(&self.only)) && !is_named(&self.skip)
    }

    fn validate(&self, steps: &[Step]) -> Result<()> {
        for name in self.only.iter().chain(&self.skip) {
            if !steps.iter().any(|step| step.name == name) {
                let known: Vec<_> = steps.iter().map(|step| step.name).collect();
                bail!("no step is called {name:?}; the steps are {}", known.join(", "));
            }
        }
        Ok(())
    }
}

struct Row {
    name: &'static str,
    counts: Counts,
    took: Duration,
    note: String,
}

/// Runs the selected steps; a failing step does not stop the later ones.
///
/// The last line printed is `N passed, N failed`.
pub(crate) fn run(steps: &[Step], selection: &Selection) -> Result<()> {
    selection.validate(steps)?;
    let chosen: Vec<_> = steps.iter().filter(|step| selection.includes(step.name)).collect();
    let mut rows = Vec::with_capacity(chosen.len());
    for (index, step) in chosen.iter().enumerate() {
        println!("\n[{}/{}] {}: {}", index + 1, chosen.len(), step.name, step.what);
        let started = Instant::now();
        let (counts, note) = match (step.run)() {
            Ok(Report::Counted(counts)) => (counts, String::new()),
            Ok(Report::Skipped(why)) => (Counts::default(), format!("skipped: {why}")),
            Err(error) => {
                println!("{}: {error:#}", step.name);
                let text = format!("{error:#}");
                (Counts::FAILED, text.lines().next().unwrap_or_default().to_owned())
            }
        };
        rows.push(Row { name: step.name, counts, took: started.elapsed(), note });
    }
    close(&rows)
}

fn close(rows: &[Row]) -> Result<()> {
    println!("\n{:<14} {:>7} {:>7} {:>9}", "step", "passed", "failed", "seconds");
    for Row { name, counts, took, note } in rows {
        let seconds = took.as_secs_f64();
        let line =
            format!("{name:<14} {:>7} {:>7} {seconds:>9.1}  {note}", counts.passed, counts.failed);
        println!("{}", line.trim_end());
    }
    let total = rows.iter().map(|row| row.counts).fold(Counts::default(), Counts::add);
    println!("\n{} passed, {} failed", total.passed, total.failed);
    if total.failed > 0 || total.passed == 0 {
        // The closing line has said it all.
        std::process::exit(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Step; 2] = [
        Step { name: "one", what: "first", run: || Ok(passed()) },
        Step { name: "two", what: "second", run: || Ok(passed()) },
    ];

    #[test]
    fn only_and_skip_choose_steps() {
        let only = Selection { only: vec!["two".into()], skip: vec![] };
        assert!(!only.includes("one") && only.includes("two"));
        let skip = Selection { only: vec![], skip: vec!["two".into()] };
        assert!(skip.includes("one") && !skip.includes("two"));
    }

    #[test]
    fn a_step_that_does_not_exist_is_refused_with_the_names_that_do() {
        let selection = Selection { only: vec!["three".into()], skip: vec![] };
        let error = selection.validate(&STEPS).expect_err("there is no such step").to_string();
        assert!(error.contains("one, two"), "{error}");
    }
}

//! `motet check`.

use std::os::unix::process::{ExitStatusExt as _, parent_id};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, io, process};

use clap::Args;
use motet_protocol::ErrorCode;
use motet_store::CheckReport;
use rustix::process::Signal;
use serde_json::json;

use super::failure::CommandError;
use super::output::{Form, Output, Progress};
use super::place::open_existing;

/// What to check.
#[derive(Debug, Args)]
pub struct CheckOptions {
    /// The store's directory. Servers may have it open and write to it meanwhile.
    #[arg(long, value_name = "DIR", env = "MOTET_DATA")]
    data: PathBuf,
    /// Only this environment. May be given several times.
    #[arg(long = "env", value_name = "NAME")]
    environments: Vec<String>,
    #[command(flatten)]
    form: Form,
    /// Check in this process, which ends by a signal where pages of the file are damaged, for as long
    /// as its parent is the one with this id.
    #[arg(long, value_name = "PARENT", hide = true)]
    in_process: Option<u32>,
}

impl CheckOptions {
    /// Checks the environments and prints what is not as it must be.
    ///
    /// # Errors
    /// `INTEGRITY_VIOLATED` if anything is; `STORE_CORRUPT` if not even reading it is possible.
    pub fn run(self) -> Result<(), CommandError> {
        match self.in_process {
            Some(parent) => self.check(parent),
            None => self.check_in_child(),
        }
    }

    /// Checks in a process of its own: the files are read as memory, and where they are damaged, the
    /// system ends whoever reads them.
    fn check_in_child(&self) -> Result<(), CommandError> {
        let failed = |cause| CommandError::file("the process that checks", cause);
        let mut child = process::Command::new(own_program().map_err(failed)?);
        let mut arguments = env::args_os().skip(1);
        // Right after the subcommand, for after `--` there are no options.
        child.args(arguments.next()).arg("--in-process").arg(process::id().to_string());
        let ended = child.args(arguments).status().map_err(failed)?;
        match (ended.signal(), ended.code()) {
            (Some(signal), _) => Err(ended_by(signal, &self.data)),
            (None, Some(0)) => Ok(()),
            // It has said why.
            (None, code) => process::exit(code.unwrap_or(1)),
        }
    }

    fn check(self, parent: u32) -> Result<(), CommandError> {
        let store = open_existing(&self.data, VIEW_MAX)?;
        let all = self.environments.is_empty();
        let names = if all { store.environments()? } else { self.environments };
        let (mut output, mut damaged) = (Output::new(), Vec::new());
        let mut progress = Progress::new("entries checked");
        for name in names {
            let Some(env) = store.existing_env(&name)? else {
                let what = format!("{}: environment {name:?}", self.data.display());
                return Err(CommandError::Refused { code: ErrorCode::EnvironmentNotFound, what });
            };
            let report = env.check_with_progress(&mut |entries| {
                if parent_id() != parent {
                    // Nobody waits for it, and its view would keep the file growing.
                    process::exit(1);
                }
                progress.add(entries);
            })?;
            if self.form.json {
                print_json(&name, &report, &mut output)
            } else {
                print(&name, &report, &mut output)
            }?;
            if !report.is_clean() {
                damaged.push(name);
            }
        }
        progress.end();
        output.flush()?;
        if damaged.is_empty() {
            return Ok(());
        }
        let what = format!("{}: {}", self.data.display(), damaged.join(", "));
        Err(CommandError::Refused { code: ErrorCode::IntegrityViolated, what })
    }
}

/// The program that this process runs, also if its file was replaced or removed since.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { env::current_exe() }
}

/// What it means that a signal ended the process that checked.
fn ended_by(signal: i32, data: &Path) -> CommandError {
    let told = format!("{}: signal {signal} ended the process that read it", data.display());
    if [Signal::BUS, Signal::SEGV].iter().any(|damage| damage.as_raw() == signal) {
        return CommandError::Refused { code: ErrorCode::StoreCorrupt, what: told };
    }
    let what = format!("{told}; nothing was found out");
    CommandError::Refused { code: ErrorCode::OutcomeUnknown, what }
}

fn print(name: &str, report: &CheckReport, output: &mut Output) -> Result<(), CommandError> {
    let CheckReport { documents, changes, index_entries, expiries, .. } = report;
    output.line(&format!(
        "{name}: {documents} documents, {changes} changes, {index_entries} index entries, \
         {expiries} expiries: {}",
        if report.is_clean() { "all as it must be" } else { "damaged" }
    ))?;
    for finding in &report.findings {
        output.line(&format!("  {}: {finding}", finding.invariant()))?;
    }
    if report.findings_left_out > 0 {
        output.line(&format!("  and {} more", report.findings_left_out))?;
    }
    Ok(())
}

fn print_json(name: &str, report: &CheckReport, output: &mut Output) -> Result<(), CommandError> {
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|finding| json!({"invariant": finding.invariant(), "what": finding.to_string()}))
        .collect();
    output.json(&json!({
        "env": name,
        "documents": report.documents,
        "changes": report.changes,
        "indexEntries": report.index_entries,
        "expiries": report.expiries,
        "findings": findings,
        "findingsLeftOut": report.findings_left_out,
    }))
}

/// A check of a large environment takes longer than views may be kept otherwise.
const VIEW_MAX: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_signal_for_memory_that_cannot_be_read_says_that_the_store_is_damaged() {
        let code = |signal: Signal| ended_by(signal.as_raw(), Path::new("data")).code();
        assert_eq!([Signal::BUS, Signal::SEGV].map(code), [ErrorCode::StoreCorrupt; 2]);
        let others = [Signal::KILL, Signal::TERM, Signal::INT, Signal::ABORT];
        assert_eq!(others.map(code), [ErrorCode::OutcomeUnknown; 4]);
        let told = ended_by(9, Path::new("data")).report();
        assert!(told.contains("signal 9") && told.contains("nothing was found out"), "{told}");
    }
}

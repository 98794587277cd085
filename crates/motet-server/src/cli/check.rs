//! `motet check`.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, process};

use clap::Args;
use motet_protocol::ErrorCode;
use motet_store::CheckReport;
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
    /// Check in this process, which ends by a signal where pages of the file are damaged.
    #[arg(long, hide = true)]
    in_process: bool,
}

impl CheckOptions {
    /// Checks the environments and prints what is not as it must be.
    ///
    /// # Errors
    /// `INTEGRITY_VIOLATED` if anything is; `STORE_CORRUPT` if not even reading it is possible.
    pub fn run(self) -> Result<(), CommandError> {
        if self.in_process { self.check() } else { self.check_in_child() }
    }

    /// Checks in a process of its own: the files are read as memory, and where they are damaged, the
    /// system ends whoever reads them.
    fn check_in_child(&self) -> Result<(), CommandError> {
        let failed = |cause| CommandError::file("the process that checks", cause);
        let program = env::current_exe().map_err(failed)?;
        let arguments = env::args_os().skip(1);
        let mut child = process::Command::new(program);
        let ended = child.args(arguments).arg("--in-process").status().map_err(failed)?;
        match (ended.signal(), ended.code()) {
            (Some(signal), _) => {
                let path = self.data.display();
                let what = format!("{path}: signal {signal} ended the process that read it");
                Err(CommandError::Refused { code: ErrorCode::StoreCorrupt, what })
            }
            (None, Some(0)) => Ok(()),
            // It has said why.
            (None, code) => process::exit(code.unwrap_or(1)),
        }
    }

    fn check(self) -> Result<(), CommandError> {
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
            let report = env.check_with_progress(&mut |entries| progress.add(entries))?;
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

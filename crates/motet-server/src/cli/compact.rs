//! `motet compact`.

use std::path::PathBuf;

use clap::Args;
use motet_store::Store;

use super::failure::CommandError;
use super::output::{Form, Output, Progress};
use super::place::{VIEW_MAX, open_existing};

/// What to compact.
#[derive(Debug, Args)]
pub struct CompactOptions {
    /// The store's directory, which nothing else may have open.
    #[arg(long, value_name = "DIR", env = "MOTET_DATA")]
    data: PathBuf,
    /// Only this environment. May be given several times.
    #[arg(long = "env", value_name = "NAME")]
    environments: Vec<String>,
    #[command(flatten)]
    form: Form,
}

impl CompactOptions {
    /// Gives the room of free pages back to the system.
    ///
    /// # Errors
    /// `STORE_IN_USE` if something else has the store open; it is as it was then.
    pub fn run(self) -> Result<(), CommandError> {
        let store: Store = open_existing(&self.data, VIEW_MAX)?;
        let all = self.environments.is_empty();
        let names = if all { store.environments()? } else { self.environments };
        let mut output = Output::new();
        for name in names {
            let done = Progress::of_files("compacted", &self.data, || Ok(store.compact(&name)?))?;
            let (before, after) = (done.bytes_before, done.bytes_after);
            if self.form.json {
                output.json(&serde_json::json!({
                    "env": name, "bytesBefore": before, "bytesAfter": after,
                }))?;
            } else {
                output.line(&format!("{name}: {before} bytes before, {after} after"))?;
            }
        }
        output.flush()
    }
}

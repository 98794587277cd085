//! `motet export`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use motet_protocol::ErrorCode;
use motet_store::Env;
use serde::Serialize;
use serde_json::value::RawValue;

use super::failure::CommandError;
use super::output::{Progress, json_text};
use super::place::Place;

/// What to export.
#[derive(Debug, Args)]
pub struct ExportOptions {
    #[command(flatten)]
    place: Place,
    /// Only documents of this type. May be given several times.
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// The file to write, which must not be there yet; without it, standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl ExportOptions {
    /// Writes every document as a JSON line that `motet import` reads.
    ///
    /// # Errors
    /// What is in the way of reading or writing.
    pub fn run(self) -> Result<(), CommandError> {
        let env = self.place.existing()?;
        let name =
            self.out.as_ref().map_or("standard output".into(), |out| out.display().to_string());
        let failed = |cause| CommandError::file(&name, cause);
        let to: Box<dyn Write> = match &self.out {
            None => Box::new(io::stdout().lock()),
            Some(out) => Box::new(File::create_new(out).map_err(failed)?),
        };
        let mut to = BufWriter::with_capacity(1 << 20, to);
        let mut progress = Progress::new("exported");
        let types = if self.types.is_empty() { env.types()? } else { self.types };
        for type_name in types {
            export(&env, &type_name, &mut to, &mut progress, &failed)?;
        }
        to.flush().map_err(failed)?;
        progress.end();
        Ok(())
    }
}

/// A document as `motet import` reads it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(rename = "type")]
    type_name: &'a str,
    key: &'a str,
    value: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
}

/// Exports one type, page by page: no view is kept for as long as that takes.
fn export(
    env: &Env,
    type_name: &str,
    to: &mut impl Write,
    progress: &mut Progress,
    failed: &impl Fn(io::Error) -> CommandError,
) -> Result<(), CommandError> {
    let mut query = env.query(type_name).limit(PAGE).bytes_max(PAGE_BYTES);
    loop {
        let page = query.raw_page()?;
        for (key, document) in &page.rows {
            let value = serde_json::from_slice(&document.json).map_err(|cause| {
                let what = format!("{type_name} {key:?}: {cause}");
                CommandError::Refused { code: ErrorCode::StoreCorrupt, what }
            })?;
            let line = Line { type_name, key, value, expires_ms: document.expires_ms };
            writeln!(to, "{}", json_text(&line)).map_err(failed)?;
        }
        progress.add(page.rows.len() as u64);
        match page.next {
            Some(next) => query = query.after(next),
            None => return Ok(()),
        }
    }
}

const PAGE: usize = 1_000;
/// Bytes of documents that are held at once.
const PAGE_BYTES: usize = 16 << 20;

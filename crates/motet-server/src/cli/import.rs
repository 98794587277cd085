//! `motet import`.

use core::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use motet_store::{Env, Write};
use serde::Deserialize;
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::Value;

use super::failure::CommandError;
use super::output::Progress;
use super::place::Place;

/// What to import.
#[derive(Debug, Args)]
pub struct ImportOptions {
    #[command(flatten)]
    place: Place,
    /// The file: JSON lines, or one JSON array; `-` is standard input.
    file: PathBuf,
    /// The type of documents that do not say theirs.
    #[arg(long = "type", value_name = "TYPE")]
    type_name: Option<String>,
    /// Every object is a document, and this field of it its key. Without it, every object has
    /// `key` and `value` (and `type` and `expiresMs`), as `motet export` writes them.
    #[arg(long = "key", value_name = "FIELD", requires = "type_name")]
    key_field: Option<String>,
    /// Documents in one transaction.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    batch: usize,
}

/// A document as `motet export` writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Exported {
    #[serde(rename = "type")]
    type_name: Option<String>,
    key: String,
    value: Value,
    expires_ms: Option<u64>,
    /// Of the store that it came from; this one gives its own.
    #[serde(rename = "version")]
    _version: Option<u64>,
}

/// An import at work.
struct Import<'o> {
    options: &'o ImportOptions,
    env: Env,
    writes: Vec<Write>,
    progress: Progress,
    read: u64,
}

impl ImportOptions {
    /// Puts all documents of the file.
    ///
    /// # Errors
    /// The first thing that is no document, named by its number; batches before it are in the
    /// store.
    pub fn run(self) -> Result<(), CommandError> {
        let name = self.file.display().to_string();
        let reader: Box<dyn BufRead> = if name == "-" {
            Box::new(std::io::stdin().lock())
        } else {
            let file = File::open(&self.file).map_err(|cause| CommandError::file(&name, cause))?;
            Box::new(BufReader::with_capacity(1 << 20, file))
        };
        let mut import = Import {
            env: self.place.made()?,
            writes: Vec::new(),
            progress: Progress::new("imported"),
            read: 0,
            options: &self,
        };
        let imported = import.all(&name, reader);
        // Also when it failed: how many documents are in the store, and so where to go on.
        import.progress.end();
        imported
    }
}

impl Import<'_> {
    fn all(&mut self, name: &str, mut reader: impl BufRead) -> Result<(), CommandError> {
        let first = first_byte(&mut reader).map_err(|cause| CommandError::file(name, cause))?;
        if first == Some(b'[') {
            self.array(name, reader)?;
        } else {
            self.lines(name, reader)?;
        }
        self.commit()
    }

    fn lines(&mut self, name: &str, reader: impl BufRead) -> Result<(), CommandError> {
        for value in serde_json::Deserializer::from_reader(reader).into_iter::<Value>() {
            let value = value.map_err(|error| CommandError::input(name, &error))?;
            self.add(value)?;
        }
        Ok(())
    }

    fn array(&mut self, name: &str, reader: impl BufRead) -> Result<(), CommandError> {
        let mut failed = None;
        let mut json = serde_json::Deserializer::from_reader(reader);
        let each = |value| self.add(value).map_err(|error| failed = Some(error)).is_ok();
        let read = json.deserialize_seq(Elements(each)).and_then(|()| json.end());
        match (failed, read) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(CommandError::input(name, &error)),
            (None, Ok(())) => Ok(()),
        }
    }

    fn add(&mut self, value: Value) -> Result<(), CommandError> {
        self.read += 1;
        let number = self.read;
        let write = self.options.write(value);
        let write = write
            .map_err(|why| CommandError::input(format!("document {number} of the file"), &why))?;
        self.writes.push(write);
        if self.writes.len() >= self.options.batch.max(1) {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), CommandError> {
        let count = self.writes.len() as u64;
        if count > 0 {
            self.env.write_all(std::mem::take(&mut self.writes))?;
            self.progress.add(count);
        }
        Ok(())
    }
}

impl ImportOptions {
    fn write(&self, value: Value) -> Result<Write, String> {
        let given = self.type_name.clone();
        let Some(field) = &self.key_field else {
            let exported: Exported =
                serde_json::from_value(value).map_err(|error| error.to_string())?;
            let type_name = exported.type_name.or(given);
            let type_name = type_name.ok_or("it says no type, and there is no --type")?;
            let write = Write::put(type_name, exported.key, exported.value);
            return Ok(match exported.expires_ms {
                None => write,
                Some(expires_ms) => write.expires_in(time_until(expires_ms)),
            });
        };
        let key = match value.get(field) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err(format!("its field {field:?} is no text or number")),
        };
        Ok(Write::put(given.unwrap_or_default(), key, value))
    }
}

fn time_until(unix_ms: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_millis(unix_ms).saturating_sub(now)
}

/// The first byte that is no white space; it is left to be read.
fn first_byte(reader: &mut impl BufRead) -> std::io::Result<Option<u8>> {
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let first = bytes.get(blank).copied();
        reader.consume(blank);
        if first.is_some() {
            return Ok(first);
        }
    }
}

/// Shows the elements of an array one by one, until it is told to stop.
struct Elements<F>(F);

impl<'de, F: FnMut(Value) -> bool> Visitor<'de> for Elements<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of documents")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            if !(self.0)(element) {
                return Err(serde::de::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

//! `motet put` and `motet get`.

use std::io::Read as _;
use std::time::Duration;

use clap::Args;
use motet_store::{Clock, Error, Write};
use serde_json::{Value, json};

use super::failure::CommandError;
use super::output::{Form, Output};
use super::place::Place;

/// Which document to write, and what.
#[derive(Debug, Args)]
pub struct PutOptions {
    #[command(flatten)]
    place: Place,
    /// The document's type.
    #[arg(value_name = "TYPE")]
    type_name: String,
    /// The document's key.
    key: String,
    /// The value as JSON; without it, it is read from standard input.
    value: Option<String>,
    /// Only if there is no such document yet.
    #[arg(long, conflicts_with = "if_version")]
    create: bool,
    /// Only if the document has this version.
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,
    /// The document ends after this time, such as 10m or 24h.
    #[arg(long, value_parser = humantime::parse_duration)]
    ttl: Option<Duration>,
    #[command(flatten)]
    form: Form,
}

/// Which document to read.
#[derive(Debug, Args)]
pub struct GetOptions {
    #[command(flatten)]
    place: Place,
    /// The document's type.
    #[arg(value_name = "TYPE")]
    type_name: String,
    /// The document's key.
    key: String,
    #[command(flatten)]
    form: Form,
}

impl PutOptions {
    /// Writes the document and prints its version.
    ///
    /// # Errors
    /// What the store refuses.
    pub fn run(self) -> Result<(), CommandError> {
        let text = self.value.map_or_else(standard_input, Ok)?;
        let value: Value =
            serde_json::from_str(&text).map_err(|error| CommandError::input("value", &error))?;
        let mut write = if self.create {
            Write::create(self.type_name, self.key, value)
        } else {
            Write::put(self.type_name, self.key, value)
        };
        if let Some(version) = self.if_version {
            write = write.if_version(Clock::new(version));
        }
        if let Some(ttl) = self.ttl {
            write = write.expires_in(ttl);
        }
        let version = self.place.made()?.write(write)?.number();
        let mut output = Output::new();
        if self.form.json {
            output.json(&json!({ "version": version }))?;
        } else {
            output.line(&format!("version {version}"))?;
        }
        output.flush()
    }
}

impl GetOptions {
    /// Prints the document.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub fn run(self) -> Result<(), CommandError> {
        let Self { place, type_name, key, form } = self;
        let found = place.existing()?.get(&type_name, &key)?;
        let Some(document) = found else { return Err(Error::NotFound { type_name, key }.into()) };
        let mut output = Output::new();
        if form.json {
            output.json(&super::line::document(&document))?;
        } else {
            let text = serde_json::to_string_pretty(&document.value);
            output.line(&text.expect("a value can be written as JSON"))?;
        }
        output.flush()
    }
}

fn standard_input() -> Result<String, CommandError> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map(|_| text).map_err(|cause| CommandError::file("standard input", cause))
}

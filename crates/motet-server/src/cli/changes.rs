//! `motet log` and `motet watch`.

use std::time::Duration;

use clap::Args;
use motet_store::{Change, Clock, Error, Position};

use super::failure::CommandError;
use super::note;
use super::output::{Form, Output, json_text, shown};
use super::place::Place;

/// Which changes.
#[derive(Debug, Args)]
pub struct LogOptions {
    #[command(flatten)]
    place: Place,
    /// Only changes after this clock; without it, from the first that the log still has.
    #[arg(long, value_name = "CLOCK")]
    after: Option<u64>,
    /// Up to where the log was compacted when its first page was printed, for the pages after it.
    #[arg(long, value_name = "CLOCK", requires = "after")]
    compacted_to: Option<u64>,
    /// How many changes at most.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    form: Form,
}

/// From where on to follow the log.
#[derive(Debug, Args)]
pub struct WatchOptions {
    #[command(flatten)]
    place: Place,
    /// First the changes after this clock; without it, only what happens from now on.
    #[arg(long, value_name = "CLOCK")]
    after: Option<u64>,
    /// Only changes of this type.
    #[arg(long = "type", value_name = "TYPE")]
    type_name: Option<String>,
    /// End after so many changes; without it, never.
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
    #[command(flatten)]
    form: Form,
}

impl LogOptions {
    /// Prints the changes, and beside them what to give for the next page.
    ///
    /// # Errors
    /// `LOG_TRUNCATED` if they are no longer kept.
    pub fn run(self) -> Result<(), CommandError> {
        let (changes, compacted_to) = self.read()?;
        let mut output = Output::new();
        if self.form.json {
            for change in &changes {
                output.json(&super::line::change(change))?;
            }
        } else {
            output.table(
                ["clock", "time", "op", "type", "key", "value"],
                changes.iter().map(cells),
            )?;
        }
        output.flush()?;
        if let Some(last) = changes.last().filter(|_| changes.len() == self.limit) {
            note(&format!("next page: --after {} --compacted-to {compacted_to}", last.clock));
        }
        Ok(())
    }

    /// The changes, and up to where the log was compacted when the first page was read.
    fn read(&self) -> Result<(Vec<Change>, Clock), CommandError> {
        let log = self.place.existing()?.log();
        let mut after = Clock::new(self.after.unwrap_or_default());
        let named = Clock::new(self.compacted_to.unwrap_or_default());
        loop {
            // If it is compacted further before it is read, the next page is refused.
            let compacted_to =
                if self.compacted_to.is_some() { named } else { log.compacted_to()? };
            match log.read(Position::new(after, named), self.limit) {
                // It may be trimmed again before it is read.
                Err(Error::LogTruncated { kept_from, .. }) if self.after.is_none() => {
                    after = Clock::new(kept_from.number().saturating_sub(1));
                }
                read => return Ok((read?, compacted_to)),
            }
        }
    }
}

impl WatchOptions {
    /// Prints changes as they come.
    ///
    /// # Errors
    /// `LOG_TRUNCATED` if the next change is no longer kept.
    pub fn run(self) -> Result<(), CommandError> {
        let env = self.place.existing()?;
        let after = match self.after {
            Some(after) => Clock::new(after),
            None => env.log().head()?.clock,
        };
        let (mut tail, mut output) = (env.log().tail(after), Output::new());
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 {
            let Some(change) = tail.next_within(WAIT)? else { continue };
            if self.type_name.as_ref().is_some_and(|name| *name != change.type_name) {
                continue;
            }
            if self.form.json {
                output.json(&super::line::change(&change))?;
            } else {
                output.line(&cells(&change).join("  "))?;
            }
            output.flush()?;
            left -= 1;
        }
        Ok(())
    }
}

fn cells(change: &Change) -> [String; 6] {
    let time = std::time::UNIX_EPOCH + Duration::from_millis(change.time.unix_ms());
    [
        change.clock.to_string(),
        humantime::format_rfc3339_millis(time).to_string(),
        super::line::op(change.op).to_owned(),
        change.type_name.clone(),
        shown(&change.key),
        change.value.as_ref().map(json_text).unwrap_or_default(),
    ]
}

/// How long to wait at once for a change.
const WAIT: Duration = Duration::from_secs(30);

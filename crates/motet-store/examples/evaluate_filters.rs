//! Answers filters: reads lines of `{"filter": ..., "document": ...}`, writes for each a line that
//! is `true`, `false` or, where the filter is refused, the code and text of the error.
//!
//! ```sh
//! echo '{"filter": {"a": {"$gt": 1}}, "document": {"a": 2}}' \
//!     | cargo run -p motet-store --example evaluate_filters
//! ```

use std::io::{self, BufRead as _, BufWriter, Write as _};

use motet_store::filter::Filter;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Question {
    filter: Value,
    document: Value,
}

fn main() -> io::Result<()> {
    let mut output = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let question: Question = serde_json::from_str(&line?)?;
        match Filter::parse(&question.filter) {
            Ok(filter) => writeln!(output, "{}", filter.matches(&question.document))?,
            Err(error) => writeln!(output, "{} {error}", error.code().name())?,
        }
    }
    output.flush()
}

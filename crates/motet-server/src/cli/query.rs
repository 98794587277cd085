//! `motet query`.

use clap::Args;
use motet_store::{Env, Query};
use serde_json::{Value, json};

use super::failure::CommandError;
use super::output::{Form, Output, json_text, shown};
use super::place::Place;

/// Which documents.
#[derive(Debug, Args)]
pub struct QueryOptions {
    #[command(flatten)]
    place: Place,
    /// The documents' type.
    #[arg(value_name = "TYPE")]
    type_name: String,
    /// Only documents that match, as JSON.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    filter: String,
    /// Sort by this path; --sort=-path has great values first. May be given several times.
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    sort: Vec<String>,
    /// How many documents at most.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// The cursor that the page before this ended with.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Only this field of the documents. May be given several times.
    #[arg(long, value_name = "PATH")]
    project: Vec<String>,
    /// Print how many documents match instead.
    #[arg(long, conflicts_with = "explain")]
    count: bool,
    /// Print how the query is answered, and what it cost, instead.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    form: Form,
}

impl QueryOptions {
    /// Prints what the query gives.
    ///
    /// # Errors
    /// What is no query.
    pub fn run(self) -> Result<(), CommandError> {
        let env = self.place.existing()?;
        let query = self.query(&env)?;
        let mut output = Output::new();
        if self.count {
            self.print_count(query.count()?, &mut output)?;
        } else if self.explain {
            self.print_explanation(&query, &mut output)?;
        } else {
            self.print_page(&query, &mut output)?;
        }
        output.flush()
    }

    fn query(&self, env: &Env) -> Result<Query, CommandError> {
        let filter: Value = serde_json::from_str(&self.filter)
            .map_err(|error| CommandError::input("--filter", &error))?;
        let mut query = env.query(&self.type_name).filter(filter).limit(self.limit);
        for path in &self.sort {
            query = match path.strip_prefix('-') {
                Some(path) => query.sort_descending(path),
                None => query.sort(path),
            };
        }
        if let Some(after) = &self.after {
            query = query.after(after);
        }
        if !self.project.is_empty() {
            query = query.project(&self.project);
        }
        Ok(query)
    }

    fn print_count(&self, count: usize, output: &mut Output) -> Result<(), CommandError> {
        if self.form.json {
            return output.json(&json!({ "count": count }));
        }
        output.line(&count.to_string())
    }

    fn print_explanation(&self, query: &Query, output: &mut Output) -> Result<(), CommandError> {
        let explain = query.explain()?;
        if self.form.json {
            return output.json(&json!({
                "index": explain.index,
                "ranges": explain.ranges,
                "sorts": explain.sorts,
                "entriesExamined": explain.entries_examined,
                "documentsExamined": explain.documents_examined,
                "returned": explain.returned,
            }));
        }
        let index = explain.index.as_deref().unwrap_or("none: all documents of the type are read");
        let rows = [
            ["index".to_owned(), index.to_owned()],
            ["ranges".to_owned(), explain.ranges.to_string()],
            ["sorts".to_owned(), explain.sorts.to_string()],
            ["entries examined".to_owned(), explain.entries_examined.to_string()],
            ["documents examined".to_owned(), explain.documents_examined.to_string()],
            ["returned".to_owned(), explain.returned.to_string()],
        ];
        output.table(["what", "how"], rows)
    }

    fn print_page(&self, query: &Query, output: &mut Output) -> Result<(), CommandError> {
        let page = query.page()?;
        if self.form.json {
            for document in &page.rows {
                output.json(&super::line::document(document))?;
            }
        } else {
            let rows = page.rows.iter().map(|document| {
                [shown(&document.key), document.version.to_string(), json_text(&document.value)]
            });
            output.table(["key", "version", "value"], rows)?;
        }
        if let Some(next) = page.next {
            // Beside the documents, so that a program reads nothing but documents.
            super::note(&format!("there are more: --after {next}"));
        }
        Ok(())
    }
}

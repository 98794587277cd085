//! A reader that makes the documents from the log: from its beginning, page by page, however much
//! comes between two of them.

use std::collections::BTreeMap;

use motet_store::{Clock, Env, Error, Op, Position};
use serde_json::Value;

use super::judge::Verdict;
use super::judge::reads::compare_changes;
use super::model::Model;

/// What it has made so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pager {
    after: u64,
    compacted_to: u64,
    /// By type and key, versions and values.
    made: BTreeMap<(String, String), (u64, Option<Value>)>,
}

impl Pager {
    /// Reads one page, of a reader that begins now if there is none.
    pub(crate) fn read(own: &mut Option<Self>, env: &Env, model: &Model, limit: usize) -> Verdict {
        let mut reader = match own.take() {
            Some(reader) => reader,
            None => Self::begin(env)?,
        };
        let (after, compacted_to) = (reader.after, reader.compacted_to);
        let position = Position::new(Clock::new(after), Clock::new(compacted_to));
        let page = match env.log().read(position, limit) {
            Err(Error::LogTruncated { .. }) if !reader.misses_nothing(model) => return Ok(()),
            page => page.map_err(|error| ("tail", format!("after {position:?}: {error}")))?,
        };
        if !reader.misses_nothing(model) {
            return Err(("tail", format!("{position:?} was read on in {:?}", model.compacted)));
        }
        compare_changes(model, after, limit, &page)?;
        let is_end = page.len() < limit;
        for change in page {
            reader.after = change.clock.number();
            let (document, made) = ((change.type_name, change.key), (reader.after, change.value));
            match change.op {
                Op::Put => reader.made.insert(document, made),
                _ => reader.made.remove(&document),
            };
        }
        if is_end {
            reader.compare(model)?;
        }
        *own = Some(reader);
        Ok(())
    }

    fn begin(env: &Env) -> Result<Self, (&'static str, String)> {
        let compacted_to = env.log().compacted_to();
        let compacted_to = compacted_to.map_err(|error| ("tail", error.to_string()))?.number();
        Ok(Self { compacted_to, ..Self::default() })
    }

    /// Whether what it has not read yet is all that it does not know.
    fn misses_nothing(&self, model: &Model) -> bool {
        let same = |to: u64| self.compacted_to == to;
        model.has_all_after(self.after) || model.whole().is_some_and(|part| same(part.to))
    }

    /// At the log's end the documents are what it has made.
    fn compare(&self, model: &Model) -> Verdict {
        let documents = model.docs.all().map(|(id, doc)| {
            let name = (id.kind_name().to_owned(), id.key_name().to_owned());
            (name, (doc.version, Some(doc.body.to_json())))
        });
        let documents: BTreeMap<_, _> = documents.collect();
        if self.made == documents {
            return Ok(());
        }
        Err(("tail", format!("the log makes {:?} of {documents:?}", self.made)))
    }
}

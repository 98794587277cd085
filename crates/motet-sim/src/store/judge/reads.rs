//! What readers were given equals what the model holds at their clocks.

use motet_store::{Change, Clock, Document, Env, Error, IndexState, KeyRange};
use serde_json::{Value, json};

use super::{Verdict, holds};
use crate::store::action::{Filter, Keys, Read, Search, Sort};
use crate::store::calls::pin_name;
use crate::store::model::body::{Body, KEYS, tag_text, unique_text};
use crate::store::model::rules::TYPES;
use crate::store::model::{Doc, Entry, Id, Model, Stage};
use crate::store::transaction::Rows;

/// Reads outside any transaction.
pub(crate) fn read(env: &Env, model: &Model, now_ms: u64, read: &Read) -> Verdict {
    match read {
        Read::Get(kind, key) => {
            let id = Id { kind: *kind, key: *key };
            let found = env.get(id.kind_name(), id.key_name());
            let found = found.map_err(|error| ("durable", format!("a read failed: {error}")))?;
            let expected = model.docs.live(id, now_ms).map(AsRef::as_ref);
            compare(model, id, found.as_ref(), expected, now_ms)
        }
        Read::Range(kind, keys) => {
            let found = env.range(TYPES[usize::from(*kind)], &keys.to_store());
            let found = found.map_err(|error| ("durable", format!("a read failed: {error}")))?;
            let rows = keys.rows(&model.docs, *kind, now_ms, keys.limit);
            compare_rows(model, *kind, &found, &rows, now_ms)
        }
        Read::Query(kind, search) => query(env, model, now_ms, *kind, search),
    }
}

impl Keys {
    pub(crate) fn to_store(self) -> KeyRange {
        let range = if self.prefix { KeyRange::prefix("e/") } else { KeyRange::all() };
        let range = match self.from {
            Some(from) => range.from(KEYS[usize::from(from)]),
            None => range,
        };
        match self.limit {
            Some(limit) => range.limit(limit),
            None => range,
        }
    }
}

fn compare(
    model: &Model,
    id: Id,
    found: Option<&Document>,
    expected: Option<&Doc>,
    now_ms: u64,
) -> Verdict {
    let same = match (found, expected) {
        (Some(found), Some(doc)) => {
            found.version.number() == doc.version
                && found.expires_ms == doc.expires_ms
                && found.value == doc.body.to_json()
        }
        (found, expected) => found.is_none() && expected.is_none(),
    };
    let expired = model.docs.get(id).is_some_and(|doc| !doc.is_live(now_ms));
    let check = if expired { "expiry" } else { "durable" };
    holds(check, same, || format!("{} is {found:?} instead of {expected:?}", id.text()))
}

fn compare_rows(
    model: &Model,
    kind: u8,
    found: &[Document],
    expected: &[(Id, u64)],
    now_ms: u64,
) -> Verdict {
    for (document, (id, _)) in found.iter().zip(expected) {
        if document.key == id.key_name() {
            compare(model, *id, Some(document), model.docs.get(*id).map(AsRef::as_ref), now_ms)?;
        }
    }
    let keys: Vec<_> = found.iter().map(|document| document.key.as_str()).collect();
    let wanted: Vec<_> = expected.iter().map(|(id, _)| id.key_name()).collect();
    let expired = keys.iter().any(|key| {
        let mut docs = model.docs.of_kind(kind);
        docs.any(|(id, doc)| id.key_name() == *key && !doc.is_live(now_ms))
    });
    let check = if expired { "expiry" } else { "index" };
    holds(check, keys == wanted, || {
        format!("documents {keys:?} of {} instead of {wanted:?}", TYPES[usize::from(kind)])
    })
}

fn query(env: &Env, model: &Model, now_ms: u64, kind: u8, search: &Search) -> Verdict {
    let mut query = env.query(TYPES[usize::from(kind)]).filter(search.filter.to_json());
    query = match search.sort {
        Sort::None => query,
        Sort::N => query.sort("n"),
        Sort::NDescending => query.sort_descending("n"),
        Sort::NThenUDescending => query.sort("n").sort_descending("u"),
    };
    let failed = |error: Error| ("index", format!("a query failed: {error}"));
    let all = search.rows(model, kind, now_ms);
    let count = query.count().map_err(failed)?;
    let expired = search.expired(model, kind, now_ms);
    holds(if expired { "expiry" } else { "index" }, count == all.len(), || {
        format!("{search:?} counts {count} instead of {}", all.len())
    })?;
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    let limit = search.limit.unwrap_or(usize::MAX);
    loop {
        let page = if search.limit.is_some() { query.clone().limit(limit) } else { query.clone() };
        let page = match after.take() {
            Some(cursor) => page.after(cursor).page(),
            None => page.page(),
        };
        let page = page.map_err(failed)?;
        holds("index", page.rows.len() <= limit, || format!("{search:?} gives a longer page"))?;
        found.extend(page.rows);
        match page.next {
            Some(next) if found.len() <= all.len() => after = Some(next),
            _ => break,
        }
    }
    if search.sort == Sort::None {
        found.sort_by(|one, other| one.key.cmp(&other.key));
    }
    let outcome = compare_rows(model, kind, &found, &all, now_ms);
    outcome.map_err(|(check, why)| (check, format!("{search:?}: {why}")))
}

impl Filter {
    fn to_json(self) -> Value {
        match self {
            Self::All => json!({}),
            Self::N(n) => json!({"n": n}),
            Self::NFrom(n) => json!({"n": {"$gte": n}}),
            Self::NBetween(from, to) => json!({"n": {"$gte": from, "$lte": to}}),
            Self::Tag(tag) => json!({"tags": tag_text(tag)}),
            Self::U(u) => json!({"u": unique_text(u)}),
            Self::OpenN(n) => json!({"open": true, "n": n}),
            Self::OpenU(u) => json!({"open": true, "u": unique_text(u)}),
            Self::TagN(tag, n) => json!({"tags": tag_text(tag), "n": n}),
        }
    }

    fn holds(self, body: &Body) -> bool {
        let has = |tag: u8| body.tags.as_ref().is_some_and(|tags| tags.contains(&tag));
        match self {
            Self::All => true,
            Self::N(n) => body.n == Some(n),
            Self::NFrom(n) => body.n.is_some_and(|own| own >= n),
            Self::NBetween(from, to) => body.n.is_some_and(|own| (from..=to).contains(&own)),
            Self::Tag(tag) => has(tag),
            Self::U(u) => body.u == Some(u),
            Self::OpenN(n) => body.open == Some(true) && body.n == Some(n),
            Self::OpenU(u) => body.open == Some(true) && body.u == Some(u),
            Self::TagN(tag, n) => has(tag) && body.n == Some(n),
        }
    }
}

impl Search {
    /// Everything that matches, in the query's order.
    fn rows(&self, model: &Model, kind: u8, now_ms: u64) -> Rows {
        let docs = model.docs.of_kind(kind);
        let mut rows: Vec<_> =
            docs.filter(|(_, doc)| doc.is_live(now_ms) && self.filter.holds(&doc.body)).collect();
        let u = |doc: &Doc| doc.body.u.map(unique_text);
        match self.sort {
            Sort::None => {}
            Sort::N => rows.sort_by_key(|(_, doc)| doc.body.n),
            Sort::NDescending => {
                rows.reverse();
                rows.sort_by_key(|(_, doc)| core::cmp::Reverse(doc.body.n));
            }
            Sort::NThenUDescending => {
                rows.reverse();
                rows.sort_by_key(|(_, doc)| (doc.body.n, core::cmp::Reverse(u(doc))));
            }
        }
        rows.into_iter().map(|(id, doc)| (id, doc.version)).collect()
    }

    /// Whether documents match whose time has come.
    fn expired(&self, model: &Model, kind: u8, now_ms: u64) -> bool {
        let mut docs = model.docs.of_kind(kind);
        docs.any(|(_, doc)| !doc.is_live(now_ms) && self.filter.holds(&doc.body))
    }
}

/// Reads the log from so far behind its end.
pub(crate) fn read_log(env: &Env, model: &Model, back: u64) -> Verdict {
    let after = model.head.saturating_sub(back);
    let (found, limit) = (env.log().read(Clock::new(after), 25), 25);
    if after < model.head && !model.has_all_after(after) {
        let truncated = matches!(&found, Err(Error::LogTruncated { kept_from, .. })
            if kept_from.number() == model.kept_from());
        return holds("tail", truncated, || format!("a log that is gone gave {found:?}"));
    }
    let found = found.map_err(|error| ("tail", format!("the log cannot be read: {error}")))?;
    compare_changes(model, after, limit, &found)
}

/// A page of the log is what lies there.
pub(crate) fn compare_changes(
    model: &Model,
    after: u64,
    limit: usize,
    found: &[Change],
) -> Verdict {
    let expected: Vec<_> = model.entries_after(after).take(limit).collect();
    holds("clock", found.len() == expected.len(), || {
        format!("{} changes after {after}, expected were {}", found.len(), expected.len())
    })?;
    for (entry, change) in expected.into_iter().zip(found) {
        holds("clock", is_same(entry, change), || {
            format!("the change {} is read as {change:?}", entry.clock)
        })?;
    }
    Ok(())
}

pub(crate) fn is_same(entry: &Entry, change: &Change) -> bool {
    let value = entry.json.as_deref().and_then(|json| serde_json::from_slice(json).ok());
    entry.clock == change.clock.number()
        && entry.id.kind_name() == change.type_name
        && entry.id.key_name() == change.key
        && entry.op == change.op
        && entry.previous == change.previous.map_or(0, Clock::number)
        && entry.time == change.time.number()
        && entry.origin == change.origin
        && entry.transaction == change.transaction.number()
        && value == change.value
}

/// What the catalogue says of a type.
pub(crate) fn describe(env: &Env, model: &Model, kind: u8) -> Verdict {
    let name = TYPES[usize::from(kind)];
    let failed = |error: Error| ("catalog", format!("{name} cannot be described: {error}"));
    let known = model.kind(kind);
    let spec = env.definition(name).map_err(failed)?;
    holds("catalog", spec == known.spec.to_store(), || format!("{name} is described as {spec:?}"))?;
    let found = env.indexes(name).map_err(failed)?;
    let found = found.into_iter().map(|index| (index.name, index.spec, stage(&index.state)));
    let found: Vec<_> = found.collect();
    let own = known.indexes.iter().filter(|index| !index.name.starts_with('~'));
    let own = own.map(|index| (index.name.clone(), index.shape.to_store(), index.stage));
    let mut own: Vec<_> = own.collect();
    own.sort_by(|one, other| one.0.cmp(&other.0));
    holds("catalog", found == own, || format!("indexes {found:?} instead of {own:?}"))?;
    let types = env.types().map_err(failed)?;
    let mut named = TYPES.iter().zip(&model.kinds).filter(|(_, kind)| kind.number.is_some());
    let same = types.iter().all(|found| named.next().is_some_and(|(name, _)| name == found));
    holds("catalog", same && named.next().is_none(), || format!("the types are {types:?}"))?;
    let found = env.violations(name).map_err(failed)?;
    let expected = Id::of_kind(kind).filter(|id| model.violations & id.bit() != 0);
    let expected: Vec<_> = expected.map(Id::key_name).collect();
    let found: Vec<_> = found.iter().map(|(key, _)| key.as_str()).collect();
    holds("catalog", found == expected, || {
        format!("{found:?} of {name} break its schema instead of {expected:?}")
    })?;
    let retention = env.retention().map_err(failed)?;
    holds("catalog", retention == model.kept.to_store(), || {
        format!("the log keeps {retention:?}")
    })?;
    let compacted_to = env.log().compacted_to().map_err(failed)?.number();
    holds("catalog", compacted_to == model.whole().map_or(0, |part| part.to), || {
        format!("the log is compacted up to {compacted_to}, {:?}", model.compacted)
    })?;
    let pins = env.log().pins().map_err(failed)?;
    let own = model.pins.iter().map(|(slot, after)| (pin_name(*slot), Clock::new(*after)));
    holds("catalog", pins.iter().cloned().eq(own), || format!("the log is pinned at {pins:?}"))
}

const fn stage(state: &IndexState) -> Stage {
    match state {
        IndexState::Building => Stage::Building,
        IndexState::Ready => Stage::Ready,
        _ => Stage::Failed,
    }
}

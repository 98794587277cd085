//! What a commit changed in the catalogue: only what was asked for, and with a higher epoch.

use serde_json::Value;

use super::raw::{self, Raw};
use super::{Verdict, holds};
use crate::store::calls::{Asked, MadeCall, index_name};
use crate::store::model::rules::{Shape, TYPES};
use crate::store::model::{Index, Model, Stage};

pub(super) fn apply(model: &mut Model, call: &MadeCall, raw: &Raw) -> Verdict {
    if raw.catalog.is_empty() && matches!(call.asked, Asked::Writes(..) | Asked::Maintain) {
        return Ok(());
    }
    let mut moved = false;
    for (name, value) in &raw.catalog {
        if let Some(name) = name.strip_prefix("type/") {
            moved = true;
            set_kind(model, name, value.as_deref())?;
        }
    }
    for (path, value) in &raw.catalog {
        let Some((kind, name)) = path.strip_prefix("index/").and_then(|path| path.split_once('/'))
        else {
            continue;
        };
        moved = true;
        set_index(model, call, kind, name, value.as_deref())?;
    }
    let epoch = raw.catalog.iter().find(|(name, _)| name == "epoch");
    let epoch = epoch.and_then(|(_, value)| value.clone()?.try_into().ok().map(u64::from_be_bytes));
    holds("catalog", !moved || epoch.is_some_and(|epoch| epoch > model.epoch), || {
        format!("the catalogue changed at epoch {} and has {epoch:?} now", model.epoch)
    })?;
    model.epoch = epoch.unwrap_or(model.epoch);
    check_asked(model, call)
}

fn set_kind(model: &mut Model, name: &str, record: Option<&[u8]>) -> Verdict {
    let Some(record) = record else {
        return Err(("catalog", format!("the type {name} is no more")));
    };
    let number = number(record, "id")?;
    let taken = model.kinds.iter().filter_map(|kind| kind.number).chain(model.system);
    let taken = taken.filter(|other| *other == number).count();
    let slot = match TYPES.iter().position(|kind| *kind == name) {
        Some(kind) => &mut model.kinds[kind].number,
        None => &mut model.system,
    };
    let kept = slot.is_none_or(|known| known == number);
    holds("catalog", kept && taken == usize::from(slot.is_some()), || {
        format!("the type {name} has number {number}, it was {slot:?}")
    })?;
    *slot = Some(number);
    Ok(())
}

fn set_index(
    model: &mut Model,
    call: &MadeCall,
    of: &str,
    name: &str,
    record: Option<&[u8]>,
) -> Verdict {
    let Some(kind) = TYPES.iter().position(|kind| *kind == of) else {
        return Err(("catalog", format!("{of} has an index {name}")));
    };
    model.indexes_moved = true;
    let indexes = &mut model.kinds[kind].indexes;
    let place = indexes.iter().position(|index| index.name == name);
    let Some(record) = record else {
        if let Some(place) = place {
            model.dropped.push(indexes.remove(place).number);
        }
        return Ok(());
    };
    let number = number(record, "id")?;
    let stage = stage(record)?;
    if let Some(place) = place {
        let index = &mut indexes[place];
        let from = (index.stage, index.number);
        let maintained = matches!(call.asked, Asked::Maintain);
        let allowed = from.1 == number
            && (from.0 == stage || (maintained && from.0 == Stage::Building))
            && (stage != Stage::Failed || index.shape.is_unique());
        index.stage = stage;
        return holds("catalog", allowed, || {
            format!("the index {name} of {of} went from {from:?} to {stage:?} {number}")
        });
    }
    let shape = match (name, &call.asked) {
        ("~reference.to", _) => Shape::To,
        ("~reference.refs", _) => Shape::Refs,
        (_, Asked::CreateIndex(_, _, shape)) => *shape,
        _ => return Err(("catalog", format!("nobody made the index {name} of {of}"))),
    };
    let used = model.dropped.contains(&number);
    // Where there is nothing to add, it is ready at once.
    let empty = model.docs.of_kind(kind as u8).next().is_none();
    let built = if empty { stage != Stage::Failed } else { stage == Stage::Building };
    let indexes = &mut model.kinds[kind].indexes;
    indexes.push(Index { name: name.to_owned(), shape, stage, number });
    let others = model.kinds.iter().flat_map(|kind| &kind.indexes);
    let others = others.filter(|index| index.number == number).count();
    holds("catalog", !used && others == 1 && built, || {
        format!("the new index {name} of {of} has the number {number} and is {stage:?}")
    })
}

fn number(record: &[u8], field: &str) -> Result<u32, (&'static str, String)> {
    let record = raw::json(record).map_err(|why| ("catalog", why))?;
    let number = record[field].as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| ("catalog", format!("{record} has no {field}")))
}

fn stage(record: &[u8]) -> Result<Stage, (&'static str, String)> {
    let record = raw::json(record).map_err(|why| ("catalog", why))?;
    match &record["state"] {
        Value::String(state) if state == "building" => Ok(Stage::Building),
        Value::String(state) if state == "ready" => Ok(Stage::Ready),
        Value::Object(_) => Ok(Stage::Failed),
        other => Err(("catalog", format!("an index is {other}"))),
    }
}

/// What was asked for is so now.
fn check_asked(model: &mut Model, call: &MadeCall) -> Verdict {
    match &call.asked {
        Asked::Define(kind, spec) => {
            model.define(*kind, spec);
            let known = model.kind(*kind);
            let fields = spec.references.iter().map(|reference| reference.field.index_name());
            let mut fields: Vec<_> = fields.collect();
            let own = known.indexes.iter().map(|index| index.name.as_str());
            let mut own: Vec<_> = own.filter(|name| name.starts_with('~')).collect();
            fields.sort_unstable();
            own.sort_unstable();
            holds("catalog", known.number.is_some() && own == fields, || {
                format!("references by {fields:?} have the indexes {own:?}")
            })
        }
        Asked::CreateIndex(kind, slot, shape) => {
            let name = index_name(*slot);
            let mut indexes = model.kind(*kind).indexes.iter();
            let found = indexes.any(|index| index.name == name && index.shape == *shape);
            holds("catalog", found, || format!("the index {name} was not made"))
        }
        Asked::DropIndex(kind, slot) => {
            let name = index_name(*slot);
            let found = model.kind(*kind).indexes.iter().any(|index| index.name == name);
            holds("catalog", !found, || format!("the index {name} was not dropped"))
        }
        Asked::Writes(..) | Asked::SetRetention(_) | Asked::Pin(..) | Asked::Maintain => Ok(()),
    }
}

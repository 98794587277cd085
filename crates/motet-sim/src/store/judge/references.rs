//! References that were made under a rule lead somewhere as long as the rule holds.

use motet_store::OnDelete;

use super::{Verdict, holds};
use crate::store::model::{Id, Model};

/// Looks at every document that was written under its references' present rules.
pub(crate) fn check(model: &Model) -> Verdict {
    let now_ms = model.time >> 16;
    for (id, doc) in model.docs.all().filter(|(_, doc)| doc.is_live(now_ms)) {
        for reference in &model.kind(id.kind).spec.references {
            let bound = model.bound[reference.field as usize] & id.bit() != 0;
            if !bound || reference.on_delete == OnDelete::NoAction {
                continue;
            }
            for key in reference.field.targets(&doc.body) {
                let target = Id { kind: reference.to, key };
                holds("fk", model.docs.get(target).is_some(), || {
                    format!("{} refers to what is no more: {reference:?} {key}", id.text())
                })?;
            }
        }
    }
    Ok(())
}

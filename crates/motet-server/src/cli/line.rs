//! Documents and changes as the JSON lines that commands print and read.

use motet_store::{Change, Document, Op};
use serde_json::{Map, Value, json};

/// A document, with what belongs to it.
pub(super) fn document(document: &Document) -> Value {
    let mut line = Map::new();
    line.insert("key".into(), json!(document.key));
    line.insert("version".into(), json!(document.version));
    line.insert("value".into(), document.value.clone());
    if let Some(expires_ms) = document.expires_ms {
        line.insert("expiresMs".into(), json!(expires_ms));
    }
    Value::Object(line)
}

/// A change of the log.
pub(super) fn change(change: &Change) -> Value {
    let mut line = Map::new();
    line.insert("clock".into(), json!(change.clock));
    line.insert("type".into(), json!(change.type_name));
    line.insert("key".into(), json!(change.key));
    line.insert("op".into(), json!(op(change.op)));
    if let Some(previous) = change.previous {
        line.insert("previous".into(), json!(previous));
    }
    line.insert("timeMs".into(), json!(change.time.unix_ms()));
    line.insert("origin".into(), json!(format!("{:016x}", change.origin)));
    line.insert("transaction".into(), json!(change.transaction));
    if let Some(value) = &change.value {
        line.insert("value".into(), value.clone());
    }
    Value::Object(line)
}

/// The name of what a change did.
pub(super) const fn op(op: Op) -> &'static str {
    match op {
        Op::Remove => "remove",
        Op::Expire => "expire",
        _ => "put",
    }
}

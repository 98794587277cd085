//! Schemas: what does not fit is refused, or recorded.

use serde_json::{Value, json};

use super::session::Session;
use crate::Error;
use crate::catalog::VIOLATIONS_TYPE;
use crate::document::{Record, Write};
use crate::engine::Table;
use crate::keys;

impl Session<'_> {
    /// Refuses a value that does not fit the type's schema, or records it.
    pub(super) fn check_schema(&mut self, write: &Write, value: &Value) -> Result<(), Error> {
        let Some(schema) = self.catalog.schema(&write.type_name) else {
            self.clear_violation(write);
            return Ok(());
        };
        match schema.violations(value) {
            None => self.clear_violation(write),
            Some(why) if schema.enforced => {
                return Err(Error::SchemaViolation {
                    type_name: write.type_name.clone(),
                    key: write.key.clone(),
                    why,
                });
            }
            Some(why) => self.record_violation(write, &why),
        }
        Ok(())
    }

    /// Records are the store's own documents: they are in no log.
    fn record_violation(&mut self, write: &Write, why: &str) {
        let type_id = self.type_id(VIOLATIONS_TYPE);
        let json = json!({"type": write.type_name, "key": write.key, "why": why}).to_string();
        let version = self.before.plus(self.changes);
        let record = Record { version, expires_ms: None, json: json.as_bytes() };
        let key = keys::document(type_id, &violation_key(write));
        self.overlay.put(Table::Documents, key, record.to_bytes());
    }

    pub(super) fn clear_violation(&mut self, write: &Write) {
        let recorded = self.catalog.has_type(VIOLATIONS_TYPE);
        if recorded {
            let type_id = self.type_id(VIOLATIONS_TYPE);
            self.overlay.remove(Table::Documents, keys::document(type_id, &violation_key(write)));
        }
    }
}

fn violation_key(write: &Write) -> String {
    format!("{}/{}", write.type_name, write.key)
}

//! Writes of all kinds, chosen at random; each value carries the name of its attempt.

use std::time::Duration;

use motet_store::{Patch, Write};
use serde_json::{Value, json};

use super::recorder::{How, Planned};
use super::workload::Session;

impl Session {
    pub(crate) fn planned(&mut self, by: &str) -> Planned {
        let n = self.dice.roll(100);
        match self.dice.roll(12) {
            0..4 => {
                let value = json!({"by": by, "n": n, "group": self.dice.roll(GROUPS)});
                let how =
                    [How::Put, How::Put, How::Create, How::Update][self.dice.roll(4) as usize];
                Planned::Put { of: "Item".into(), key: self.item(), value, ttl_ms: None, how }
            }
            4..7 => {
                let value =
                    json!({"by": by, "n": n, "name": format!("n{}", self.dice.roll(NAMES))});
                Planned::Put {
                    of: "User".into(),
                    key: self.user(),
                    value,
                    ttl_ms: None,
                    how: How::Put,
                }
            }
            7 => {
                let (value, key) = (json!({"by": by, "n": n}), self.lease());
                let ttl_ms = Some(20 + self.dice.roll(800));
                let how = if self.dice.once_in(3) { How::Create } else { How::Put };
                Planned::Put { of: "Lease".into(), key, value, ttl_ms, how }
            }
            8 => Planned::Add { of: "Lease".into(), key: self.lease(), n: 1 },
            9 => Planned::Add { of: "Item".into(), key: self.item(), n: 1 },
            10 => Planned::Remove { of: "Item".into(), key: self.item() },
            _ => Planned::Remove { of: "User".into(), key: self.user() },
        }
    }

    pub(crate) fn item(&mut self) -> String {
        format!("i-{}-{}", self.dice.roll(4), self.dice.roll(10))
    }

    pub(crate) fn user(&mut self) -> String {
        format!("u-{}-{}", self.dice.roll(2), self.dice.roll(10))
    }

    pub(crate) fn lease(&mut self) -> String {
        format!("l-{}", self.dice.roll(12))
    }
}

/// The write that is asked of the store.
pub(crate) fn write_of(planned: &Planned, by: &str) -> Write {
    match planned.clone() {
        Planned::Put { of, key, value, ttl_ms, how } => {
            let write = match how {
                How::Put => Write::put(of, key, value),
                How::Create => Write::create(of, key, value),
                How::Update => Write::update(of, key, value),
            };
            match ttl_ms {
                Some(ttl_ms) => write.expires_in(Duration::from_millis(ttl_ms)),
                None => write,
            }
        }
        Planned::Add { of, key, n } => Write::patch(of, key, patch(by, n)),
        Planned::Remove { of, key } => Write::remove(of, key),
    }
}

pub(crate) fn patch(by: &str, n: i64) -> Patch {
    Patch::new().inc("n", json!(n)).unwrap().set("by", json!(by)).unwrap()
}

/// A value after [`Planned::Add`].
pub(crate) fn added(mut value: Value, by: &str, n: i64) -> Value {
    value["n"] = json!(value["n"].as_i64().unwrap_or(0) + n);
    value["by"] = json!(by);
    value
}

pub(crate) const GROUPS: u64 = 4;
/// Fewer than there are users, so that many are refused.
pub(crate) const NAMES: u64 = 14;

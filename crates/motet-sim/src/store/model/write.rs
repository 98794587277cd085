//! Writes as the model has them.

use std::time::Duration;

use motet_store::{Clock, Write};

use super::Id;
use super::body::{Body, Part};

#[derive(Clone, Debug)]
pub(crate) struct ModelWrite {
    pub(crate) id: Id,
    pub(crate) kind: WriteKind,
    pub(crate) if_version: Option<u64>,
    pub(crate) expiry: Expiry,
}

#[derive(Clone, Debug)]
pub(crate) enum WriteKind {
    Put(Body),
    Create(Body),
    Update(Body),
    Patch(Part),
    Remove,
}

/// When the written document ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    Unsaid,
    Never,
    AfterMs(u64),
}

impl ModelWrite {
    pub(crate) const fn plain(id: Id, kind: WriteKind) -> Self {
        Self { id, kind, if_version: None, expiry: Expiry::Unsaid }
    }

    pub(crate) fn to_store(&self) -> Write {
        let (name, key) = (self.id.kind_name(), self.id.key_name());
        let write = match &self.kind {
            WriteKind::Put(body) => Write::put(name, key, body.to_json()),
            WriteKind::Create(body) => Write::create(name, key, body.to_json()),
            WriteKind::Update(body) => Write::update(name, key, body.to_json()),
            WriteKind::Patch(part) => Write::patch(name, key, part.to_patch()),
            WriteKind::Remove => Write::remove(name, key),
        };
        let write = match self.if_version {
            Some(version) => write.if_version(Clock::new(version)),
            None => write,
        };
        match self.expiry {
            Expiry::Unsaid => write,
            Expiry::Never => write.never_expires(),
            Expiry::AfterMs(ms) => write.expires_in(Duration::from_millis(ms)),
        }
    }
}

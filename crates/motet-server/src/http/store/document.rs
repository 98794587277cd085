//! Documents by key.

use std::time::Duration;

use axum::Json;
use motet_store::{Patch, Write};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{Tagged, Types, Version, Versioned};
use super::call::{Call, Reads, Writes};
use super::failure::Failure;
use super::idempotency::{Once, OnceBody};
use super::params::{DocumentName, Parameters};
use super::precondition::Precondition;

/// `?ttlMs=` of a write.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Lifetime {
    ttl_ms: Option<u64>,
}

/// No parameters at all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

pub(super) async fn types(
    call: Call<Reads>,
    _: Parameters<Nothing>,
) -> Result<Json<Types>, Failure> {
    let types = call.read(|env| Ok(env.types()?)).await?;
    Ok(Json(Types { types }))
}

pub(super) async fn read(
    call: Call<Reads>,
    name: DocumentName,
    _: Parameters<Nothing>,
) -> Result<Tagged<Versioned>, Failure> {
    call.read(move |env| {
        let DocumentName { type_name, key } = name;
        let Some(document) = env.get_raw(&type_name, &key)? else {
            return Err(Failure::not_found(&type_name, &key));
        };
        let version = document.version;
        Ok(Tagged { version, answer: Versioned::new(key, document)? })
    })
    .await
}

pub(super) async fn put(
    call: Call<Writes>,
    name: DocumentName,
    precondition: Precondition,
    Parameters(lifetime): Parameters<Lifetime>,
    OnceBody { once, value }: OnceBody<Value>,
) -> Result<Tagged<Version>, Failure> {
    let DocumentName { type_name, key } = name;
    let write = match precondition {
        Precondition::None => Write::put(type_name, key, value),
        Precondition::Absent => Write::create(type_name, key, value),
        Precondition::Present => Write::update(type_name, key, value),
        Precondition::Version(version) => Write::put(type_name, key, value).if_version(version),
    };
    commit(call, once, lifetime.limit(write)?, precondition).await
}

pub(super) async fn patch(
    call: Call<Writes>,
    name: DocumentName,
    precondition: Precondition,
    Parameters(lifetime): Parameters<Lifetime>,
    OnceBody { once, value: patch }: OnceBody<Value>,
) -> Result<Tagged<Version>, Failure> {
    let write = Write::patch(name.type_name, name.key, Patch::parse(&patch)?);
    commit(call, once, lifetime.limit(on_existing(write, precondition)?)?, precondition).await
}

pub(super) async fn remove(
    call: Call<Writes>,
    name: DocumentName,
    precondition: Precondition,
    once: Once,
    _: Parameters<Nothing>,
) -> Result<Tagged<Version>, Failure> {
    let write = Write::remove(name.type_name, name.key);
    commit(call, once, on_existing(write, precondition)?, precondition).await
}

async fn commit(
    call: Call<Writes>,
    once: Once,
    write: Write,
    precondition: Precondition,
) -> Result<Tagged<Version>, Failure> {
    let versions = call.write(once, vec![write]).await;
    let version = versions.map_err(|failure| precondition.explain(failure))?[0];
    Ok(Tagged { version, answer: Version { version: version.number() } })
}

/// A write that a document has to be there for anyway.
fn on_existing(write: Write, precondition: Precondition) -> Result<Write, Failure> {
    match precondition {
        Precondition::None | Precondition::Present => Ok(write),
        Precondition::Version(version) => Ok(write.if_version(version)),
        Precondition::Absent => {
            Err(Failure::invalid("If-None-Match", "this write needs a document that is there"))
        }
    }
}

impl Lifetime {
    fn limit(self, write: Write) -> Result<Write, Failure> {
        limit(write, self.ttl_ms)
    }
}

/// The write, for a document that ends after so many milliseconds.
pub(super) fn limit(write: Write, ttl_ms: Option<u64>) -> Result<Write, Failure> {
    match ttl_ms {
        None => Ok(write),
        Some(ttl_ms) if (1..=TTL_MS_MAX).contains(&ttl_ms) => {
            Ok(write.expires_in(Duration::from_millis(ttl_ms)))
        }
        Some(_) => Err(Failure::invalid("ttlMs", format!("expected 1 to {TTL_MS_MAX}"))),
    }
}

/// A thousand years: the time of expiry still is a number that JavaScript holds.
pub(super) const TTL_MS_MAX: u64 = 31_556_952_000_000;

//! Pins of the log: positions of readers that come back later.

use axum::Json;
use motet_store::Clock;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::{JsonBody, Object};
use super::call::{Administers, Call, Reads};
use super::document::Nothing;
use super::failure::Failure;
use super::index::Done;
use super::params::{Parameters, PinName};

/// All pins.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pins {
    pins: Vec<Pin>,
}

/// A reader that comes back later, and where to.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Pin {
    name: String,
    /// The clock after which it keeps the log.
    after: u64,
}

/// Where a reader will go on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Position {
    /// The clock of the last change that the reader has; 0 for none.
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    after: u64,
}

pub(super) async fn list(call: Call<Reads>, _: Parameters<Nothing>) -> Result<Json<Pins>, Failure> {
    let pins = call.read(|env| Ok(env.log().pins()?)).await?;
    let pins = pins.into_iter().map(|(name, after)| Pin { name, after: after.number() });
    Ok(Json(Pins { pins: pins.collect() }))
}

pub(super) async fn pin(
    call: Call<Administers>,
    PinName(name): PinName,
    _: Parameters<Nothing>,
    JsonBody(Object(position)): JsonBody<Object<Position>>,
) -> Result<Json<Done>, Failure> {
    call.with_existing(move |_, env| Ok(env.log().pin(&name, Clock::new(position.after))?)).await?;
    Ok(Json(Done {}))
}

pub(super) async fn unpin(
    call: Call<Administers>,
    PinName(name): PinName,
    _: Parameters<Nothing>,
) -> Result<Json<Done>, Failure> {
    call.with_existing(move |_, env| Ok(env.log().unpin(&name)?)).await?;
    Ok(Json(Done {}))
}

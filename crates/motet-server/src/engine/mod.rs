//! The hub at work: one task that owns it, everybody else sends to it.
//!
//! A single owner needs no lock and keeps every order the hub decides. What it wants delivered is
//! encoded once per encoding and queued with the connections as shared bytes; the connections'
//! own tasks, on all threads, do the writing.

mod chunk;
mod delivery;
mod handle;
mod held;
mod sessions;
mod task;
mod unfit;

#[cfg(test)]
mod tests;

pub use handle::{EngineGone, EngineStats, HubHandle};
pub use task::{Engine, spawn};

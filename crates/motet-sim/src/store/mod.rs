//! The simulator of the store: several processes on one engine, judged against a model.
//!
//! Everything of the store that several processes must agree on goes through views and groups of
//! deciders. A seed decides who writes what and when, whose decider shares a group with whose, which
//! groups fail or are asked twice, which process ends before or after its commit, whose clock is
//! wrong and which signals get lost. The model holds what the environment must hold, by the words
//! of its specification and without a line of the store's own code.

mod action;
mod calls;
mod engine;
mod fault;
mod judge;
mod model;
mod pager;
pub mod plants;
mod process;
pub mod run;
mod schedule;
mod tail;
mod transaction;
mod world;

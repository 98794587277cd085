//! The seeded simulators: the real cores of the bus and the real hub in a virtual browser, and
//! processes of the [`store`] on one engine.
//!
//! A seed decides everything: the tabs and their hosts, the topics, the steps, every delay. The
//! media have the semantics of real browsers (channels, ports, Web Locks, freeze, the
//! back/forward cache), every context has its own clock, and whatever goes wrong in the field
//! goes wrong here. The checks judge from outside: see [`bus`].

#![forbid(unsafe_code)]

pub mod bus;
pub mod coverage;
mod driver;
pub mod faults;
mod invariants;
mod media;
pub mod plants;
pub mod run;
mod schedule;
mod server;
mod setup;
pub mod shrink;
mod stage;
pub mod store;
mod world;

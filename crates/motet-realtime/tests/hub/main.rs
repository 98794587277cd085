//! Sessions against a real hub with the memory broker, in simulated time.

mod api;
mod connecting;
mod expiry;
mod publishing;
mod reading;
mod recovery;
mod slow_broker;
mod subscribing;
mod wildcards;
mod world;

//! The Centrifuge protocol v2: messages, codecs, the client's and the server's session, the hub.
//!
//! Everything here is sans-IO: a session is driven by `handle(now, input)`, `poll_output()` and
//! `next_timeout()`, the socket belongs to a driver. Sessions speak the typed messages of
//! [`message`]; the encodings are a layer of their own.

#![forbid(unsafe_code)]

pub mod broker;
pub mod client;
pub mod codec;
pub mod hub;
pub mod message;
mod pattern;
mod payload;
pub mod server;

pub use payload::Payload;

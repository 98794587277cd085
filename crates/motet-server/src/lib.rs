//! The `motet` server: WebSocket and HTTP around the real-time hub.
//!
//! [`serve::start`] starts one from a [`config::Config`]. The hub, sans-IO, runs in one task
//! ([`engine`]); every connection has a lean task of its own ([`connection`]) that decodes what
//! comes and writes what the hub has queued for it; [`http`] is everything that is no WebSocket.

#![forbid(unsafe_code)]

pub mod auth;
pub mod cli;
pub mod config;
pub mod connection;
pub mod engine;
pub mod error;
pub mod http;
pub mod listen;
pub mod metrics;
pub mod publication_log;
pub mod serve;
pub mod tls;

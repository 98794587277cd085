//! The real binary: started, connected to, broken into, stopped.

mod answers;
mod api;
mod bad_input;
mod command_line;
mod connections;
mod process;
mod store;
mod tls;
mod tokens;
mod websocket;

//! The protocol as JSON, parsed and written by the browser: payloads become JavaScript values and
//! never WebAssembly memory.

mod command;
mod reply;
mod wire;

pub(super) use command::encode_command;
pub(super) use reply::for_each_reply;

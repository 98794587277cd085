//! The document store over HTTP.

mod commands;
mod definitions;
mod documents;
mod faults;
mod http;
mod idempotency;
mod indexes;
mod limits;
mod log;
mod queries;
mod safety;
mod tokens;
mod transactions;

use std::process::Command;

use serde_json::Value;

use crate::process::{BINARY, Server};

/// A store without tokens, in the server's own folder.
const LOCAL: &str = "[store]\npath = \"data\"\nbackup_path = \"backups\"\n";

fn start() -> Server {
    Server::start(LOCAL)
}

/// The same, with more keys of its section.
fn start_with(keys: &str) -> Server {
    Server::start(&format!("{LOCAL}{keys}"))
}

/// The error's code in an answer.
fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

/// A server that is to end by itself; what it says then.
fn refusal(arguments: &[&str]) -> String {
    let output = Command::new(BINARY).args(arguments).output().expect("the binary runs");
    assert!(!output.status.success(), "{arguments:?} must fail");
    String::from_utf8(output.stderr).expect("text")
}

//! The commands that work on a store's directory.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use motet_store::engine::lmdb::{Lmdb, Options};
use motet_store::engine::{Answer, Decide, Decision, Engine, Table, Transaction, Writes};
use motet_store::{Clock, Error, Retention, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::http::{get, put};
use crate::process::{BINARY, Server};

struct Shell {
    folder: TempDir,
}

impl Shell {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).env("MOTET_DATA", "data").current_dir(self.folder.path());
        command
    }

    fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut stdin = child.stdin.take().expect("piped");
        // A command that has refused its arguments reads nothing.
        stdin.write_all(input.as_bytes()).ok();
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    /// What a command prints that succeeds.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run_with(arguments, "");
        let (text, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {text} {errors}");
        text
    }

    /// The code with which a command ends and what it says, where it fails.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run_with(arguments, "");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty() || arguments[0] == "check", "{arguments:?}");
        text(&output.stderr)
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.folder.path().join(name), content).expect("written");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn documents_are_put_and_got_and_errors_say_what_to_do() {
    let shell = Shell::new();
    assert_eq!(shell.ok(&["put", "Order", "o-1", r#"{"total":12}"#]), "version 1\n");
    let put = shell.run_with(&["put", "Order", "o-2", "--json"], "[1]");
    assert_eq!(text(&put.stdout), "{\"version\":2}\n");
    assert_eq!(shell.ok(&["get", "Order", "o-1"]), "{\n  \"total\": 12\n}\n");
    let got = lines(&shell.ok(&["get", "Order", "o-1", "--json"]));
    assert_eq!(got, [json!({"key": "o-1", "version": 1, "value": {"total": 12}})]);

    for (arguments, parts) in [
        (&["get", "Order", "x"][..], ["NOT_FOUND", "Use put or create"]),
        (&["get", "Order", "o-1", "--env", "other"], ["ENVIRONMENT_NOT_FOUND", "\"other\""]),
        (&["get", "Order", "o-1", "--data", "typo"], ["NOT_A_STORE", "typo"]),
        (&["put", "Order", "o-1", "{"], ["COMMAND_INVALID", "EOF"]),
        (&["put", "Order", "o-1", "1", "--create"], ["ALREADY_EXISTS", "version 1"]),
        (&["put", "Order", "o-1", "1", "--if-version", "9"], ["VERSION_MISMATCH", "Read it again"]),
        (&["put", "~x", "o-1", "1"], ["NAME_INVALID", "Start with a letter"]),
        (&["query", "Order", "--filter", r#"{"a":{"$x":1}}"#], ["FILTER_INVALID", "$x"]),
    ] {
        let text = shell.fails(arguments);
        assert!(parts.iter().all(|part| text.contains(part)), "{arguments:?}: {text}");
    }
    assert!(!shell.folder.path().join("typo").exists(), "a misspelt path is no new store");
    assert_eq!(shell.run_with(&["put", "Order"], "").status.code(), Some(2));
}

#[test]
fn the_log_is_printed_from_where_it_begins() {
    let shell = Shell::new();
    for n in 0..5 {
        shell.ok(&["put", "Order", "o-1", &n.to_string()]);
    }
    let env = Store::open(shell.data()).expect("a store").env("default").expect("opened");
    env.set_retention(Retention::everything().bytes(1)).expect("set");
    let end = Instant::now() + Duration::from_secs(10);
    while env.log().read(Clock::ZERO, 1).is_ok() {
        assert!(Instant::now() < end, "the log is trimmed soon");
        std::thread::yield_now();
    }
    drop(env);
    let last = lines(&shell.ok(&["log", "--json"]));
    assert_eq!(last.last().expect("the newest is kept")["clock"], 5);
    assert!(shell.fails(&["log", "--after", "0"]).contains("LOG_TRUNCATED"));
}

#[test]
fn a_compacted_log_is_printed_page_by_page_as_each_page_says() {
    let shell = Shell::new();
    for key in ["a", "b", "c", "a", "d"] {
        shell.ok(&["put", "A", key, "1"]);
    }
    let env = Store::open(shell.data()).expect("a store").env("default").expect("opened");
    env.set_retention(Retention::everything().bytes(0).latest()).expect("set");
    env.maintain().expect("done");
    assert_eq!(env.log().compacted_to().expect("read"), Clock::new(4));
    drop(env);
    let (mut clocks, mut after) = (Vec::new(), Vec::new());
    loop {
        let arguments: Vec<_> = after.iter().map(String::as_str).collect();
        let arguments = [&["log", "--json", "--limit", "1"][..], &arguments].concat();
        let page = shell.run_with(&arguments, "");
        let told = text(&page.stderr);
        assert!(page.status.success(), "{arguments:?}: {told}");
        clocks.extend(lines(&text(&page.stdout)).iter().map(|change| change["clock"].clone()));
        let Some((_, next)) = told.split_once("next page: ") else { break };
        after = next.split_whitespace().map(str::to_owned).collect();
    }
    assert_eq!(clocks, [2, 3, 4, 5]);
    assert!(shell.fails(&["log", "--after", "2"]).contains("LOG_TRUNCATED"));
}

#[test]
fn queries_are_printed_as_tables_and_as_lines() {
    let shell = Shell::new();
    for n in 0..5 {
        shell.ok(&["put", "Order", &format!("o-{n}"), &format!("{{\"n\":{n}}}")]);
    }
    let table = shell.ok(&["query", "Order", "--sort=-n", "--limit", "2"]);
    let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["key", "version", "value"], "{table}");
    assert_eq!(rows[1], ["o-4", "5", "{\"n\":4}"], "{table}");
    assert_eq!(rows.len(), 3, "{table}");
    let filter = r#"{"n":{"$gte":3}}"#;
    let found = lines(&shell.ok(&["query", "Order", "--filter", filter, "--json"]));
    assert_eq!(found.len(), 2);
    assert_eq!(shell.ok(&["query", "Order", "--filter", filter, "--count"]), "2\n");
    let explained = shell.ok(&["query", "Order", "--filter", filter, "--explain"]);
    assert!(explained.contains("all documents of the type are read"), "{explained}");
    let page = shell.run_with(&["query", "Order", "--limit", "3", "--json"], "");
    let hint = text(&page.stderr);
    let cursor = hint.trim().rsplit(' ').next().expect("a cursor");
    let rest = lines(&shell.ok(&["query", "Order", "--after", cursor, "--json"]));
    assert_eq!(rest.len(), 2, "{hint}");
}

#[test]
fn what_was_exported_is_imported_again_and_files_of_others_are_too() {
    let shell = Shell::new();
    shell.ok(&["put", "A", "a", "1"]);
    shell.ok(&["put", "B", "b/\u{e4}", r#"{"x":[null]}"#, "--ttl", "1h"]);
    shell.ok(&["export", "--out", "all.jsonl"]);
    let exported = shell.ok(&["export", "--type", "A"]);
    assert_eq!(exported, "{\"type\":\"A\",\"key\":\"a\",\"value\":1}\n");
    let refused = shell.fails(&["export", "--out", "all.jsonl"]);
    assert!(refused.contains("FILE_UNUSABLE") && refused.contains("all.jsonl"), "{refused}");

    shell.ok(&["import", "--data", "copy", "all.jsonl"]);
    let copy = Store::open(shell.folder.path().join("copy")).expect("a store");
    let copy = copy.env("default").expect("an environment");
    let document = copy.get("B", "b/\u{e4}").expect("read").expect("a document");
    assert_eq!(document.value, json!({"x": [null]}));
    assert!(document.expires_ms.is_some());

    shell.write("flights.json", r#" [ {"id":7,"to":"LIS"}, {"id":"x","to":"OSL"} ] "#);
    shell.ok(&["import", "--type", "Flight", "--key", "id", "--batch", "1", "flights.json"]);
    assert_eq!(shell.ok(&["query", "Flight", "--count"]), "2\n");
    assert!(shell.ok(&["get", "Flight", "7"]).contains("LIS"));

    for (content, why) in [
        ("{\"key\":\"a\"}", "document 1"),
        ("{\"key\":\"a\",\"value\":1}\n{\"key\":\"b\",\"value\":1}", "--type"),
        ("{\"type\":\"A\",\"key\":\"a\",\"value\":1}\n{", "EOF"),
        ("[{\"type\":\"A\",\"key\":\"a\",\"value\":1},]", "trailing comma"),
        ("nonsense", "expected"),
    ] {
        shell.write("bad.json", content);
        let refused = shell.fails(&["import", "bad.json"]);
        assert!(
            refused.contains("COMMAND_INVALID") && refused.contains(why),
            "{content}: {refused}"
        );
    }
    shell.write("late.json", "{\"type\":\"L\",\"key\":\"a\",\"value\":1}\n{}");
    let refused = shell.fails(&["import", "--batch", "1", "late.json"]);
    assert!(refused.contains("imported: 1 in") && refused.contains("document 2"), "{refused}");
    let refused = shell.fails(&["import", "absent.json"]);
    assert!(refused.contains("FILE_UNUSABLE"), "{refused}");
}

#[test]
fn the_log_is_printed_and_followed() {
    let shell = Shell::new();
    shell.ok(&["put", "A", "a", "1"]);
    shell.ok(&["put", "B", "b", "2"]);
    let changes = lines(&shell.ok(&["log", "--after", "1", "--json"]));
    assert_eq!(
        (changes.len(), &changes[0]["key"], &changes[0]["op"]),
        (1, &json!("b"), &json!("put"))
    );
    assert!(shell.ok(&["log"]).contains("clock"));

    let mut watch =
        shell.command(&["watch", "--type", "A", "--after", "0", "--count", "2", "--json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut seen = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let mut next = || -> Value {
        serde_json::from_str(&seen.next().expect("a line").expect("text")).expect("JSON")
    };
    assert_eq!(next()["clock"], 1);
    // Written by another process while the first one waits.
    let begun = Instant::now();
    shell.ok(&["put", "A", "a", "3"]);
    assert_eq!(next()["value"], 3);
    assert!(begun.elapsed() < Duration::from_secs(10), "it was woken by a process that has ended");
    assert!(watch.wait().expect("it ends").success());
}

#[tokio::test]
async fn commands_work_beside_a_server() {
    let shell = Shell::new();
    let data = shell.data();
    let server = Server::start_with("", &["--data", data.to_str().expect("text")]);
    assert_eq!(put(&server, "/api/default/types/A/a", "1").await.status, 200);
    assert_eq!(shell.ok(&["get", "A", "a"]), "1\n");
    shell.ok(&["put", "A", "b", "2"]);
    assert_eq!(get(&server, "/api/default/types/A/b").await.json["value"], 2);
    shell.ok(&["check"]);
    shell.ok(&["backup", "--to", "backup"]);
    assert_eq!(put(&server, "/api/default/types/A/a", "3").await.status, 200);
    shell.ok(&["restore", "--from", "backup", "--data", "restored"]);
    assert_eq!(shell.ok(&["get", "A", "a", "--data", "restored"]), "1\n");
}

#[test]
fn a_store_is_compacted_only_while_no_server_has_it_open() {
    let shell = Shell::new();
    let data = shell.data();
    let mut server = Server::start_with("", &["--data", data.to_str().expect("text")]);
    shell.ok(&["put", "A", "a", "1"]);
    let refused = shell.fails(&["compact"]);
    assert!(refused.contains("STORE_IN_USE") && refused.contains("Stop the servers"), "{refused}");
    shell.ok(&["put", "A", "a", "2"]);
    server.signal("-TERM");
    assert_eq!(server.wait(std::time::Duration::from_secs(12)), Some(0));
    let report = &lines(&shell.ok(&["compact", "--json"]))[0];
    assert_eq!(report["env"], "default");
    assert_eq!(shell.ok(&["get", "A", "a"]), "2\n");
    shell.ok(&["check"]);
}

#[test]
fn a_backup_or_restore_overwrites_nothing() {
    let shell = Shell::new();
    shell.ok(&["put", "A", "a", "1"]);
    shell.ok(&["backup", "--to", "backup"]);
    shell.ok(&["put", "A", "a", "2"]);
    for arguments in [&["backup", "--to", "backup"][..], &["restore", "--from", "backup"]] {
        let refused = shell.fails(arguments);
        assert!(refused.contains("NOT_A_STORE") && refused.contains("not empty"), "{refused}");
    }
    assert_eq!(shell.ok(&["get", "A", "a"]), "2\n");
    assert_eq!(shell.ok(&["get", "A", "a", "--data", "backup"]), "1\n");
    let refused = shell.fails(&["backup", "--to", "b2", "--env", "other"]);
    assert!(refused.contains("ENVIRONMENT_NOT_FOUND"), "{refused}");
    let refused = shell.fails(&["restore", "--from", "nowhere", "--data", "d2"]);
    assert!(refused.contains("NOT_A_STORE") && refused.contains("nowhere"), "{refused}");
    assert!(!shell.folder.path().join("d2").exists());
}

/// Takes the second change out of an environment's log.
struct Damage;

impl Decide for Damage {
    fn decide<'a>(&'a mut self, _: &'a dyn Transaction) -> Answer<'a, Result<Decision, Error>> {
        let mut writes = Writes::default();
        writes.remove(Table::Log, &Clock::new(2).to_bytes());
        Answer::now(Ok(Decision { writes, changes: 0 }))
    }
}

fn damage(environment: &Path) {
    let engine = Lmdb::open(environment, &Options::default()).expect("opened");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let results = runtime.block_on(async { engine.write(vec![Box::new(Damage)]).await });
    assert!(results[0].is_ok(), "{results:?}");
}

#[test]
fn a_check_names_what_is_damaged_and_ends_with_an_error() {
    let shell = Shell::new();
    for key in ["a", "b", "c"] {
        shell.ok(&["put", "A", key, "1"]);
    }
    let clean = shell.ok(&["check"]);
    assert!(clean.contains("default: 3 documents, 3 changes") && clean.contains("as it must be"));
    damage(&shell.data().join("env/default"));
    let output = shell.run_with(&["check"], "");
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(printed.contains("clock: the log has no change 2; the next one is 3"), "{printed}");
    let told = text(&output.stderr);
    assert!(told.contains("INTEGRITY_VIOLATED") && told.contains("restore a backup"), "{told}");
    assert!(told.contains("entries checked: "), "{told}");
    let output = shell.run_with(&["check", "--json"], "");
    let report = &lines(&text(&output.stdout))[0];
    assert_eq!(report["findings"][0]["invariant"], "clock", "{report}");
}

/// Overwrites all pages of a file but those that say what it is, as leaves with thousands of entries
/// that lie behind the file's end.
fn damage_pages(file: &Path) {
    let mut bytes = fs::read(file).expect("a file");
    for page in bytes.chunks_mut(4096).skip(2) {
        page[8..].fill(0xff);
        page[10..12].copy_from_slice(&2_u16.to_le_bytes());
    }
    fs::write(file, bytes).expect("written");
}

#[test]
fn a_check_of_a_file_whose_pages_are_damaged_says_so() {
    let shell = Shell::new();
    shell.ok(&["put", "A", "a", "1"]);
    damage_pages(&shell.data().join("env/default/data.mdb"));
    let told = shell.fails(&["check"]);
    assert!(told.contains("STORE_CORRUPT") && told.contains("Restore a backup"), "{told}");
}

#[test]
fn a_check_takes_its_options_also_before_the_end_of_options() {
    let shell = Shell::new();
    shell.ok(&["put", "A", "a", "1"]);
    let told = shell.ok(&["check", "--data", "data", "--"]);
    assert!(told.contains("as it must be"), "{told}");
}

#[test]
fn a_check_ends_when_the_process_that_began_it_is_gone() {
    let shell = Shell::new();
    shell.ok(&["put", "A", "a", "1"]);
    let child = std::process::id().to_string();
    let told = shell.ok(&["check", "--in-process", &child]);
    assert!(told.contains("as it must be"), "{told}");
    let output = shell.run_with(&["check", "--in-process", "1"], "");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_check_runs_also_when_the_program_was_replaced_since_it_began() {
    use std::os::fd::AsRawFd as _;

    let shell = Shell::new();
    shell.ok(&["put", "A", "a", "1"]);
    let program = shell.folder.path().join("motet");
    fs::copy(BINARY, &program).expect("copied");
    let open = fs::File::open(&program).expect("opened");
    fs::remove_file(&program).expect("removed");
    let program = format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd());
    let mut command = Command::new(program);
    command.args(["check", "--data", "data"]).current_dir(shell.folder.path());
    let output = command.output().expect("it runs");
    let (printed, told) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && printed.contains("as it must be"), "{printed}{told}");
}

#[tokio::test]
async fn a_token_that_was_made_is_accepted_as_its_section_says() {
    let shell = Shell::new();
    let section = shell.ok(&["api-token", "--name", "shop", "--env", "default"]);
    let token = section.lines().next().and_then(|line| line.rsplit(' ').next()).expect("a token");
    let server = Server::start(&format!("[store]\npath = \"data\"\n{section}"));
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let path = "/api/default/types";
    assert_eq!(super::http::send(&server, "GET", path, &bearer, "").await.status, 200);
    let write = "/api/default/types/T/k";
    assert_eq!(super::http::send(&server, "PUT", write, &bearer, "1").await.status, 403);
    assert_eq!(get(&server, path).await.status, 401);
}

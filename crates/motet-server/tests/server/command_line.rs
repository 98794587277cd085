use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::process::{BINARY, run};

fn failure(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(!output.status.success(), "{arguments:?} must fail");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn a_taken_port_is_told_with_its_code_and_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let text = failure(&["serve", "--listen", &address]);
    assert!(text.contains("ADDRESS_IN_USE") && text.contains("--listen"), "{text}");
    assert!(text.contains(&address), "{text}");
}

#[test]
fn an_address_of_another_machine_and_one_that_is_none_are_told_apart_from_a_taken_one() {
    for address in ["192.0.2.1:8000", "here", "127.0.0.1", "127.0.0.1:99999"] {
        let text = failure(&["serve", "--listen", address]);
        assert!(text.contains("ADDRESS_REFUSED") && text.contains(address), "{text}");
        assert!(text.contains("Give an IP address"), "the next step fits: {text}");
    }
}

#[test]
fn an_address_in_the_configuration_is_checked_as_on_the_command_line() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("motet.toml");
    let path = file.to_str().expect("text");
    let write = |address: &str| {
        let config = format!("[http_server]\naddress = \"{address}\"\nport = {port}\n");
        fs::write(&file, config).expect("written");
    };
    write("localhost");
    assert!(run(&["check-config", "--config", path]).status.success());
    let text = failure(&["serve", "--config", path]);
    assert!(text.contains("ADDRESS_IN_USE"), "it is understood, and taken: {text}");
    write("nowhere");
    for command in ["serve", "check-config"] {
        let text = failure(&[command, "--config", path]);
        assert!(text.contains("ADDRESS_REFUSED") && text.contains("nowhere"), "{text}");
    }
}

#[test]
fn a_log_level_that_is_none_is_refused() {
    let text = failure(&["serve", "--listen", "127.0.0.1:0", "--log-level", "loud"]);
    assert!(text.contains("SERVER_CONFIG_INVALID") && text.contains("log.level"), "{text}");
    assert!(text.contains("expected one of \"error\"") && text.contains("\"debug\""), "{text}");
}

#[test]
fn a_publication_log_that_cannot_be_one_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let note = folder.path().join("note.txt");
    fs::write(&note, "remember the milk").expect("written");
    let missing = folder.path().join("no/folder/log.jsonl");
    for file in [&note, &missing] {
        let path = file.to_str().expect("text");
        let text = failure(&["serve", "--listen", "127.0.0.1:0", "--publication-log", path]);
        assert!(text.contains("SERVER_CONFIG_INVALID") && text.contains(path), "{text}");
        assert!(text.contains("Correct what the message names"), "no key is wrong here: {text}");
    }
    assert_eq!(fs::read_to_string(&note).expect("there"), "remember the milk");
}

#[test]
fn a_bad_configuration_is_told_with_file_and_key_by_serve_and_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bad.toml");
    fs::write(&file, "[client]\npong_timout = \"3s\"\n").expect("written");
    let path = file.to_str().expect("text");
    for arguments in [&["serve", "--config", path][..], &["check-config", "--config", path]] {
        let text = failure(arguments);
        assert!(text.contains("SERVER_CONFIG_UNKNOWN_KEY"), "{text}");
        assert!(text.contains(path) && text.contains("client.pong_timout"), "{text}");
        assert!(text.contains("`pong_timeout`"), "the known keys are named: {text}");
    }
    let text = failure(&["check-config", "--config", "/nowhere/motet.toml"]);
    assert!(text.contains("SERVER_CONFIG_INVALID"), "{text}");
}

#[test]
fn the_printed_configuration_passes_the_check() {
    let printed = run(&["config"]);
    assert!(printed.status.success());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("motet.toml");
    fs::write(&file, &printed.stdout).expect("written");
    let checked = run(&["check-config", "--config", file.to_str().expect("text")]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn a_token_needs_a_secret() {
    let token = run(&["token", "--secret", "s", "--user", "42", "--ttl", "1h"]);
    assert!(token.status.success());
    assert_eq!(token.stdout.iter().filter(|byte| **byte == b'.').count(), 2);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("motet.toml");
    fs::write(&file, "").expect("written");
    let text = failure(&["token", "--config", file.to_str().expect("text"), "--user", "42"]);
    assert!(text.contains("client.token.hmac_secret_key is empty"), "{text}");
    let text = failure(&["token", "--secret", "", "--user", "42"]);
    assert!(text.contains("--secret is empty") && !text.contains("hmac_secret_key"), "{text}");
}

#[test]
fn a_log_that_is_no_terminal_has_no_colours() {
    let mut child = Command::new(BINARY)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    let read = BufReader::new(child.stderr.take().expect("piped")).read_line(&mut line);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    read.expect("a line");
    assert!(line.contains("INFO") && !line.contains('\u{1b}'), "{line:?}");
}

#[test]
fn help_shows_examples() {
    let help = String::from_utf8(run(&["--help"]).stdout).expect("text");
    for part in ["Examples:", "motet serve --dev", "motet token"] {
        assert!(help.contains(part), "{help}");
    }
    for command in [
        "serve",
        "token",
        "check-config",
        "api-token",
        "put",
        "get",
        "query",
        "log",
        "watch",
        "import",
        "export",
        "check",
        "backup",
        "restore",
        "compact",
    ] {
        let help = String::from_utf8(run(&[command, "--help"]).stdout).expect("text");
        let example = format!("Examples:\n  motet {command} ");
        assert!(help.contains(&example), "{help}");
    }
}

#[test]
fn a_token_request_that_cannot_be_met_is_told_what_would_do() {
    let text = failure(&["token", "--user", "1"]);
    assert!(text.contains("--config") && text.contains("--secret"), "{text}");
    for ttl in ["18446744073709551615s", "200years"] {
        let text = failure(&["token", "--secret", "s", "--ttl", ttl]);
        assert!(text.contains("at most 100 years") && !text.contains("panicked"), "{text}");
    }
}

#[test]
fn a_server_to_which_nobody_can_connect_says_so_and_what_to_do() {
    for (arguments, warned) in [(&[][..], true), (&["--dev"], false)] {
        let mut child = Command::new(BINARY)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let listening = lines.next().expect("a line").expect("text");
        assert!(listening.contains("listening on"), "{listening}");
        // It is said right after, and the end of the output shows that nothing was.
        let pid = child.id().to_string();
        let line =
            if warned { lines.next().expect("a line").expect("text") } else { String::new() };
        Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        let rest: Vec<_> = lines.map_while(Result::ok).collect();
        child.wait().expect("it ends");
        let text = format!("{line}{}", rest.join("\n"));
        let told = text.contains("no real-time client can connect") && text.contains("--dev");
        assert_eq!(told, warned, "{text}");
    }
}

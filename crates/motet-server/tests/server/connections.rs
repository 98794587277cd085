use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::{Error, http::StatusCode};

use crate::api::call;
use crate::process::{BINARY, OPEN, Server};
use crate::websocket::Client;

#[tokio::test]
async fn several_commands_in_a_frame_are_answered_in_order() {
    let server = Server::start(OPEN);
    let mut client = Client::open(&server).await;
    client
        .send("{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"a\"}}\n{\"id\":3,\"publish\":{\"channel\":\"a\",\"data\":[1]}}")
        .await;
    assert_eq!(client.next().await["id"], 1);
    let subscribed = client.next().await;
    assert_eq!(
        (&subscribed["id"], &subscribed["subscribe"]["recoverable"]),
        (&2.into(), &true.into())
    );
    let mut rest = [client.next().await, client.next().await];
    rest.sort_by_key(|message| message["id"].is_null());
    assert_eq!(rest[0]["publish"], serde_json::json!({}));
    assert_eq!(rest[1]["push"]["pub"]["data"], serde_json::json!([1]));
}

fn status(refused: Result<Client, Error>) -> StatusCode {
    match refused {
        Err(Error::Http(response)) => response.status(),
        Err(error) => panic!("expected a refusal by HTTP, got {error}"),
        Ok(_) => panic!("expected a refusal"),
    }
}

#[tokio::test]
async fn a_loopback_server_turns_foreign_pages_away_and_admits_local_ones() {
    let server = Server::start(OPEN);
    let foreign = Client::try_open(&server, Some("https://example.com")).await;
    assert_eq!(status(foreign), StatusCode::FORBIDDEN);
    Client::try_open(&server, Some("http://localhost:3000")).await.expect("admitted");
    let listed = format!("{OPEN}\n").replace(
        "insecure = true\n[http_api]",
        "insecure = true\nallowed_origins = [\"https://*.example.com\"]\n[http_api]",
    );
    let server = Server::start(&listed);
    Client::try_open(&server, Some("https://app.example.com")).await.expect("admitted");
    let local = Client::try_open(&server, Some("http://localhost:3000")).await;
    assert_eq!(status(local), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn connections_beyond_the_limit_get_503_until_one_has_gone() {
    let server = Server::start(
        &OPEN.replace("insecure = true\n[", "insecure = true\nconnection_limit = 1\n["),
    );
    let first = Client::connected(&server).await;
    assert_eq!(status(Client::try_open(&server, None).await), StatusCode::SERVICE_UNAVAILABLE);
    drop(first);
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    while Client::try_open(&server, None).await.is_err() {
        assert!(tokio::time::Instant::now() < end, "the place is free again");
    }
}

#[tokio::test]
async fn the_usual_limit_of_open_files_does_not_limit_connections() {
    let mut shell = Command::new("bash");
    shell.args(["-c", "ulimit -S -n 40 && exec \"$0\" \"$@\"", BINARY]);
    let server = Server::start_by(shell, OPEN, &[]);
    let mut clients = Vec::new();
    for _ in 0..60 {
        clients.push(Client::connected(&server).await);
    }
    assert_eq!(metric(&server, "motet_clients").await, 60);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_closed_as_slow_and_others_are_served() {
    let server = Server::start(OPEN);
    let mut slow = Client::connected(&server).await;
    slow.send(r#"{"id":2,"subscribe":{"channel":"a"}}"#).await;
    let mut reader = Client::connected(&server).await;
    reader.send(r#"{"id":2,"subscribe":{"channel":"a"}}"#).await;
    assert_eq!(reader.next().await["id"], 2);
    let body = format!(r#"{{"channel":"a","data":"{}"}}"#, "x".repeat(60_000));
    let mut published = 0_u64;
    while metric(&server, "motet_disconnects_total{code=\"3008\"}").await == 0 {
        call(&server, "publish", &body).await;
        published += 1;
        assert_eq!(reader.next().await["push"]["pub"]["offset"], published);
        assert!(published < 2_000, "the slow client is noticed");
    }
}

#[tokio::test]
async fn a_killed_client_leaves_the_presence_at_once() {
    let server = Server::start(OPEN);
    // Processes of their own, so that the kernel and nobody else closes its socket.
    let script =
        format!("exec 3<>/dev/tcp/127.0.0.1/{} 4<&0; cat <&4 >&3 & cat <&3", server.address.port());
    let mut child = Command::new("bash")
        .args(["-c", &script])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash runs");
    let mut input =
        tokio::process::ChildStdin::from_std(child.stdin.take().expect("piped")).expect("a pipe");
    let handshake = "GET /connection/websocket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    input.write_all(handshake.as_bytes()).await.expect("written");
    let commands = "{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"a\"}}";
    input.write_all(&masked_text_frame(commands)).await.expect("written");
    input.flush().await.expect("flushed");
    until_clients(&server, 1).await;
    let group = format!("-{}", child.id());
    let killed = Command::new("kill").args(["-9", "--", &group]).status().expect("kill runs");
    assert!(killed.success());
    child.wait().expect("gone");
    drop(input);
    until_clients(&server, 0).await;
}

#[tokio::test]
async fn a_half_open_connection_is_found_by_its_missing_pong() {
    let server = Server::start(&OPEN.replace(
        "insecure = true\n[",
        "insecure = true\nping_interval = \"1s\"\npong_timeout = \"500ms\"\n[",
    ));
    let mut silent = Client::connected(&server).await;
    silent.send(r#"{"id":2,"subscribe":{"channel":"a"}}"#).await;
    assert_eq!(silent.next().await["id"], 2);
    assert_eq!(silent.close_code().await, 3012);
    until_clients(&server, 0).await;
}

#[tokio::test]
async fn a_client_that_asks_for_ping_frames_gets_them_and_is_closed_without_an_answer() {
    let server = Server::start(&OPEN.replace(
        "insecure = true\n[",
        "insecure = true\nping_interval = \"1s\"\npong_timeout = \"500ms\"\n[",
    ));
    let mut client = Client::open_with(&server, "?cf_ws_frame_ping_pong=true").await;
    client.send(r#"{"id":1,"connect":{}}"#).await;
    let reply = client.next().await;
    assert_eq!(
        (&reply["connect"]["ping"], &reply["connect"]["pong"]),
        (&Value::Null, &Value::Null)
    );
    for _ in 0..2 {
        // The library answers it with the next read.
        let frame = client.socket.next().await.expect("a frame").expect("readable");
        assert!(frame.is_ping(), "{frame}");
    }
    // Nothing is read any more, so nothing is answered.
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    while metric(&server, "motet_disconnects_total{code=\"3012\"}").await == 0 {
        assert!(tokio::time::Instant::now() < end, "the silence is noticed");
    }
}

#[tokio::test]
async fn sigterm_closes_with_3001_and_ends_with_code_0_in_bounded_time() {
    let mut server = Server::start(OPEN);
    let mut client = Client::connected(&server).await;
    let stuck = Client::connected(&server).await;
    server.signal("-TERM");
    assert_eq!(client.close_code().await, 3001);
    drop(client);
    assert_eq!(server.wait(Duration::from_secs(12)), Some(0));
    drop(stuck);
}

#[tokio::test]
async fn every_accepted_publication_is_in_the_publication_log() {
    let mut server = Server::start_with(OPEN, &["--publication-log", "log.jsonl"]);
    let mut client = Client::connected(&server).await;
    for n in 1..=3 {
        client
            .send(&format!(r#"{{"id":{},"publish":{{"channel":"a","data":{{"n":{n}}}}}}}"#, n + 1))
            .await;
        assert_eq!(client.next().await["id"], n + 1);
    }
    drop(client);
    server.signal("-INT");
    assert_eq!(server.wait(Duration::from_secs(12)), Some(0));
    let log = std::fs::read_to_string(server.file("log.jsonl")).expect("a log");
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let offsets: Vec<_> = lines.iter().map(|line| line["offset"].as_u64()).collect();
    assert_eq!(offsets, [Some(1), Some(2), Some(3)]);
    assert_eq!(lines[2]["data"], serde_json::json!({ "n": 3 }));
    assert_eq!(lines[2]["size"], 7);
    assert_eq!(lines[2]["sha256"].as_str().map(str::len), Some(64));
    assert!(lines[0]["ts_ms"].is_u64() && lines[0]["epoch"] == lines[2]["epoch"]);
}

#[tokio::test]
async fn a_server_killed_while_it_wrote_its_log_goes_on_with_whole_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log.jsonl");
    let arguments = ["--publication-log", log.to_str().expect("text")];
    let publish = r#"{"channel":"a","data":{"n":1}}"#;
    let mut first = Server::start_with(OPEN, &arguments);
    call(&first, "publish", publish).await;
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    while std::fs::metadata(&log).expect("a log").len() == 0 {
        assert!(tokio::time::Instant::now() < end, "the line is written soon");
        call(&first, "info", "{}").await;
    }
    first.signal("-KILL");
    first.wait(Duration::from_secs(5));
    let whole = std::fs::read_to_string(&log).expect("a log");
    std::fs::write(&log, format!("{whole}{}", &whole[..whole.len() / 2])).expect("torn");

    let mut second = Server::start_with(OPEN, &arguments);
    call(&second, "publish", publish).await;
    second.signal("-TERM");
    assert_eq!(second.wait(Duration::from_secs(12)), Some(0));
    let text = std::fs::read_to_string(&log).expect("a log");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect();
    let places: Vec<_> =
        lines.iter().map(|line| (line["epoch"].as_str(), &line["offset"])).collect();
    assert!(matches!(places[..], [(first, _), (second, _)] if first != second), "{text}");
}

/// Waits until so many connections are in channel `a`.
async fn until_clients(server: &Server, wanted: u64) {
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    loop {
        let answer = call(server, "presence_stats", r#"{"channel":"a"}"#).await;
        if answer["result"]["num_clients"] == wanted {
            return;
        }
        assert!(tokio::time::Instant::now() < end, "{answer}, wanted {wanted}");
    }
}

pub(crate) async fn metric(server: &Server, name: &str) -> u64 {
    let mut stream = tokio::net::TcpStream::connect(server.address).await.expect("connected");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("answered");
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}

fn masked_text_frame(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("short");
    assert!(length < 126);
    let mut frame = vec![0x81, 0x80 | length, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    frame
}

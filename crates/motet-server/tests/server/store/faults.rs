use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::http::{get, put, try_send};
use super::{code, refusal, start_with};
use crate::process::Server;

/// A server on a directory that outlives it.
fn start_on(data: &std::path::Path) -> Server {
    Server::start_with("", &["--data", data.to_str().expect("text")])
}

/// One write on a connection of its own; the version if it was acknowledged.
async fn try_put(address: std::net::SocketAddr, key: &str, value: u64) -> Option<u64> {
    let path = format!("/api/default/types/T/{key}");
    let answer = try_send(address, "PUT", &path, "", &value.to_string()).await?;
    (answer.status == 200).then(|| answer.json["version"].as_u64())?
}

#[tokio::test]
async fn what_was_acknowledged_before_a_kill_is_there_after_the_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut server = start_on(&data);
    let address = server.address;
    let acknowledgements = Arc::new(Semaphore::new(0));
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let acknowledgements = Arc::clone(&acknowledgements);
        writers.spawn(async move {
            let key = format!("k{writer}");
            let mut last = (0, 0);
            for value in 1.. {
                let Some(version) = try_put(address, &key, value).await else { break };
                last = (value, version);
                acknowledgements.add_permits(1);
            }
            (key, last)
        });
    }
    let enough = timeout(Duration::from_secs(20), acknowledgements.acquire_many(100)).await;
    enough.expect("a hundred writes are acknowledged in time").expect("never closed").forget();
    server.signal("-KILL");
    server.wait(Duration::from_secs(5));
    let acknowledged = writers.join_all().await;

    let again = start_on(&data);
    for (key, (value, version)) in acknowledged {
        let read = get(&again, &format!("/api/default/types/T/{key}")).await.json;
        let (found, at) =
            (read["value"].as_u64().unwrap_or(0), read["version"].as_u64().unwrap_or(0));
        // One more may have been written whose answer did not come through.
        assert!(found == value && at == version || found == value + 1, "{key} {value}: {read}");
    }
}

#[tokio::test]
async fn two_servers_on_one_directory_see_each_others_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let servers = [start_on(&data), start_on(&data)].map(Arc::new);
    let mut writers = JoinSet::new();
    for (place, server) in servers.iter().enumerate() {
        let server = Arc::clone(server);
        writers.spawn(async move {
            for n in 0..20 {
                let path = format!("/api/default/types/T/s{place}-{n}");
                assert_eq!(put(&server, &path, &n.to_string()).await.status, 200);
            }
        });
    }
    writers.join_all().await;
    for server in &servers {
        let log = get(server, "/api/default/log").await.json;
        let clocks: Vec<_> = log["changes"]
            .as_array()
            .expect("changes")
            .iter()
            .map(|change| change["clock"].clone())
            .collect();
        assert_eq!(clocks, (1..=40).map(|clock| json!(clock)).collect::<Vec<_>>());
    }
    assert_eq!(put(&servers[0], "/api/default/types/T/x", "1").await.status, 200);
    assert_eq!(get(&servers[1], "/api/default/types/T/x").await.json["value"], 1);
}

#[tokio::test]
async fn a_second_server_on_the_port_is_refused_and_the_first_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let server = start_on(&data);
    let address = server.address.to_string();
    let text = refusal(&["serve", "--data", data.to_str().expect("text"), "--listen", &address]);
    assert!(text.contains("ADDRESS_IN_USE"), "{text}");
    assert_eq!(put(&server, "/api/default/types/T/k", "1").await.status, 200);
}

#[test]
fn a_directory_that_holds_something_else_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("note.txt"), "keep me").expect("written");
    let path = folder.path().to_str().expect("text");
    let text = refusal(&["serve", "--data", path, "--listen", "127.0.0.1:0"]);
    assert!(text.contains("NOT_A_STORE") && text.contains(path), "{text}");
    let kept = std::fs::read_to_string(folder.path().join("note.txt")).expect("there");
    assert_eq!(kept, "keep me");
}

/// Waits until a server takes no connection any more.
async fn until_refused(address: std::net::SocketAddr) {
    while TcpStream::connect(address).await.is_ok() {}
}

#[tokio::test]
async fn writes_that_are_under_way_when_the_server_stops_are_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut server = start_on(&data);
    // A body that is still on its way when the server is told to stop.
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let head = format!(
        "PUT /api/default/types/T/k HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 4\r\nExpect: 100-continue\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut begun = [0; GO_ON.len()];
    stream.read_exact(&mut begun).await.expect("the body is waited for");
    assert_eq!(&begun, GO_ON);
    stream.write_all(b"12").await.expect("sent");
    server.signal("-TERM");
    let stopping = timeout(Duration::from_secs(10), until_refused(server.address)).await;
    stopping.expect("no new connection is taken");
    stream.write_all(b"34").await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"version\":1}"), "{answer}");
    assert_eq!(server.wait(Duration::from_secs(12)), Some(0));
    let again = start_on(&data);
    assert_eq!(get(&again, "/api/default/types/T/k").await.json["value"], 1234);
}

#[tokio::test]
async fn a_write_that_is_not_done_in_time_says_so_and_the_next_one_that_it_was_not_begun() {
    let server = start_with("request_timeout = \"300ms\"\ncalls_max = 1\n");
    assert_eq!(put(&server, "/api/default/types/T/k", "1").await.status, 200);
    // Another process has the right to write, and keeps it.
    let lock = server.file("data").join("env/default/writer.lock");
    let lock = std::fs::File::options().write(true).open(lock).expect("the lock");
    lock.lock().expect("locked");
    let late = put(&server, "/api/default/types/T/k", "2").await;
    assert_eq!((late.status, code(&late.json)), (504, "OUTCOME_UNKNOWN"));
    assert_eq!(late.json["error"]["retryable"], false);
    let busy = get(&server, "/api/default/types/T/k").await;
    assert_eq!((busy.status, code(&busy.json)), (503, "RESOURCE_BUSY"));
    assert_eq!(busy.header("retry-after"), Some("1"));
    lock.unlock().expect("unlocked");
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let read = get(&server, "/api/default/types/T/k").await;
        if read.status == 200 && read.json["value"] == 2 {
            break;
        }
        assert!(Instant::now() < end, "the write is done at last: {}", read.text);
    }
}

/// What a server says when it begins to read a body that was announced.
const GO_ON: &[u8; 25] = b"HTTP/1.1 100 Continue\r\n\r\n";

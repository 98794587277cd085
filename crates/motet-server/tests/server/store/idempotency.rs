use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::http::{get, put, send, try_send};
use super::{code, start};
use crate::process::Server;

const PATH: &str = "/api/default/types/T/k";

fn key(key: &str) -> String {
    format!("Idempotency-Key: {key}\r\n")
}

#[tokio::test]
async fn a_write_that_is_sent_again_under_its_key_is_answered_alike_and_done_once() {
    let server = start();
    let create = format!("{}If-None-Match: *\r\n", key("k-1"));
    let first = send(&server, "PUT", PATH, &create, "{\"n\":0}").await;
    assert_eq!((first.status, first.header("etag")), (200, Some("\"1\"")), "{}", first.text);
    let add = "{\"inc\":{\"n\":1}}";
    let added = send(&server, "PATCH", PATH, &key("k-2"), add).await;
    assert_eq!(added.json["version"], 2);
    // Not refused because it is there: this very request made it.
    let again = send(&server, "PUT", PATH, &create, "{\"n\":0}").await;
    assert_eq!((again.status, again.header("etag")), (200, Some("\"1\"")));
    assert_eq!(again.json, first.json);
    let again = send(&server, "PATCH", PATH, &key("k-2"), add).await;
    assert_eq!((again.status, again.json), (200, added.json));
    assert_eq!(get(&server, PATH).await.json["value"]["n"], 1);

    for _ in 0..2 {
        let removed = send(&server, "DELETE", PATH, &key("k-3"), "").await;
        assert_eq!((removed.status, &removed.json["version"]), (200, &json!(3)));
    }
    let writes = json!({"writes": [
        {"op": "create", "type": "T", "key": "a", "value": 1},
        {"op": "create", "type": "T", "key": "b", "value": 2},
    ]});
    for _ in 0..2 {
        let path = "/api/default/transactions";
        let done = send(&server, "POST", path, &key("k-4"), &writes.to_string()).await;
        assert_eq!((done.status, &done.json["versions"]), (200, &json!([4, 5])), "{}", done.text);
    }
    assert_eq!(get(&server, "/api/default/status").await.json["head"], 5);
}

#[tokio::test]
async fn a_key_that_stands_for_another_request_is_refused_and_nothing_done() {
    let server = start();
    let sent = send(&server, "PUT", PATH, &key("k"), "1").await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    let condition = format!("{}If-Match: *\r\n", key("k"));
    for (method, path, headers, body) in [
        ("PUT", PATH, key("k"), "2"),
        ("PUT", "/api/default/types/T/other", key("k"), "1"),
        ("PUT", "/api/default/types/T/k?ttlMs=1000", key("k"), "1"),
        ("PUT", PATH, condition, "1"),
        ("DELETE", PATH, key("k"), ""),
    ] {
        let refused = send(&server, method, path, &headers, body).await;
        assert_eq!(
            (refused.status, code(&refused.json)),
            (409, "IDEMPOTENCY_KEY_REUSED"),
            "{path}"
        );
        assert_eq!(refused.json["error"]["retryable"], false);
    }
    assert_eq!(get(&server, "/api/default/status").await.json["head"], 1);
    // Another environment has keys of its own.
    let elsewhere = send(&server, "PUT", "/api/second/types/T/k", &key("k"), "2").await;
    assert_eq!(elsewhere.status, 200, "{}", elsewhere.text);
}

#[tokio::test]
async fn a_write_that_was_refused_leaves_its_key_free_and_a_key_that_is_none_is_refused() {
    let server = start();
    let update = format!("{}If-Match: *\r\n", key("k"));
    assert_eq!(send(&server, "PUT", PATH, &update, "2").await.status, 404);
    assert_eq!(put(&server, PATH, "1").await.status, 200);
    assert_eq!(send(&server, "PUT", PATH, &update, "2").await.json["version"], 2);
    let long = "k".repeat(256);
    for wrong in ["", "a b", long.as_str(), "a\r\nIdempotency-Key: b"] {
        let refused = send(&server, "PUT", PATH, &key(wrong), "1").await;
        assert_eq!((refused.status, code(&refused.json)), (400, "REQUEST_INVALID"), "{wrong:?}");
    }
}

/// Adds one under keys of its own, each until it is acknowledged or the server is gone; how many
/// were acknowledged.
async fn add(address: std::net::SocketAddr, writer: usize, done: Arc<Semaphore>) -> usize {
    for n in 0.. {
        if try_add(address, &format!("{writer}-{n}")).await.is_none() {
            return n;
        }
        done.add_permits(1);
    }
    unreachable!("the numbers do not end")
}

async fn try_add(address: std::net::SocketAddr, name: &str) -> Option<()> {
    let body = "{\"inc\":{\"n\":1}}";
    let answer = try_send(address, "PATCH", PATH, &key(name), body).await?;
    (answer.status == 200).then_some(())
}

#[tokio::test]
async fn what_is_sent_again_after_a_kill_is_done_once_whether_it_was_answered_or_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |data: &Path| Server::start_with("", &["--data", data.to_str().expect("text")]);
    let data = folder.path().join("data");
    let mut server = start(&data);
    assert_eq!(put(&server, PATH, "{\"n\":0}").await.status, 200);
    let (writers, done) = (8, Arc::new(Semaphore::new(0)));
    let mut adding = JoinSet::new();
    for writer in 0..writers {
        let (address, done) = (server.address, Arc::clone(&done));
        adding.spawn(async move { (writer, add(address, writer, done).await) });
    }
    let enough = timeout(Duration::from_secs(20), done.acquire_many(100)).await;
    enough.expect("a hundred writes are acknowledged in time").expect("never closed").forget();
    server.signal("-KILL");
    server.wait(Duration::from_secs(5));
    let acknowledged = adding.join_all().await;

    let again = start(&data);
    let mut asked = 0;
    for (writer, count) in acknowledged {
        // All that were acknowledged, and the one whose fate is not known.
        for n in 0..=count {
            let sent = try_add(again.address, &format!("{writer}-{n}")).await;
            assert!(sent.is_some(), "{writer}-{n}");
            asked += 1;
        }
    }
    assert_eq!(get(&again, PATH).await.json["value"]["n"], asked);
}

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::http::{exchange, get, post, put, send};
use super::{code, start, start_with};
use crate::process::Server;

const PATH: &str = "/api/default/types/T/k";

#[tokio::test]
async fn what_is_no_json_is_refused_with_the_place() {
    let server = start();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (body, why) in [
        ("{\"a\":", "EOF"),
        ("{\"a\":1} x", "trailing"),
        ("{a:1}", "key must be a string"),
        ("1e999", "out of range"),
        (deep.as_str(), "recursion limit"),
    ] {
        let refused = put(&server, PATH, body).await;
        assert_eq!((refused.status, code(&refused.json)), (400, "REQUEST_INVALID"), "{body}");
        let text = refused.json["error"]["message"].as_str().expect("a text");
        assert!(text.contains(why), "{body}: {text}");
    }
    assert_eq!(get(&server, PATH).await.status, 404);
}

#[tokio::test]
async fn a_body_or_value_beyond_its_limit_is_refused_and_the_next_one_taken() {
    let server = start_with("body_bytes_max = 5000\nvalue_bytes_max = 1000\n");
    let text = |bytes: usize| json!("x".repeat(bytes - 2)).to_string();
    assert_eq!(put(&server, PATH, &text(1000)).await.status, 200);
    let refused = put(&server, PATH, &text(1001)).await;
    assert_eq!((refused.status, code(&refused.json)), (413, "VALUE_TOO_LARGE"));
    let refused = put(&server, PATH, &text(5001)).await;
    assert_eq!((refused.status, code(&refused.json)), (413, "PAYLOAD_TOO_LARGE"));
    assert_eq!(refused.header("connection"), Some("close"));
    // Also one whose length is not said.
    let chunks = format!("{:x}\r\n{}\r\n", 6000, "1".repeat(6000));
    let request = format!(
        "PUT {PATH} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n",
        server.address
    );
    let answer = exchange(&server, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(put(&server, PATH, "1").await.status, 200);
}

#[tokio::test]
async fn a_patch_cannot_make_a_document_that_is_too_deep_to_be_read() {
    let server = start();
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
    assert_eq!(put(&server, PATH, &nested(100).to_string()).await.status, 200);
    let refused = put(&server, PATH, &nested(101).to_string()).await;
    assert_eq!((refused.status, code(&refused.json)), (400, "VALUE_TOO_DEEP"));
    let patch = json!({"set": {"b.c": nested(100)}}).to_string();
    let refused = send(&server, "PATCH", PATH, "", &patch).await;
    assert_eq!((refused.status, code(&refused.json)), (400, "VALUE_TOO_DEEP"));
    let query = post(&server, "/api/default/types/T/query", "{}").await;
    assert_eq!(query.status, 200, "{}", query.text);
}

#[tokio::test]
async fn a_full_environment_refuses_what_grows_and_takes_what_shrinks() {
    let server = start_with("environment_bytes_max = 400000\n");
    let value = json!("x".repeat(50_000)).to_string();
    let mut count = 0;
    let full = loop {
        let answer = put(&server, &format!("/api/default/types/T/k{count}"), &value).await;
        if answer.status != 200 {
            break answer;
        }
        count += 1;
        assert!(count < 20, "it is full at last");
    };
    assert_eq!((full.status, code(&full.json)), (507, "STORE_FULL"));
    assert!(count > 0);
    let removed = send(&server, "DELETE", "/api/default/types/T/k0", "", "").await;
    assert_eq!(removed.status, 200, "{}", removed.text);
}

/// Five documents of some 400 bytes, in a store whose answers hold a thousand.
async fn with_large_documents() -> Server {
    let server = start_with("answer_bytes_max = 1000\n");
    for n in 0..5 {
        let value = json!({"n": n, "text": "x".repeat(400)}).to_string();
        let written = put(&server, &format!("/api/default/types/T/k{n}"), &value).await;
        assert_eq!(written.status, 200, "{}", written.text);
    }
    server
}

#[tokio::test]
async fn a_query_of_large_documents_ends_early_and_its_cursor_leads_through_all_of_them() {
    let server = with_large_documents().await;
    for sort in [json!([]), json!("-n")] {
        let (mut sizes, mut keys, mut next) = (Vec::new(), Vec::new(), None);
        loop {
            let query = json!({"sort": sort, "limit": 100, "after": next}).to_string();
            let page = post(&server, "/api/default/types/T/query", &query).await.json;
            let items = page["items"].as_array().expect("items");
            sizes.push(items.len());
            keys.extend(items.iter().map(|item| item["key"].to_string()));
            next = page["next"].as_str().map(str::to_owned);
            if next.is_none() || sizes.len() > 5 {
                break;
            }
        }
        keys.sort_unstable();
        assert_eq!(sizes, [2, 2, 1], "{sort}");
        assert_eq!(keys, ["\"k0\"", "\"k1\"", "\"k2\"", "\"k3\"", "\"k4\""], "{sort}");
    }
}

#[tokio::test]
async fn an_explanation_is_of_the_page_that_the_query_would_give() {
    let server = with_large_documents().await;
    for sort in [json!([]), json!("-n")] {
        let query = json!({"sort": sort, "limit": 100}).to_string();
        let explained = post(&server, "/api/default/types/T/explain", &query).await;
        assert_eq!(explained.json["returned"], 2, "{sort}: {}", explained.text);
    }
}

#[tokio::test]
async fn a_caller_makes_no_more_requests_in_a_second_than_it_may() {
    let server = start_with("requests_per_second = 3\n");
    let end = Instant::now() + Duration::from_secs(10);
    let refused = loop {
        let answer = get(&server, "/api/default/types").await;
        if answer.status != 200 {
            break answer;
        }
        assert!(Instant::now() < end, "there is no end of requests");
    };
    assert_eq!((refused.status, code(&refused.json)), (429, "RATE_LIMITED"));
    assert_eq!(
        (&refused.json["error"]["retryable"], refused.header("retry-after")),
        (&json!(true), Some("1"))
    );
    while get(&server, "/api/default/types").await.status != 200 {
        assert!(Instant::now() < end, "later there may be more");
    }
}

#[tokio::test]
async fn bodies_under_way_share_their_room_and_give_it_back() {
    let server = start_with("body_bytes_max = 100000\nbodies_bytes_max = 100000\n");
    let mut unfinished = begin_body(&server).await;
    let value = json!("x".repeat(50_000)).to_string();
    let end = Instant::now() + Duration::from_secs(10);
    let refused = loop {
        let answer = put(&server, PATH, &value).await;
        if answer.status != 200 {
            break answer;
        }
        assert!(Instant::now() < end, "there is room for both");
        // The beginning of the other may not have been read yet, or may have been while this one had
        // the room: then it is the other that was refused.
        if unfinished.try_read(&mut [0]).is_ok() {
            unfinished = begin_body(&server).await;
        }
    };
    assert_eq!((refused.status, code(&refused.json)), (503, "RESOURCE_BUSY"));
    assert_eq!(refused.json["error"]["retryable"], true);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(put(&server, PATH, "1").await.status, 200, "what is small has room");
    drop(unfinished);
    while put(&server, PATH, &value).await.status != 200 {
        assert!(Instant::now() < end, "the room is given back");
    }
}

/// Sends the beginning of a request's body, larger than half of what is allowed.
async fn begin_body(server: &Server) -> TcpStream {
    let head = format!(
        "PUT {PATH} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 90000\r\n\r\n{}",
        server.address,
        " ".repeat(60_000)
    );
    let mut connection = TcpStream::connect(server.address).await.expect("connected");
    connection.write_all(head.as_bytes()).await.expect("sent");
    connection
}

#[tokio::test]
async fn a_page_of_large_changes_ends_early_and_the_next_one_begins_after_it() {
    let server = with_large_documents().await;
    let (mut clocks, mut after) = (Vec::new(), 0);
    loop {
        let page = get(&server, &format!("/api/default/log?limit=100&after={after}")).await.json;
        let changes = page["changes"].as_array().expect("changes");
        assert!((1..=2).contains(&changes.len()), "{page}");
        clocks.extend(changes.iter().filter_map(|change| change["clock"].as_u64()));
        after = clocks.last().copied().unwrap_or_default();
        if page["head"] == after {
            break;
        }
    }
    assert_eq!(clocks, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn no_more_environments_are_made_than_may_be() {
    let server = start_with("environments_max = 2\n");
    assert_eq!(put(&server, "/api/second/types/T/k", "1").await.status, 200);
    let third = put(&server, "/api/third/types/T/k", "1").await;
    assert_eq!((third.status, code(&third.json)), (403, "ENVIRONMENTS_FULL"));
    assert_eq!(put(&server, "/api/second/types/T/k", "2").await.status, 200);
}

#[tokio::test]
async fn a_request_that_does_not_arrive_in_time_is_let_go() {
    let config = format!("{}[http_server]\nrequest_timeout = \"300ms\"\n", super::LOCAL);
    let server = Server::start(&config);
    for beginning in ["PUT /api/def", "PUT /api/default/types/T/k HTTP/1.1\r\nHost: loc"] {
        let answer = exchange(&server, beginning.as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    let head = format!(
        "PUT {PATH} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 9\r\n\r\n{{",
        server.address
    );
    let answer = exchange(&server, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("REQUEST_TIMEOUT"), "{answer}");
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    assert_eq!(put(&server, PATH, "1").await.status, 200);
}

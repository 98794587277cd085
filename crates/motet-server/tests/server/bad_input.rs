use std::time::Duration;

use futures_util::SinkExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use crate::process::{OPEN, Server};
use crate::websocket::{Client, LIMIT};

#[tokio::test]
async fn a_frame_that_is_no_command_closes_with_3501() {
    let server = Server::start(OPEN);
    for text in ["", "null", "[]", "{", "\n", "{\"id\":-1}", "{\"id\":1,\"connect\":7}", "x"] {
        let mut client = Client::open(&server).await;
        client.send(text).await;
        assert_eq!(client.close_code().await, 3501, "{text:?}");
    }
    let mut client = Client::connected(&server).await;
    client.send(r#"{"id":2,"subscribe":{"channel":"a"},"publish":{"channel":"a","data":1}}"#).await;
    assert_eq!(client.close_code().await, 3501, "two requests in one command");
    let mut client = Client::open(&server).await;
    client.socket.send(Message::binary(vec![0_u8; 4])).await.expect("sent");
    assert_eq!(client.close_code().await, 3501, "binary for a JSON connection");
}

#[tokio::test]
async fn a_length_prefix_beyond_its_frame_closes_with_3501_and_allocates_nothing() {
    let server = Server::start(OPEN);
    for bytes in [
        vec![0xff, 0xff, 0xff, 0xff, 0x0f],
        vec![0xff; 12],
        vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
        vec![5, 1],
    ] {
        let stream = TcpStream::connect(server.address).await.expect("connected");
        let url = format!("ws://{}/connection/websocket?format=protobuf", server.address);
        let (socket, _) = client_async(url, stream).await.expect("a WebSocket");
        let mut client = Client::from(socket);
        client.socket.send(Message::binary(bytes.clone())).await.expect("sent");
        assert_eq!(client.close_code().await, 3501, "{bytes:?}");
    }
}

#[tokio::test]
async fn a_message_beyond_the_limit_closes_with_1009() {
    let server = Server::start(OPEN);
    let mut client = Client::connected(&server).await;
    let data = "x".repeat(70_000);
    client.send(&format!(r#"{{"id":2,"publish":{{"channel":"a","data":"{data}"}}}}"#)).await;
    assert_eq!(client.close_code().await, 1009);
}

#[tokio::test]
async fn broken_framing_and_huge_frame_headers_end_the_connection() {
    let server = Server::start(OPEN);
    let frames: [&[u8]; 4] = [
        // A frame of 2^62 bytes.
        &[0x81, 0xff, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
        // Not masked.
        &[0x81, 0x01, 0x7b],
        // Reserved bits and opcode.
        &[0xff, 0x80, 0, 0, 0, 0],
        // Text that is not UTF-8.
        &[0x81, 0x82, 0, 0, 0, 0, 0xc3, 0x28],
    ];
    for frame in frames {
        let mut client = Client::connected(&server).await;
        let stream = client.socket.get_mut();
        stream.write_all(frame).await.expect("sent");
        let mut rest = Vec::new();
        let ended = timeout(LIMIT, async {
            stream.shutdown().await.ok();
            stream.read_to_end(&mut rest).await
        });
        ended.await.expect("the connection ends").ok();
    }
    Client::connected(&server).await;
}

#[tokio::test]
async fn a_peer_that_says_nothing_or_half_a_request_is_let_go() {
    let server = Server::start(
        &OPEN.replace("insecure = true\n[", "insecure = true\nstale_close_delay = \"300ms\"\n["),
    );
    let mut client = Client::open(&server).await;
    assert_eq!(client.close_code().await, 3502, "no connect command");
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    stream.write_all(b"GARBAGE\r\n\r\n").await.expect("sent");
    let mut answer = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut answer)).await.expect("an end").ok();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"));
}

/// Sends the beginning of a request and nothing more; all that is answered until the end.
async fn answer_to_a_beginning(server: &Server, beginning: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    stream.write_all(beginning.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut answer)).await.expect("an end").ok();
    String::from_utf8(answer).expect("text")
}

#[tokio::test]
async fn a_request_that_does_not_arrive_in_time_is_let_go() {
    let server = Server::start(&format!("{OPEN}\n[http_server]\nrequest_timeout = \"300ms\"\n"));
    for beginning in ["", "GET /health HTT", "GET /health HTTP/1.1\r\nHost: a\r\nX-Slow: "] {
        let answer = answer_to_a_beginning(&server, beginning).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{beginning}: {answer}");
    }
    // Also the second one of a connection.
    let answer =
        answer_to_a_beginning(&server, "GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /h").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let head = "POST /api/info HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9\r\n";
    let answer = answer_to_a_beginning(&server, &format!("{head}X-API-Key: key\r\n\r\n{{")).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("the body did not arrive within 300ms"), "{answer}");
}

#[tokio::test]
async fn a_body_is_not_waited_for_before_the_key_is_checked() {
    let server = Server::start(OPEN);
    for path in ["/api/publish", "/api/batch"] {
        let head = "Host: a\r\nConnection: close\r\nContent-Length: 16000000\r\n\r\n{";
        let begun = tokio::time::Instant::now();
        let answer =
            answer_to_a_beginning(&server, &format!("POST {path} HTTP/1.1\r\n{head}")).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(begun.elapsed() < tokio::time::Duration::from_secs(5), "it was not waited for");
    }
}

#[tokio::test]
async fn a_body_or_head_beyond_the_limit_is_refused() {
    let server = Server::start(OPEN);
    let head = "POST /api/info HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-API-Key: key\r\n";
    let answer =
        answer_to_a_beginning(&server, &format!("{head}Content-Length: 16777217\r\n\r\n{{")).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    let long = "x".repeat(20_000);
    let answer =
        answer_to_a_beginning(&server, &format!("GET / HTTP/1.1\r\nX-Long: {long}\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn an_answer_to_a_body_that_is_not_read_says_that_the_connection_ends() {
    let server = Server::start(&format!("{OPEN}\n[http_server]\nrequest_timeout = \"300ms\"\n"));
    for (key, length, status) in [("key", 16_777_217, 413), ("wrong", 9, 401), ("key", 9, 408)] {
        let head = format!("POST /api/info HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n");
        let beginning = format!("{head}Content-Length: {length}\r\n\r\n{{");
        let answer = answer_to_a_beginning(&server, &beginning).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn a_plain_request_is_told_that_this_is_a_websocket_endpoint() {
    let server = Server::start(OPEN);
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let request = "GET /connection/websocket HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("WebSocket"), "{answer}");
}

#[tokio::test]
async fn a_publication_without_data_closes_a_json_client_with_3501() {
    let server = Server::start(OPEN);
    let mut client = Client::connected(&server).await;
    client.send(r#"{"id":2,"publish":{"channel":"a","data":null}}"#).await;
    assert_eq!(client.next().await["id"], 2, "null is something");
    client.send(r#"{"id":3,"publish":{"channel":"a"}}"#).await;
    assert_eq!(client.close_code().await, 3501);
}

/// Asks for more than any system keeps for somebody who does not read, and does not read.
async fn never_reading(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1_000);
    // The server stops reading when it cannot write.
    while let Ok(sent) =
        timeout(Duration::from_millis(300), stream.write_all(request.as_bytes())).await
    {
        sent.expect("sent");
    }
    stream
}

#[tokio::test]
async fn whoever_asks_over_http_and_does_not_read_is_let_go() {
    let server = Server::start(&format!("{OPEN}\n[http_server]\nrequest_timeout = \"500ms\"\n"));
    let mut stream = never_reading(&server).await;
    let ended = async {
        // The end is noticed by writing: what lies unread here is left there.
        while stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.is_ok() {}
    };
    timeout(LIMIT, ended).await.expect("the connection ends");
}

#[tokio::test]
async fn whoever_does_not_read_does_not_delay_the_end_of_the_server() {
    let mut server = Server::start(OPEN);
    let stream = never_reading(&server).await;
    let begun = tokio::time::Instant::now();
    server.signal("-TERM");
    assert_eq!(server.wait(Duration::from_secs(12)), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(stream);
}

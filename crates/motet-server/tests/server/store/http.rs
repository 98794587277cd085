//! A plain HTTP client: one request per connection.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::process::Server;

/// What a server answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) text: String,
    pub(super) json: Value,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (given, value) = line.split_once(':')?;
            given.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("cut off: {text}"));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let json = serde_json::from_str(body).unwrap_or(Value::Null);
        Self { status, head: head.to_owned(), text: body.to_owned(), json }
    }
}

/// One request with these lines of its head; its length is added, and that a body is JSON.
pub(super) async fn send(
    server: &Server,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Answer {
    let json = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let host = format!("Host: {}\r\n{json}", server.address);
    send_bare(server, method, path, &format!("{host}{headers}"), body).await
}

/// The same to a server that may end meanwhile; what it answered if all of that came.
pub(super) async fn try_send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    answer.contains("\r\n\r\n").then(|| Answer::parse(&answer))
}

/// One request with nothing but these lines in its head, and the length.
pub(super) async fn send_bare(
    server: &Server,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Answer {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    Answer::parse(&exchange(server, request.as_bytes()).await)
}

/// Sends these bytes; everything that is answered until the end.
pub(super) async fn exchange(server: &Server, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    // A server that refuses a large body closes before it was all sent.
    stream.write_all(request).await.ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok();
    String::from_utf8(answer).expect("text")
}

pub(super) async fn get(server: &Server, path: &str) -> Answer {
    send(server, "GET", path, "", "").await
}

pub(super) async fn put(server: &Server, path: &str, body: &str) -> Answer {
    send(server, "PUT", path, "", body).await
}

pub(super) async fn post(server: &Server, path: &str, body: &str) -> Answer {
    send(server, "POST", path, "", body).await
}

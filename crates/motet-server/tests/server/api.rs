use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::process::{OPEN, Server};
use crate::websocket::Client;

/// One POST: status and body.
pub(crate) async fn post(server: &Server, path: &str, headers: &str, body: &str) -> (u16, Value) {
    let (status, body, _) = answer(server, path, headers, body).await;
    (status, body)
}

/// One POST: status, body, and the body as it came.
async fn answer(server: &Server, path: &str, headers: &str, body: &str) -> (u16, Value, String) {
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or(Value::Null), body.to_owned())
}

/// An API call with the right key.
pub(crate) async fn call(server: &Server, method: &str, body: &str) -> Value {
    let (status, answer) =
        post(server, &format!("/api/{method}"), "X-API-Key: key\r\n", body).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

#[tokio::test]
async fn the_api_wants_its_key_in_the_header_or_the_query() {
    let server = Server::start(OPEN);
    let (status, answer) = post(&server, "/api/info", "", "{}").await;
    assert_eq!((status, &answer["error"]["name"]), (401, &json!("API_UNAUTHORIZED")));
    assert_eq!(post(&server, "/api/info", "X-API-Key: wrong\r\n", "{}").await.0, 401);
    assert_eq!(post(&server, "/api/info?api_key=key", "", "{}").await.0, 200);
    let answer = call(&server, "info", "").await;
    assert_eq!(answer["result"]["nodes"][0]["name"], "motet");
}

#[tokio::test]
async fn an_api_without_a_key_is_not_there() {
    let server = Server::start("");
    let (status, _, text) = answer(&server, "/api/info", "", "{}").await;
    assert!(status == 404 && text.contains("set http_api.key"), "{status} {text}");
    let (status, _, text) = answer(&server, "/connection", "", "{}").await;
    assert!(status == 404 && text.contains("/connection/websocket"), "{status} {text}");
    assert!(text.contains("the API is off") && !text.contains("/api/"), "{text}");
}

#[tokio::test]
async fn errors_are_told_in_the_answer_and_by_the_status_when_asked() {
    let server = Server::start(OPEN);
    let body = r#"{"channel":"nowhere:a","data":1}"#;
    let answer = call(&server, "publish", body).await;
    assert_eq!(answer["error"], json!({ "code": 102, "message": "unknown channel" }));
    let headers = "X-API-Key: key\r\nX-Centrifugo-Error-Mode: transport\r\n";
    assert_eq!(post(&server, "/api/publish", headers, body).await.0, 404);
    assert_eq!(post(&server, "/api/publish", headers, "{").await.0, 400);
    let (status, answer) = post(&server, "/api/nothing", "X-API-Key: key\r\n", "{}").await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!(104)));
}

#[tokio::test]
async fn a_batch_answers_each_call_in_its_place() {
    let server = Server::start(OPEN);
    let body = r#"{"commands":[
        {"publish":{"channel":"a","data":{"b":1}}},
        {"nothing":{}},
        {"history":{"channel":"a","limit":1}},
        {"channels":{"pattern":"z*"}}
    ],"parallel":true}"#;
    let (status, answer) = post(&server, "/api/batch", "X-API-Key: key\r\n", body).await;
    assert_eq!(status, 200);
    let replies = &answer["replies"];
    assert_eq!(replies[0]["publish"]["offset"], 1);
    assert_eq!(replies[1]["error"]["code"], 104);
    assert_eq!(replies[2]["history"]["publications"][0]["data"], json!({ "b": 1 }));
    assert_eq!(replies[3]["channels"]["channels"], json!({}));
    assert_eq!(post(&server, "/api/batch", "X-API-Key: key\r\n", "[").await.0, 400);
}

#[tokio::test]
async fn a_publication_with_two_payloads_is_refused_wherever_it_stands() {
    let server = Server::start(OPEN);
    for (method, channels) in
        [("publish", r#""channel":"a""#), ("broadcast", r#""channels":["a"]"#)]
    {
        let body = format!(r#"{{{channels},"data":1,"b64data":"MQ=="}}"#);
        let batch = format!(r#"{{"commands":[{{"{method}":{body}}}]}}"#);
        for error in [
            &call(&server, method, &body).await["error"],
            &call(&server, "batch", &batch).await["replies"][0]["error"],
        ] {
            assert_eq!(error["code"], 107, "{method}: {error}");
            assert!(error["message"].as_str().is_some_and(|text| text.contains("b64data")));
        }
    }
    let answer = call(&server, "history", r#"{"channel":"a"}"#).await;
    assert_eq!(answer["result"]["offset"], 0, "nothing was published: {answer}");
}

#[tokio::test]
async fn a_batch_that_could_be_misread_is_refused_before_any_of_it_is_done() {
    let server = Server::start(OPEN);
    let publish = r#"{"publish":{"channel":"a","data":1}}"#;
    let two = r#"{"publish":{"channel":"a","data":2},"info":{}}"#;
    let twice = r#"{"publish":{"channel":"a","data":2},"publish":{"channel":"a","data":3}}"#;
    for (body, why) in [
        (format!(r#"{{"commands":[{publish},{two}]}}"#), "exactly one method"),
        (format!(r#"{{"commands":[{publish},{twice}]}}"#), "exactly one method"),
        (format!(r#"{{"commands":[{publish},{{}}]}}"#), "exactly one method"),
        (format!(r#"{{"commands":[{publish}],"commands":[]}}"#), "duplicate field"),
        (format!(r#"{{"command":[{publish}]}}"#), "missing field `commands`"),
    ] {
        let (status, answer) = post(&server, "/api/batch", "X-API-Key: key\r\n", &body).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(107)), "{body}");
        let text = answer["error"]["message"].as_str().expect("a text");
        assert!(text.contains(why), "{body}: {text}");
    }
    let answer = call(&server, "history", r#"{"channel":"a"}"#).await;
    assert_eq!(answer["result"]["offset"], 0, "nothing was published: {answer}");
}

#[tokio::test]
async fn a_publication_that_no_queue_can_take_is_refused_and_closes_nobody() {
    let server = Server::start(&OPEN.replace(
        "insecure = true\n[",
        "insecure = true\nqueue_max_size = 9000\n[websocket]\nmessage_size_limit = 4000\n[",
    ));
    let mut client = Client::connected(&server).await;
    client.send(r#"{"id":2,"subscribe":{"channel":"a"}}"#).await;
    assert!(client.next().await["subscribe"].is_object());
    let large = json!("x".repeat(9_000));
    let tagged = json!({ "t": "x".repeat(9_000) });
    for (method, body) in [
        ("publish", json!({ "channel": "a", "data": large })),
        ("publish", json!({ "channel": "a", "data": 1, "tags": tagged })),
        ("broadcast", json!({ "channels": ["a"], "data": large })),
    ] {
        let refused = |answer: &Value| {
            let text = answer["error"]["message"].as_str().expect("a text");
            assert_eq!(answer["error"]["code"], 106, "{text}");
            assert!(text.contains("9000") && text.contains("client.queue_max_size"), "{text}");
        };
        refused(&call(&server, method, &body.to_string()).await);
        let batch = json!({ "commands": [{ method: &body }] }).to_string();
        let (_, answer) = post(&server, "/api/batch", "X-API-Key: key\r\n", &batch).await;
        refused(&answer["replies"][0]);
        let headers = "X-API-Key: key\r\nX-Centrifugo-Error-Mode: transport\r\n";
        let path = format!("/api/{method}");
        assert_eq!(post(&server, &path, headers, &body.to_string()).await.0, 413);
    }
    // What is just below the limit arrives, as the first thing that the client hears.
    let body = json!({ "channel": "a", "data": "y".repeat(8_700) }).to_string();
    assert_eq!(call(&server, "publish", &body).await["result"]["offset"], 1);
    assert_eq!(client.next().await["push"]["pub"]["offset"], 1);
}

#[tokio::test]
async fn health_and_metrics_are_served() {
    let server = Server::start(OPEN);
    for (path, part) in [("/health", "{}"), ("/metrics", "motet_clients 0")] {
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        let host = server.address;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(part), "{answer}");
    }
}

#[tokio::test]
async fn metrics_are_not_read_under_a_name_that_was_made_to_point_here() {
    let server = Server::start(OPEN);
    let (address, port) = (server.address, server.address.port());
    let listed = Server::start(&OPEN.replace(
        "insecure = true\n[",
        "insecure = true\nallowed_origins = [\"https://a.test\"]\n[",
    ));
    for (server, headers, status) in [
        (&server, "Host: evil.test\r\n".to_owned(), 403),
        (&server, format!("Host: evil.test:{port}\r\n"), 403),
        (&server, "Host: evil.test\r\nX-API-Key: wrong\r\n".to_owned(), 403),
        (&server, "Host: metrics.test\r\nX-API-Key: key\r\n".to_owned(), 200),
        (&server, format!("Host: {address}\r\n"), 200),
        (&server, format!("Host: localhost:{port}\r\n"), 200),
        (&listed, "Host: metrics.test\r\n".to_owned(), 200),
    ] {
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        let request = format!("GET /metrics HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers}: {answer}");
        assert_eq!(answer.contains("motet_clients"), status == 200, "{headers}: {answer}");
    }
}

#[tokio::test]
async fn history_answers_carry_each_payload_to_the_last_byte() {
    let server = Server::start(OPEN);
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    for data in [
        "12345678901234567890123",
        "1e400",
        "1.10",
        "-0",
        r#"{"b":1,"a":2}"#,
        r#"{"a":1,"a":2}"#,
        r#"{ "n" : [ 1 ] }"#,
        &deep,
    ] {
        call(&server, "publish", &format!(r#"{{"channel":"a","data":{data}}}"#)).await;
        let history = r#"{"channel":"a","limit":1,"reverse":true}"#;
        let batch = format!(r#"{{"commands":[{{"history":{history}}}]}}"#);
        for (path, body) in [("/api/history", history), ("/api/batch", &batch)] {
            let (status, _, text) = answer(&server, path, "X-API-Key: key\r\n", body).await;
            assert!(status == 200 && text.contains(&format!(r#"{{"data":{data},"#)), "{text}");
        }
    }
    call(&server, "publish", r#"{"channel":"a","b64data":"//79"}"#).await;
    let answer = call(&server, "history", r#"{"channel":"a","limit":1,"reverse":true}"#).await;
    assert_eq!(answer["result"]["publications"][0]["b64data"], "//79");
}

#[tokio::test]
async fn calls_of_a_batch_whose_answers_are_too_long_are_refused_one_by_one() {
    let server = Server::start(OPEN);
    let publish = json!({ "channel": "a", "data": "x".repeat(900_000) }).to_string();
    for _ in 0..4 {
        call(&server, "publish", &publish).await;
    }
    let history = r#"{"history":{"channel":"a","limit":100}}"#;
    let publish = r#"{"publish":{"channel":"b","data":1}}"#;
    let calls = [&[history; 20][..], &[publish]].concat().join(",");
    let body = format!(r#"{{"commands":[{calls}]}}"#);
    let (status, answer, text) = answer(&server, "/api/batch", "X-API-Key: key\r\n", &body).await;
    assert!(status == 200 && text.len() < 22_000_000, "{status}: {} bytes", text.len());
    let replies = answer["replies"].as_array().expect("replies");
    assert_eq!(replies.len(), 21);
    let answered = replies.iter().take_while(|reply| reply["history"].is_object()).count();
    assert!((4..=6).contains(&answered), "{answered}");
    for refused in &replies[answered..] {
        assert_eq!(refused["error"]["code"], 106, "{refused}");
    }
    let answer = call(&server, "history", r#"{"channel":"b"}"#).await;
    assert_eq!(answer["result"]["offset"], 0, "what is refused is not carried out");
}

#[tokio::test]
async fn a_web_page_of_another_origin_cannot_call_an_api_that_needs_no_key() {
    let server = Server::start_with("", &["--dev"]);
    let host = server.address;
    let call = async |headers: String| {
        // The helper's own host would be refused.
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        let body = r#"{"channel":"a","data":1}"#;
        let request = format!(
            "POST /api/publish HTTP/1.1\r\nConnection: close\r\nContent-Type: text/plain\r\n\
             Content-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        answer
    };
    for headers in [
        format!("Host: {host}\r\nOrigin: https://evil.example\r\n"),
        format!("Host: {host}\r\nOrigin: null\r\n"),
        "Host: evil.example\r\n".to_owned(),
        format!("Host: evil.example:{}\r\nOrigin: http://localhost\r\n", host.port()),
    ] {
        let answer = call(headers.clone()).await;
        assert!(
            answer.starts_with("HTTP/1.1 403") && answer.contains("103"),
            "{headers}: {answer}"
        );
    }
    for headers in [
        format!("Host: {host}\r\n"),
        format!("Host: localhost:{}\r\nOrigin: http://localhost:5173\r\n", host.port()),
    ] {
        let answer = call(headers.clone()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{headers}: {answer}");
    }
}

#[tokio::test]
async fn another_method_is_told_what_is_taken() {
    let server = Server::start(OPEN);
    for (method, path, part) in [
        ("GET", "/api/info", "calls of the API are POST, not GET"),
        ("PUT", "/metrics", "/metrics does not take PUT"),
    ] {
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        let request = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        assert!(answer.starts_with("HTTP/1.1 405") && answer.contains(part), "{answer}");
        assert!(answer.to_lowercase().contains("\r\nallow: "), "{answer}");
    }
}

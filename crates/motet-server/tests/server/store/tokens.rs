use sha2::{Digest as _, Sha256};

use super::http::{get, send};
use super::{LOCAL, code};
use crate::process::Server;

fn hex(token: &str) -> String {
    Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn start() -> Server {
    let token = |name: &str, environments: &str, permissions: &str| {
        let digest = hex(name);
        format!(
            "[[store.tokens]]\nname = \"{name}\"\ntoken_sha256 = \"{digest}\"\n\
             environments = {environments}\npermissions = {permissions}\n"
        )
    };
    let tokens = [
        token("all", "\"*\"", "[\"read\", \"write\", \"admin\"]"),
        token("reader", "[\"default\"]", "[\"read\"]"),
        token("writer", "[\"other\"]", "[\"write\"]"),
    ];
    Server::start(&format!("{LOCAL}{}", tokens.concat()))
}

/// Each route with a method: what it needs, and a body.
const ROUTES: [(&str, &str, &str, &str); 20] = [
    ("GET", "types", "read", ""),
    ("GET", "types/T/k", "read", ""),
    ("PUT", "types/T/k", "write", "1"),
    ("PATCH", "types/T/k", "write", "{}"),
    ("DELETE", "types/T/k", "write", ""),
    ("POST", "types/T/query", "read", "{}"),
    ("POST", "types/T/count", "read", "{}"),
    ("POST", "types/T/explain", "read", "{}"),
    ("GET", "types/T/indexes", "read", ""),
    ("PUT", "types/T/indexes/i", "admin", r#"{"fields":[{"path":"a"}]}"#),
    ("DELETE", "types/T/indexes/i", "admin", ""),
    ("GET", "definitions/T", "read", ""),
    ("PUT", "definitions/T", "admin", "{}"),
    ("GET", "definitions/T/violations", "read", ""),
    ("POST", "transactions", "write", r#"{"writes":[]}"#),
    ("GET", "log", "read", ""),
    ("GET", "log/retention", "read", ""),
    ("PUT", "log/retention", "admin", "{}"),
    ("POST", "backup", "admin", ""),
    ("GET", "status", "read", ""),
];

#[tokio::test]
async fn every_route_asks_for_a_token_and_its_permission_in_the_environment() {
    let server = start();
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    for (method, route, needs, body) in ROUTES {
        let path = format!("/api/default/{route}");
        for headers in [String::new(), bearer("wrong"), "Authorization: Basic all\r\n".to_owned()] {
            let refused = send(&server, method, &path, &headers, body).await;
            assert_eq!((refused.status, code(&refused.json)), (401, "TOKEN_INVALID"), "{route}");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        }
        for (token, environment, may) in [
            ("all", "default", true),
            ("reader", "default", needs == "read"),
            ("reader", "other", false),
            ("writer", "default", false),
            ("writer", "other", needs == "write"),
        ] {
            let path = format!("/api/{environment}/{route}");
            let answer = send(&server, method, &path, &bearer(token), body).await;
            let refused = answer.status == 403;
            assert_eq!(refused, !may, "{token} {method} {path}: {}", answer.text);
            if refused {
                assert_eq!(code(&answer.json), "PERMISSION_DENIED");
            }
        }
    }
}

#[tokio::test]
async fn with_a_token_any_host_and_origin_will_do_but_no_browser_may_read() {
    let server = start();
    let headers = "Authorization: bearer all\r\nOrigin: https://a.example\r\n";
    let answer = send(&server, "PUT", "/api/default/types/T/k", headers, "1").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None));
    assert_eq!(get(&server, "/api/default/types").await.status, 401);
}

#[tokio::test]
async fn a_body_is_not_waited_for_before_the_token_is_checked() {
    let server = start();
    let request = format!(
        "PUT /api/default/types/T/k HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 8000000\r\n\r\n{{",
        server.address
    );
    let begun = tokio::time::Instant::now();
    let answer = super::http::exchange(&server, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    assert!(begun.elapsed() < tokio::time::Duration::from_secs(5));
}

#[tokio::test]
async fn callers_do_not_meet_in_their_idempotency_keys() {
    let server = start();
    let path = "/api/other/types/T/k";
    for (token, body, version) in [("all", "1", 1), ("writer", "2", 2), ("all", "1", 1)] {
        let headers = format!("Authorization: Bearer {token}\r\nIdempotency-Key: k\r\n");
        let written = send(&server, "PUT", path, &headers, body).await;
        assert_eq!((written.status, &written.json["version"]), (200, &version.into()), "{token}");
    }
}

use super::http::{get, post, send, send_bare};
use super::{code, refusal, start, start_with};

const PATH: &str = "/api/default/types/T/k";
const JSON: &str = "Content-Type: application/json\r\n";

#[tokio::test]
async fn a_foreign_websites_request_is_refused_and_no_browser_may_read_an_answer() {
    let server = start();
    for origin in ["https://evil.example", "null", "http://localhost.evil.example", "file://"] {
        let headers = format!("Origin: {origin}\r\n");
        for (method, body) in [("GET", ""), ("PUT", "1"), ("DELETE", "")] {
            let refused = send(&server, method, PATH, &headers, body).await;
            assert_eq!(
                (refused.status, code(&refused.json)),
                (403, "ORIGIN_FORBIDDEN"),
                "{origin}"
            );
        }
        let preflight = "Access-Control-Request-Method: PUT\r\n";
        let asked = send(&server, "OPTIONS", PATH, &format!("{headers}{preflight}"), "").await;
        assert_eq!(asked.status, 405);
        assert_eq!(asked.header("access-control-allow-origin"), None);
    }
    let own = format!("Origin: http://{}\r\n", server.address);
    let admitted = send(&server, "PUT", PATH, &own, "1").await;
    assert_eq!(admitted.status, 200);
    assert_eq!(admitted.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn a_name_that_was_made_to_lead_here_is_refused() {
    let server = start();
    let port = server.address.port();
    for host in ["evil.example", "localhost.evil.example", "10.0.0.1", ""] {
        let headers = format!("Host: {host}:{port}\r\n{JSON}");
        let refused = send_bare(&server, "PUT", PATH, &headers, "1").await;
        assert_eq!((refused.status, code(&refused.json)), (403, "ORIGIN_FORBIDDEN"), "{host}");
    }
    for host in ["localhost", "127.0.0.1", "[::1]", "app.localhost"] {
        let headers = format!("Host: {host}:{port}\r\n{JSON}");
        assert_eq!(send_bare(&server, "PUT", PATH, &headers, "1").await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn a_request_with_two_hosts_is_refused_whichever_comes_first() {
    let server = start();
    let own = format!("Host: {}\r\n", server.address);
    let foreign = "Host: evil.example\r\n";
    for hosts in [format!("{own}{foreign}"), format!("{foreign}{own}"), format!("{own}{own}")] {
        let refused = send_bare(&server, "PUT", PATH, &format!("{hosts}{JSON}"), "1").await;
        assert_eq!((refused.status, code(&refused.json)), (403, "ORIGIN_FORBIDDEN"), "{hosts}");
    }
    assert_eq!(get(&server, PATH).await.status, 404);
}

#[tokio::test]
async fn a_body_that_a_page_could_send_without_asking_is_refused() {
    let server = start();
    let host = format!("Host: {}\r\n", server.address);
    for kind in ["", "Content-Type: text/plain\r\n", "Content-Type: application/jsonp\r\n"] {
        let refused = send_bare(&server, "PUT", PATH, &format!("{host}{kind}"), "1").await;
        assert_eq!(
            (refused.status, code(&refused.json)),
            (415, "MEDIA_TYPE_UNSUPPORTED"),
            "{kind}"
        );
    }
    let charset = format!("{host}Content-Type: Application/JSON; charset=utf-8\r\n");
    assert_eq!(send_bare(&server, "PUT", PATH, &charset, "1").await.status, 200);
}

#[tokio::test]
async fn a_listed_origin_may_send_and_read() {
    let server = start_with("allowed_origins = [\"https://*.example.com\"]\n");
    let origin = "Origin: https://app.example.com\r\n";
    let preflight = format!("{origin}Access-Control-Request-Method: PUT\r\n");
    let asked = send(&server, "OPTIONS", PATH, &preflight, "").await;
    assert_eq!(asked.status, 204);
    let methods = asked.header("access-control-allow-methods").expect("methods");
    assert!(methods.contains("PUT"), "{methods}");
    let put = send(&server, "PUT", PATH, origin, "1").await;
    assert_eq!(put.status, 200);
    assert_eq!(put.header("access-control-allow-origin"), Some("https://app.example.com"));
    let foreign = send(&server, "GET", PATH, "Origin: http://localhost\r\n", "").await;
    assert_eq!(foreign.status, 403, "only what is listed, once something is");
}

#[test]
fn a_store_without_tokens_is_not_opened_to_the_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let path = data.to_str().expect("text");
    let text = refusal(&["serve", "--data", path, "--listen", "0.0.0.0:0"]);
    assert!(text.contains("TOKENS_REQUIRED") && text.contains("store.tokens"), "{text}");
    assert!(!data.exists(), "nothing was made");
}

#[tokio::test]
async fn what_is_no_route_and_no_method_is_told_in_json() {
    let server = start();
    for path in ["/api/default", "/api/default/nothing", "/api/default/types/T/k/more", "/api/"] {
        let refused = get(&server, path).await;
        assert_eq!((refused.status, code(&refused.json)), (404, "ROUTE_NOT_FOUND"), "{path}");
    }
    for (method, path, allowed) in [
        ("POST", PATH, "GET,HEAD,PUT,PATCH,DELETE"),
        ("PUT", "/api/default/types", "GET,HEAD"),
        ("GET", "/api/default/transactions", "POST"),
        ("TRACE", "/api/default/types/T/query", "GET,HEAD,PUT,PATCH,DELETE,POST"),
    ] {
        let refused = send(&server, method, path, "", "").await;
        assert_eq!((refused.status, code(&refused.json)), (405, "METHOD_NOT_ALLOWED"), "{path}");
        let mut given: Vec<_> = refused.header("allow").expect("Allow").split(',').collect();
        let mut expected: Vec<_> = allowed.split(',').collect();
        given.sort_unstable();
        expected.sort_unstable();
        assert_eq!(given, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn every_answer_has_the_id_of_its_request() {
    let server = start();
    let given = send(&server, "GET", PATH, "X-Request-Id: mine-1\r\n", "").await;
    assert_eq!(given.header("x-request-id"), Some("mine-1"));
    let long = format!("X-Request-Id: {}\r\n", "x".repeat(129));
    for headers in ["", "X-Request-Id: a b\r\n", long.as_str()] {
        let answer = send(&server, "GET", "/api/default/nothing", headers, "").await;
        assert_eq!(answer.header("x-request-id").map(str::len), Some(16), "{headers}");
    }
}

#[tokio::test]
async fn requests_errors_and_commits_are_counted() {
    let server = start();
    send(&server, "PUT", PATH, "", "1").await;
    get(&server, "/api/default/types/T/absent").await;
    post(&server, "/api/default/transactions", r#"{"writes":[]}"#).await;
    let text = get(&server, "/metrics").await.text;
    for line in [
        r#"motet_store_requests_total{method="PUT",route="/api/{env}/types/{type}/{key}",status="200"} 1"#,
        r#"motet_store_requests_total{method="GET",route="/api/{env}/types/{type}/{key}",status="404"} 1"#,
        r#"motet_store_errors_total{code="NOT_FOUND"} 1"#,
        "motet_store_commit_seconds_count 2",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}
